import { SimpleGrid } from "@mantine/core";
import { useMemo } from "react";

import type { History, Point } from "../../api/types";
import { count } from "../../lib/numbers";
import { duration } from "../../lib/time";
import { Chart, type Series } from "../../parts/Chart";

/** Lines that must be told apart without colour: each has a dash of its own. */
const hands = [
  { tone: "running", dash: undefined },
  { tone: "retrying", dash: [6, 3] },
  { tone: "blocked", dash: [2, 3] },
  { tone: "completed", dash: [8, 3, 2, 3] },
  { tone: "failed", dash: [4, 2] },
];

/** Throughput, failures, latency and backlog by queue over time. */
export function Charts({ history }: { history: History }) {
  const times = useMemo(() => history.total.map((point) => new Date(point.at).getTime() / 1000), [history]);
  const total = (name: keyof Omit<Point, "at">) => history.total.map((point) => point[name]);
  const each = history.step === 60 ? "a minute" : `in ${duration(history.step)}`;
  const backlog = useMemo(() => byQueue(history), [history]);
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <Chart title={`Throughput ${each}`} times={times} format={count} series={[{ name: "completed", tone: "completed", values: total("completed") }, { name: "retried", tone: "retrying", dash: [6, 3], values: total("retried") }]} />
      <Chart title={`Failures ${each}`} times={times} format={count} series={[{ name: "failed", tone: "failed", values: total("failed") }, { name: "cancelled", tone: "cancelled", dash: [3, 3], values: total("cancelled") }]} />
      <Chart title="Latency" times={times} format={duration} series={[{ name: "wait, median", tone: "running", values: total("wait_p50") }, { name: "wait, 95 %", tone: "blocked", dash: [6, 3], values: total("wait_p95") }, { name: "run, median", tone: "completed", dash: [2, 3], values: total("run_p50") }]} />
      <Chart title="Backlog by queue" times={times} format={count} series={backlog} />
    </SimpleGrid>
  );
}

/** The queues with most due jobs; more lines than that nobody can read. */
function byQueue(history: History): Series[] {
  const most = (points: Point[]) => Math.max(0, ...points.map((point) => point.due ?? 0));
  const chosen = [...history.queues].sort((a, b) => most(b.points) - most(a.points)).slice(0, hands.length);
  if (!chosen.length) return [{ name: "due", tone: "running", values: history.total.map((point) => point.due) }];
  return chosen.map(({ queue, points }, i) => ({ name: queue, ...hands[i]!, values: points.map((point) => point.due) }));
}

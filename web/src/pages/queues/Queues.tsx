import { ActionIcon, Button, Group, Text, Tooltip } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { Link } from "react-router";

import { get, post } from "../../api/client";
import { useHistory } from "../../api/stats";
import type { Page as PageOf, Point, Queue } from "../../api/types";
import { useMay } from "../../app/session";
import { count } from "../../lib/numbers";
import { duration } from "../../lib/time";
import { DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { tell, tellTrouble } from "../../parts/tell";
import { When } from "../../parts/When";
import { Limits } from "./Limits";

const column = createColumnHelper<Queue>();

function figure(name: "due" | "waiting" | "running" | "blocked" | "on_hold", header: string, state: string) {
  return column.accessor(name, {
    header,
    meta: { numeric: true },
    cell: ({ getValue, row }) => (getValue() ? <Link to={`/jobs?queue=${encodeURIComponent(row.original.name)}&state=${state}`}>{count(getValue())}</Link> : <Text span c="dimmed" inherit>0</Text>),
  });
}

/** Completed and failed jobs of a queue within the last hour, as a line. */
function LastHour({ points }: { points: Point[] | undefined }) {
  if (!points?.length) return <Text span c="dimmed" inherit>–</Text>;
  const sum = (name: "completed" | "failed") => points.reduce((all, point) => all + point[name], 0);
  const most = Math.max(1, ...points.map((point) => point.completed), ...points.map((point) => point.failed));
  const line = (name: "completed" | "failed") => points.map((point, i) => `${(80 * i) / Math.max(1, points.length - 1)},${15 - (14 * point[name]) / most}`).join(" ");
  return (
    <Group gap={8} wrap="nowrap">
      <svg className="spark" width={80} height={16} aria-hidden="true">
        <polyline points={line("completed")} />
        {sum("failed") > 0 && <polyline className="bad" points={line("failed")} />}
      </svg>
      <span className="nowrap">
        {count(sum("completed"))} done{sum("failed") > 0 && <span className="tone-failed tone-text">, {count(sum("failed"))} failed</span>}
      </span>
    </Group>
  );
}

const shown = [
  column.accessor("name", {
    header: "Queue",
    cell: ({ row: { original: queue } }) => (
      <>
        <Link to={`/jobs?queue=${encodeURIComponent(queue.name)}`}>{queue.name}</Link>
        {isPaused(queue) && (
          <div>
            <span className="state tone-retrying">
              <Icon name="pause" size={12} /> paused
            </span>{" "}
            {queue.paused_by && <Text span size="xs" c="dimmed">by {queue.paused_by} <When at={queue.paused_at} fallback="" /></Text>}
          </div>
        )}
      </>
    ),
  }),
  figure("due", "Due", "pending"),
  figure("waiting", "Waiting", "scheduled"),
  figure("running", "Running", "running"),
  figure("blocked", "Blocked", "blocked"),
  figure("on_hold", "On hold", "creating"),
  column.accessor("oldest_due", { header: "Behind by", meta: { numeric: true }, cell: ({ getValue }) => (getValue() ? duration(getValue()!) : "–") }),
  column.display({
    id: "limits",
    header: "Limits",
    cell: ({ row: { original: queue } }) =>
      [queue.max_running && `${queue.max_running} at once`, queue.rate, queue.key_max_running && `${queue.key_max_running} per key`, queue.key_rate && `${queue.key_rate} per key`].filter(Boolean).join(", ") || <Text span c="dimmed" inherit>none</Text>,
  }),
  column.accessor("workers", {
    header: "Workers",
    meta: { numeric: true },
    cell: ({ getValue, row: { original: queue } }) =>
      getValue().length ? <Link to="/workers" title={getValue().join(", ")}>{getValue().length}</Link> : queue.waiting ? <span className="state tone-failed"><Icon name="bang" size={12} /> none</span> : "0",
  }),
];

const isPaused = (queue: Queue): boolean => Boolean(queue.paused ?? queue.paused_at);

/** Every lane: how much waits in it, for how long, who serves it, which limits hold. */
export function Queues() {
  const queues = useQuery({ queryKey: ["live", "queues"], queryFn: () => get<PageOf<Queue>>("/queues"), refetchInterval: 5_000 });
  const may = useMay();
  const client = useQueryClient();
  const [editing, setEditing] = useState<Queue | null>(null);
  const history = useHistory("hour").data;
  const columns = useMemo(() => {
    const lastHour = column.display({ id: "hour", header: "Last hour", cell: ({ row: { original: queue } }) => <LastHour points={history?.queues.find((one) => one.queue === queue.name)?.points} /> });
    const toggle = async (queue: Queue) => {
      const verb = isPaused(queue) ? "resume" : "pause";
      try {
        await post(`/queues/${encodeURIComponent(queue.name)}/${verb}`);
        tell(verb === "pause" ? `${queue.name} is paused: what runs goes on, nothing begins.` : `${queue.name} goes on.`);
        await client.invalidateQueries({ queryKey: ["live"] });
      } catch (error) {
        tellTrouble(error);
      }
    };
    if (!may("submit")) return [...shown, lastHour];
    return [
      ...shown,
      lastHour,
      column.display({
        id: "acts",
        header: "Actions",
        cell: ({ row: { original: queue } }) => (
          <Group gap={4} wrap="nowrap">
            <Button size="compact-xs" variant="default" leftSection={<Icon name={isPaused(queue) ? "play" : "pause"} size={12} />} onClick={() => void toggle(queue)}>
              {isPaused(queue) ? "Resume" : "Pause"}
            </Button>
            <Tooltip label="Limits">
              <ActionIcon size="sm" aria-label={`Limits of ${queue.name}`} onClick={() => setEditing(queue)}>
                <Icon name="edit" size={14} />
              </ActionIcon>
            </Tooltip>
          </Group>
        ),
      }),
    ];
  }, [may, client, history]);
  return (
    <Page title="Queues">
      <section className="panel">
        <Ask of={queues}>
          {({ items }) =>
            items.length ? (
              <DataTable label="Queues" rows={items} columns={columns} idOf={(queue) => queue.name} />
            ) : (
              <Empty icon="queues" title="No queues yet">
                A queue comes into being with the first job that names it; jobs that name none go to <code>default</code>.
              </Empty>
            )
          }
        </Ask>
      </section>
      {editing && <Limits queue={editing} close={() => setEditing(null)} />}
    </Page>
  );
}

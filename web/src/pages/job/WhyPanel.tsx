import { Text } from "@mantine/core";

import { pace, useJobPart } from "../../api/jobs";
import { useHistory } from "../../api/stats";
import type { History, Job, Place as PlaceInLine, Why } from "../../api/types";
import { plural } from "../../lib/numbers";
import { isRunning } from "../../lib/states";
import { duration } from "../../lib/time";
import { Icon } from "../../parts/Icon";
import { Ask } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";

/** Why a job is not running, where it stands in its queue, and what to do about it. */
export function WhyPanel({ job }: { job: Job }) {
  const why = useJobPart<Why>(job.id, "why", { refetchInterval: pace });
  return (
    <Panel title={isRunning(job.state) ? "What is it doing?" : "Why is it not running?"}>
      <Ask of={why} rows={1}>
        {(told) => (
          <>
            <Text size="sm">{told.sentence}</Text>
            {told.advice && (
              <Text size="sm" c="dimmed" mt={4} style={{ overflowWrap: "anywhere" }}>
                {told.advice}
              </Text>
            )}
            {told.warnings.map((warning) => (
              <Text key={warning} size="sm" mt={4} className="tone-retrying tone-text">
                <Icon name="bang" size={12} /> {warning}
              </Text>
            ))}
            {job.label === "pending" && <Place job={job} moves={moving.has(told.reason)} />}
          </>
        )}
      </Ask>
    </Panel>
  );
}

/** Reasons that go away by themselves, as others of the queue end. */
const moving: ReadonlySet<string> = new Set<Why["reason"]>(["busy", "next"]);

/** Its place in the queue, and from the pace of the last minutes when its turn may come, if the queue moves. */
function Place({ job, moves }: { job: Job; moves: boolean }) {
  const place = useJobPart<PlaceInLine>(job.id, "place", { refetchInterval: pace });
  const history = useHistory("hour", job.queue);
  const ahead = place.data?.ahead;
  if (ahead === null || ahead === undefined) return null;
  const speed = moves ? speedOf(history.data) : 0;
  return (
    <Text size="sm" mt={4}>
      {ahead > 0 ? `${plural(ahead, "job")} of its queue before it` : "It is the next of its queue"}
      {speed > 0 ? `; at the pace of the last minutes it starts in about ${duration((ahead + 1) / speed)}` : ""}.
    </Text>
  );
}

/** Jobs that ended per second, lately. */
function speedOf(history: History | undefined): number {
  const latest = history?.total.slice(-10) ?? [];
  const ended = latest.reduce((sum, point) => sum + point.completed + point.failed, 0);
  return history && latest.length ? ended / (latest.length * history.step) : 0;
}

import { Accordion, Group, Text } from "@mantine/core";

import { useJobPart } from "../../api/jobs";
import type { Attempt, Job, Page } from "../../api/types";
import { Ask } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { State } from "../../parts/State";
import { Instant, Took } from "../../parts/When";

const looks: Record<string, string> = { succeeded: "completed", failed: "failed", timed_out: "failed", lost: "retrying", poison: "failed", cancelled: "cancelled", expired: "cancelled", unknown: "failed" };

/** Each attempt: when, where, how it ended and with which error. */
export function Attempts({ job }: { job: Job }) {
  const attempts = useJobPart<Page<Attempt>>(job.id, "attempts", { enabled: job.attempt > 0 });
  if (job.attempt === 0) return null;
  return (
    <Panel title="Attempts" bare>
      <Ask of={attempts} rows={2}>
        {(page) => (
          <Accordion variant="default" multiple>
            {[...page.items].reverse().map((attempt) => (
              <One key={attempt.number} attempt={attempt} />
            ))}
          </Accordion>
        )}
      </Ask>
    </Panel>
  );
}

function One({ attempt }: { attempt: Attempt }) {
  return (
    <Accordion.Item value={String(attempt.number)}>
      <Accordion.Control>
        <Group gap="sm">
          <Text size="sm" fw={600}>
            Attempt {attempt.number}
          </Text>
          <State of={attempt.outcome ? (looks[attempt.outcome] ?? attempt.outcome) : "running"} outcome={attempt.outcome} />
          <Text size="xs" c="dimmed">
            <Took from={attempt.started_at} to={attempt.finished_at} />
          </Text>
          {attempt.error && (
            <Text size="xs" c="dimmed" className="truncate" maw={380}>
              {attempt.error.message || attempt.error.type}
            </Text>
          )}
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <dl className="facts">
          <dt>Started</dt>
          <dd>
            <Instant at={attempt.started_at} />
          </dd>
          <dt>Ended</dt>
          <dd>
            <Instant at={attempt.finished_at} />
          </dd>
          <dt>Worker</dt>
          <dd>{attempt.worker ?? "–"}</dd>
          {attempt.error && (
            <>
              <dt>Error</dt>
              <dd>
                <b>{attempt.error.type}</b> {attempt.error.message}
              </dd>
            </>
          )}
        </dl>
        {attempt.error?.traceback && (
          <pre className="block" tabIndex={0} style={{ marginTop: 8 }}>
            {attempt.error.traceback}
          </pre>
        )}
      </Accordion.Panel>
    </Accordion.Item>
  );
}

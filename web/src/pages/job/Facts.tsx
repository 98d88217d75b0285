import { Group } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";

import type { Job } from "../../api/types";
import { bytes } from "../../lib/numbers";
import { isRunning } from "../../lib/states";
import { duration } from "../../lib/time";
import { Ident } from "../../parts/Ident";
import { Panel } from "../../parts/Panel";
import { Instant, Took, When } from "../../parts/When";

/** Everything that is known of a job in a word each. */
export function Facts({ job }: { job: Job }) {
  const facts: [string, ReactNode][] = [
    ["Id", <Ident id={job.id} full />],
    ["Kind", job.kind],
    ["Queue", <Link to={`/jobs?queue=${encodeURIComponent(job.queue)}`}>{job.queue}</Link>],
    ["Priority", job.priority],
    ["Asked for", <Instant at={job.desired_at} />],
    ["Planned", <Pair at={job.run_at} />],
    ["Started", job.started_at ? <Pair at={job.started_at} /> : "–"],
    ["Ended", job.finished_at ? <Pair at={job.finished_at} /> : "–"],
    ["Took", job.started_at && (isRunning(job.state) || job.finished_at) ? <Took from={job.started_at} to={job.finished_at} /> : "–"],
    ["Attempt", `${job.attempt} of ${job.max_attempts}${job.losses ? `, ${job.losses} lost` : ""}`],
    ["Timeout", job.timeout ? duration(job.timeout) : "none"],
  ];
  if (job.key !== job.name) facts.push(["Key", <span className="mono">{job.key}</span>]);
  if (job.worker) facts.push(["Worker", <Ident id={job.worker} to="/workers" />]);
  if (job.schedule_id) facts.push(["Schedule", <Ident id={job.schedule_id} to={`/schedules/${job.schedule_id}`} />]);
  if (job.nominal_at) facts.push(["Nominal time", <Instant at={job.nominal_at} />]);
  if (job.expires_at) facts.push(["Expires", <Pair at={job.expires_at} />]);
  if (job.created_by) facts.push(["Submitted by", <Link to={`/jobs?by=${encodeURIComponent(job.created_by)}`}>{job.created_by}</Link>]);
  if (job.tags.length) facts.push(["Tags", <Group gap={4}>{job.tags.map((tag) => <Link key={tag} to={`/jobs?tag=${encodeURIComponent(tag)}`}>{tag}</Link>)}</Group>]);
  if (job.script_sha256) facts.push(["Script", <ScriptDigest sha256={job.script_sha256} size={job.script_size ?? 0} />]);
  if (job.output_location) facts.push(["Output at", <span className="mono">{job.output_location}</span>]);
  if (job.correlation_id) facts.push(["Correlation", <Ident id={job.correlation_id} />]);
  return (
    <Panel title="Facts">
      <dl className="facts">
        {facts.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </Panel>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** By its digest people see whether two jobs ran the same script. */
function ScriptDigest({ sha256, size }: { sha256: string; size: number }) {
  return (
    <>
      <Ident id={sha256} /> <span title="SHA-256">{bytes(size)}</span>
    </>
  );
}

function Pair({ at }: { at: string }) {
  return (
    <>
      <Instant at={at} /> (<When at={at} />)
    </>
  );
}

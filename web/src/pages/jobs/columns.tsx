import { Group, Text } from "@mantine/core";
import { createColumnHelper } from "@tanstack/react-table";
import { Link } from "react-router";

import type { Job } from "../../api/types";
import { isRunning, standing } from "../../lib/states";
import { Ident } from "../../parts/Ident";
import { Progress } from "../../parts/Progress";
import { State } from "../../parts/State";
import { Took, When } from "../../parts/When";

const column = createColumnHelper<Job>();

/** The table of jobs: what it is, how it stands, when. */
export const columns = [
  column.accessor("name", {
    header: "Job",
    cell: ({ row: { original: job } }) => (
      <div style={{ minWidth: 0 }}>
        <Link to={`/jobs/${job.id}`} className="truncate" style={{ display: "block", maxWidth: 420 }} title={job.name}>
          {job.name}
        </Link>
        {job.error && !(job.state === "completed") && (
          <Text size="xs" c="dimmed" className="truncate" maw={420} title={job.error.message}>
            {job.error.message || job.error.type}
          </Text>
        )}
      </div>
    ),
  }),
  column.accessor("label", {
    header: "State",
    cell: ({ row: { original: job } }) => (
      <Group gap={6} wrap="nowrap">
        <State of={standing(job)} outcome={job.outcome} />
        {job.progress && isRunning(job.state) && <Progress of={job.progress} width={60} />}
      </Group>
    ),
  }),
  column.accessor("kind", { header: "Kind" }),
  column.accessor("queue", { header: "Queue" }),
  column.accessor("attempt", {
    header: "Attempt",
    meta: { numeric: true },
    cell: ({ row: { original: job } }) => (job.attempt ? `${job.attempt}/${job.max_attempts}` : "–"),
  }),
  column.accessor("run_at", { header: "Run time", cell: ({ getValue }) => <When at={getValue()} /> }),
  column.display({
    id: "took",
    header: "Took",
    meta: { numeric: true },
    cell: ({ row: { original: job } }) => (job.started_at && (isRunning(job.state) || job.finished_at) ? <Took from={job.started_at} to={job.finished_at} /> : "–"),
  }),
  column.accessor("id", { header: "Id", cell: ({ getValue }) => <Ident id={getValue()} /> }),
];

import { Button } from "@mantine/core";
import { createColumnHelper } from "@tanstack/react-table";
import { Link, useNavigate } from "react-router";

import { useJobs } from "../../api/jobs";
import type { Job } from "../../api/types";
import { DataTable } from "../../parts/DataTable";
import { Ask, Empty } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { Progress } from "../../parts/Progress";
import { State } from "../../parts/State";
import { Took } from "../../parts/When";
import { none } from "../jobs/filter";

const column = createColumnHelper<Job>();
const columns = [
  column.accessor("name", { header: "Job", cell: ({ row: { original: job } }) => <Link to={`/jobs/${job.id}`} className="truncate" style={{ maxWidth: 240, display: "block" }}>{job.name}</Link> }),
  column.accessor("state", { header: "State", cell: ({ getValue }) => <State of={getValue()} /> }),
  column.accessor("queue", { header: "Queue" }),
  column.display({ id: "elapsed", header: "For", meta: { numeric: true }, cell: ({ row: { original: job } }) => <Took from={job.started_at ?? job.claimed_at} /> }),
  column.accessor("progress", { header: "Progress", cell: ({ getValue }) => (getValue() ? <Progress of={getValue()!} width="140px" /> : "–") }),
];

const filter = { ...none, states: ["running", "cancelling"] };

/** What runs at this moment, with elapsed time and progress. */
export function RunningNow() {
  const jobs = useJobs(filter, null, 10);
  const go = useNavigate();
  return (
    <Panel title="Running now" bare aside={<Button component={Link} to="/jobs?state=running,cancelling" variant="subtle" size="compact-xs">All running</Button>}>
      <Ask of={jobs} rows={4}>
        {({ items }) => (items.length ? <DataTable label="Running jobs" rows={items} columns={columns} idOf={(job) => job.id} onOpen={(job) => void go(`/jobs/${job.id}`)} /> : <Empty small title="Nothing runs at this moment." />)}
      </Ask>
    </Panel>
  );
}

import { Button } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate } from "react-router";

import { useJobActs } from "../../api/jobs";
import type { Job } from "../../api/types";
import { useMay } from "../../app/session";
import { hasEnded, isRunning } from "../../lib/states";
import { useConfirm } from "../../parts/confirm";
import { Icon } from "../../parts/Icon";
import { tell, tellTrouble } from "../../parts/tell";
import { ChangeDialog } from "./ChangeDialog";

/** What can be done with a job as it stands. */
export function Actions({ job }: { job: Job }) {
  const may = useMay();
  const [changing, setChanging] = useState(false);
  const { act, change, release } = useJobActs();
  const { ask, dialog } = useConfirm();
  const go = useNavigate();
  if (!may("submit")) return null;
  const over = hasEnded(job.state);
  const waits = job.state === "scheduled";

  const cancel = () =>
    ask({
      title: "Cancel this job?",
      body: isRunning(job.state) ? "It is running: it is told to stop, and counts as cancelled once it is seen stopped." : "It will not run.",
      verb: "Cancel the job",
      danger: true,
      act: () => act("cancel", job.id),
    });
  const remove = () =>
    ask({
      title: "Delete this job?",
      body: "The job, its result, its output and its place in de-duplication will be gone. A running job is stopped first.",
      verb: "Delete the job",
      danger: true,
      act: async () => {
        await act("delete", job.id);
        tell("The job is deleted.");
        void go("/jobs");
      },
    });
  const now = (what: Promise<void>, done: string) => void what.then(() => tell(done)).catch(tellTrouble);

  return (
    <>
      {job.hold && job.state === "creating" && (
        <Button leftSection={<Icon name="play" size={14} />} onClick={() => now(release(job.id), "It may run now.")}>
          Let it go
        </Button>
      )}
      {waits && (
        <>
          <Button leftSection={<Icon name="play" size={14} />} onClick={() => now(change(job.id, { run_at: new Date().toISOString() }), "It runs as soon as a worker is free.")}>
            Run now
          </Button>
          <Button variant="default" leftSection={<Icon name="edit" size={14} />} onClick={() => setChanging(true)}>
            Change
          </Button>
        </>
      )}
      {over && (
        <Button leftSection={<Icon name="retry" size={14} />} onClick={() => now(act("retry", job.id), "It runs again.")}>
          Retry
        </Button>
      )}
      <Button variant="default" component={Link} to={`/submit?from=${job.id}`} leftSection={<Icon name="copy" size={14} />}>
        Run again with changes
      </Button>
      {!over && (
        <Button variant="default" leftSection={<Icon name="slash" size={14} />} onClick={cancel} disabled={job.state === "cancelling"}>
          Cancel
        </Button>
      )}
      <Button variant="default" leftSection={<Icon name="trash" size={14} />} onClick={remove}>
        Delete
      </Button>
      {dialog}
      {changing && <ChangeDialog job={job} close={() => setChanging(false)} />}
    </>
  );
}

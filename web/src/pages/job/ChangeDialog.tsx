import { Autocomplete, NumberInput } from "@mantine/core";
import { useState } from "react";

import { useJobActs } from "../../api/jobs";
import { useQueueNames } from "../../api/names";
import type { Job } from "../../api/types";
import { instantIn, wallIn, zone } from "../../lib/time";
import { DayAndTime } from "../../parts/DayAndTime";
import { FormDialog } from "../../parts/form";

/** What may still be changed of a job that nobody has begun; only what was changed is sent. */
export function ChangeDialog({ job, close }: { job: Job; close: () => void }) {
  const before = wallIn(new Date(job.run_at), zone());
  const [wall, setWall] = useState(before);
  const [priority, setPriority] = useState(job.priority);
  const [queue, setQueue] = useState(job.queue);
  const { change } = useJobActs();
  const save = () =>
    change(job.id, {
      ...(wall !== before ? { run_at: instantIn(wall, zone()).toISOString() } : {}),
      ...(priority !== job.priority ? { priority } : {}),
      ...(queue.trim() !== job.queue ? { queue: queue.trim() } : {}),
    });
  return (
    <FormDialog opened close={close} title={`Change ${job.name}`} verb="Change the job" save={save}>
      <DayAndTime label={`Day and time, ${zone()}`} value={wall} change={(chosen) => setWall(chosen || before)} />
      <NumberInput label="Priority" description="−100 last … 100 first" min={-100} max={100} value={priority} onChange={(value) => setPriority(Number(value) || 0)} />
      <Autocomplete label="Queue" required data={useQueueNames()} value={queue} onChange={setQueue} />
    </FormDialog>
  );
}

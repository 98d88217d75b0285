import { Button, Select, Stack } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { address } from "../../api/client";
import type { Job } from "../../api/types";
import { isRunning } from "../../lib/states";
import { Icon } from "../../parts/Icon";
import { Empty, Trouble, Waiting } from "../../parts/Notices";
import { Terminal } from "./Terminal";
import { useOutput } from "./useOutput";

/** What a job wrote and logged, attempt by attempt, live while it runs. */
export function Output({ job }: { job: Job }) {
  const [chosen, setChosen] = useState<number | null>(null);
  if (job.attempt === 0) return <Empty icon="file" title="No output yet">It has not begun. What it writes shows here while it runs.</Empty>;
  const attempt = chosen ?? job.attempt;
  return (
    <Lines key={attempt} job={job} attempt={attempt}>
      {job.attempt > 1 && (
        <Select
          size="xs"
          w={130}
          aria-label="Attempt"
          allowDeselect={false}
          data={Array.from({ length: job.attempt }, (_, i) => ({ value: String(job.attempt - i), label: `Attempt ${job.attempt - i}` }))}
          value={String(attempt)}
          onChange={(value) => setChosen(Number(value))}
        />
      )}
      <Button component="a" href={address(`/jobs/${job.id}/output`, { attempt })} download={`${job.name}-${attempt}.log`} variant="default" size="compact-xs" leftSection={<Icon name="download" size={12} />}>
        Download output
      </Button>
    </Lines>
  );
}

function Lines({ job, attempt, children }: { job: Job; attempt: number; children: ReactNode }) {
  const live = isRunning(job.state) && attempt === job.attempt;
  const output = useOutput(job.id, attempt, live);
  if (!output.loaded) return <Waiting rows={6} />;
  if (output.error && !output.text) return <Stack gap="sm" p="sm" align="flex-start">{children}<Trouble error={output.error} /></Stack>;
  return <Terminal text={output.text} live={live} skipped={output.skipped} aside={children} />;
}

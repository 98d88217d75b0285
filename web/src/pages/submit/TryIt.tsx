import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { post } from "../../api/client";
import { useJob } from "../../api/jobs";
import type { Job } from "../../api/types";
import { standing } from "../../lib/states";
import { Ident } from "../../parts/Ident";
import { Trouble } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { State } from "../../parts/State";
import { Took } from "../../parts/When";
import { Result } from "../job/Result";
import type { Built, Wrong } from "./draft";

/** Sends the request once, now, and shows what came back. */
export function useTryIt({ build, onWrong }: { build: () => Built; onWrong: (wrong: Wrong) => void }) {
  const [id, setId] = useState<string | null>(null);
  const [trouble, setTrouble] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const tryIt = async () => {
    const { body, wrong } = build();
    onWrong(wrong);
    if (Object.keys(wrong).length) return;
    setBusy(true);
    setTrouble(null);
    try {
      const tags = [...((body.tags as string[] | undefined) ?? []), "tried by hand"];
      const job = await post<Job>("/jobs", { ...body, retry: { max_attempts: 1 }, on_conflict: "allow", tags });
      setId(job.id);
    } catch (error) {
      setTrouble(error);
    } finally {
      setBusy(false);
    }
  };
  return {
    button: (
      <Button variant="default" size="sm" loading={busy} onClick={() => void tryIt()}>
        Try it now
      </Button>
    ),
    answer: (
      <>
        {trouble !== null && <Trouble error={trouble} />}
        {id && <Answer key={id} id={id} />}
      </>
    ),
  };
}

function Answer({ id }: { id: string }) {
  const { data: job } = useJob(id);
  if (!job) return null;
  return (
    <Panel title={<Group gap="sm">What came back <State of={standing(job)} outcome={job.outcome} /></Group>} aside={<Ident id={id} to={`/jobs/${id}`} />}>
      {job.error && <Text size="sm" mb="sm">{job.error.message}</Text>}
      {job.finished_at && (
        <Text size="xs" c="dimmed" mb="sm">
          after <Took from={job.started_at ?? job.created_at} to={job.finished_at} />
        </Text>
      )}
      <Result job={job} />
    </Panel>
  );
}

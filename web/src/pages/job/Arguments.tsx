import { Button, Text } from "@mantine/core";
import { useState } from "react";

import { send } from "../../api/client";
import { useJobPart } from "../../api/jobs";
import { Problem } from "../../api/problem";
import type { Job } from "../../api/types";
import { useMay } from "../../app/session";
import { Icon } from "../../parts/Icon";
import { JsonView } from "../../parts/JsonView";
import { Empty, Trouble, Waiting } from "../../parts/Notices";
import { tellTrouble } from "../../parts/tell";

type Body = Record<string, unknown>;

/** What a job was asked to do. A script is fetched only when it is asked for: looking at it is recorded. */
export function Arguments({ job }: { job: Job }) {
  const body = useJobPart<Body>(job.id, "payload");
  if (body.isPending) return <Waiting rows={3} />;
  if (body.error) {
    if (Problem.of(body.error).status === 404) return <Empty icon="file" title="Nothing to show" />;
    return <Trouble error={body.error} again={() => void body.refetch()} />;
  }
  return (
    <>
      <JsonView value={body.data} open={3} />
      {job.kind === "script" && <Script job={job} />}
    </>
  );
}

function Script({ job }: { job: Job }) {
  const may = useMay();
  const [script, setScript] = useState<string | null>(null);
  if (!may("read_scripts")) return <Text size="sm" c="dimmed" mt="sm">Scripts are shown to operators.</Text>;
  if (script !== null) return <pre className="block" tabIndex={0} style={{ marginTop: 8 }}>{script}</pre>;
  const show = () =>
    void send("GET", `/jobs/${job.id}/script`, { headers: { Accept: "text/plain" } })
      .then((answer) => answer.text())
      .then(setScript)
      .catch(tellTrouble);
  return (
    <Button variant="default" mt="sm" leftSection={<Icon name="file" size={14} />} onClick={show}>
      Show the script (recorded in the audit log)
    </Button>
  );
}

import { Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { address, send } from "../../api/client";
import { useJobPart } from "../../api/jobs";
import { Problem } from "../../api/problem";
import type { Job, ResultMeta } from "../../api/types";
import { parse } from "../../lib/json";
import { bytes } from "../../lib/numbers";
import { hasEnded } from "../../lib/states";
import { Icon } from "../../parts/Icon";
import { JsonView } from "../../parts/JsonView";
import { Empty, Trouble, Waiting } from "../../parts/Notices";

/** Larger results are for the download. */
const most = 512 * 1024;

/** What came of a job: JSON as a tree, text and images as a preview, and all of it as a download. */
export function Result({ job }: { job: Job }) {
  const meta = useJobPart<ResultMeta>(job.id, "result/meta", { enabled: hasEnded(job.state) });
  if (!hasEnded(job.state)) return <Empty icon="hourglass" title="No result yet">It shows here when the job completes.</Empty>;
  if (meta.isPending) return <Waiting rows={3} />;
  if (meta.error) {
    if (Problem.of(meta.error).status === 404) return <Empty icon="file" title="It has no result" />;
    return <Trouble error={meta.error} again={() => void meta.refetch()} />;
  }
  return <Shown job={job} meta={meta.data} />;
}

function Shown({ job, meta }: { job: Job; meta: ResultMeta }) {
  const type = meta.content_type.split(";")[0]!.trim().toLowerCase();
  return (
    <>
      <Group gap="sm" mb="sm">
        <Text size="xs" c="dimmed">
          {[meta.status && `HTTP ${meta.status}`, type, bytes(meta.size)].filter(Boolean).join(" · ")}
        </Text>
        <Button component="a" href={address(`/jobs/${job.id}/result`)} download variant="default" size="compact-xs" ml="auto" leftSection={<Icon name="download" size={12} />}>
          Download
        </Button>
      </Group>
      {meta.size > most ? <Empty icon="download" title={`${bytes(meta.size)} is more than a page should load`}>Download it to look at all of it.</Empty> : <Preview job={job} type={type} />}
    </>
  );
}

function Preview({ job, type }: { job: Job; type: string }) {
  if (/^image\/(png|jpeg|gif|webp|avif|bmp)$/.test(type)) return <Picture job={job} />;
  if (type.endsWith("json") || type.startsWith("text/") || /xml|csv|yaml/.test(type)) return <Words job={job} isJson={type.endsWith("json")} />;
  return <Empty icon="file" title="No preview for this type">Download it to look at it.</Empty>;
}

function Words({ job, isJson }: { job: Job; isJson: boolean }) {
  const text = useQuery({ queryKey: ["job", job.id, "result"], queryFn: async () => (await send("GET", `/jobs/${job.id}/result`, { headers: { Accept: "*/*" } })).text() });
  if (text.error) return <Trouble error={text.error} />;
  if (text.data === undefined) return <Waiting rows={3} />;
  const value = isJson ? parsed(text.data) : undefined;
  return value === undefined ? <pre className="block" tabIndex={0}>{text.data}</pre> : <JsonView value={value} />;
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return undefined; // shown as it is
  }
}

/** Fetched and shown from memory: the answer itself says that it is a download. */
function Picture({ job }: { job: Job }) {
  const [source, setSource] = useState<string | null>(null);
  const [trouble, setTrouble] = useState<unknown>(null);
  useEffect(() => {
    let made: string | null = null;
    let gone = false;
    send("GET", `/jobs/${job.id}/result`, { headers: { Accept: "*/*" } })
      .then((answer) => answer.blob())
      .then((blob) => {
        if (gone) return;
        made = URL.createObjectURL(blob);
        setSource(made);
      })
      .catch(setTrouble);
    return () => {
      gone = true;
      if (made) URL.revokeObjectURL(made);
    };
  }, [job.id]);
  if (trouble) return <Trouble error={trouble} />;
  return source ? <img src={source} alt={`Result of ${job.name}`} style={{ maxWidth: "100%" }} /> : <Waiting rows={3} />;
}

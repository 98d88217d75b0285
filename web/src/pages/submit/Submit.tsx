import { Button, Grid, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";

import { get, post } from "../../api/client";
import { Problem } from "../../api/problem";
import type { BatchAnswered, BatchItem, Job } from "../../api/types";
import { useMay } from "../../app/session";
import { urlsIn } from "../../lib/urls";
import { Icon } from "../../parts/Icon";
import { Empty, Trouble } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { Panel } from "../../parts/Panel";
import { BatchAnswer } from "./BatchAnswer";
import { fromJob } from "./again";
import { build, type Draft, type Kind, type Wrong } from "./draft";
import { Common } from "./Common";
import { KindFields } from "./KindFields";
import { useTryIt } from "./TryIt";
import { useDraft } from "./useDraft";
import { useFunctions } from "./useFunctions";

const kinds: { value: Kind; label: string }[] = [
  { value: "script", label: "Script" },
  { value: "http", label: "HTTP request" },
  { value: "fetch", label: "URLs" },
  { value: "call", label: "Function" },
];

/** One form for jobs of all kinds. */
export function Submit() {
  const may = useMay();
  const [params] = useSearchParams();
  if (!may("submit")) {
    return (
      <Page title="Submit a job">
        <Empty icon="access" title="Your role may look, but not submit">Ask an admin for the role operator.</Empty>
      </Page>
    );
  }
  return <Form key={params.toString()} />;
}

function Form() {
  const [params] = useSearchParams();
  const from = params.get("from");
  const asked = params.get("kind") as Kind | null;
  const { draft, set, clear, begin } = useDraft(from, asked);
  const functions = useFunctions();
  const parameters = functions.find((one) => one.name === draft.function)?.parameters ?? null;
  const [shown, setShown] = useState<Wrong>({});
  const [trouble, setTrouble] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [batch, setBatch] = useState<BatchItem[] | null>(null);
  const go = useNavigate();
  const queries = useQueryClient();
  const tryIt = useTryIt({ build: () => build({ ...draft, later: false }, parameters), onWrong: setShown });
  usePrefill(from, begin);

  const submit = async () => {
    const { body, wrong } = build(draft, parameters);
    setShown(wrong);
    setTrouble(null);
    if (Object.keys(wrong).length) return;
    setBusy(true);
    try {
      if (draft.kind === "fetch") {
        const answer = await post<BatchAnswered>("/jobs/batch", { jobs: urlsIn(draft.urls).urls.map((url) => ({ ...body, url })), partial: true });
        setBatch(answer.items);
      } else {
        const job = await post<Job>("/jobs", body);
        clear(draft.kind);
        void go(`/jobs/${job.id}`);
      }
      await queries.invalidateQueries({ queryKey: ["live"] });
    } catch (error) {
      setTrouble(error);
      const field = Problem.of(error).field;
      if (field) setShown({ [fieldNames[field] ?? field]: Problem.of(error).detail });
    } finally {
      setBusy(false);
    }
  };

  return (
    <Page title="Submit a job">
      <SegmentedControl
        aria-label="Kind of job"
        size="sm"
        data={kinds}
        value={draft.kind}
        onChange={(kind) => {
          set({ kind: kind as Kind });
          setShown({});
          setBatch(null);
        }}
        style={{ alignSelf: "flex-start", maxWidth: "100%" }}
      />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
        noValidate
      >
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 8 }}>
            <Panel title="What to do">
              <KindFields draft={draft} set={set} wrong={shown} functions={functions} />
            </Panel>
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 4 }}>
            <Panel title="When and how">
              <Common draft={draft} set={set} wrong={shown} />
            </Panel>
          </Grid.Col>
        </Grid>
        <Stack gap="sm" mt="md">
          {trouble !== null && <Refused error={trouble} />}
          <Group gap="xs">
            <Button type="submit" size="sm" loading={busy} leftSection={<Icon name="play" size={14} />}>
              {draft.kind === "fetch" ? "Submit all" : draft.later ? "Submit for later" : "Submit"}
            </Button>
            {draft.kind === "http" && tryIt.button}
            <Button variant="subtle" size="sm" onClick={() => clear(draft.kind)}>
              Start over
            </Button>
          </Group>
          {draft.kind === "http" && tryIt.answer}
          {batch && <BatchAnswer items={batch} urls={urlsIn(draft.urls).urls} />}
        </Stack>
      </form>
    </Page>
  );
}

/** Fields as the API calls them, as this form does. */
const fieldNames: Record<string, string> = { callback_url: "url", http_method: "method", run_at: "wall", on_conflict: "onConflict" };

function Refused({ error }: { error: unknown }) {
  const other = Problem.of(error).extra.conflicting_job_id;
  return (
    <>
      <Trouble error={error} />
      {typeof other === "string" && (
        <Text size="sm">
          <Link to={`/jobs/${other}`}>Look at the job in its way</Link>, or choose above that this one waits for it.
        </Text>
      )}
    </>
  );
}

/** Fills the form with a job that was, to be run again with changes. */
function usePrefill(from: string | null, begin: (draft: Draft) => void): void {
  const source = useQuery({
    queryKey: ["job", from, "again"],
    queryFn: async () => ({ job: await get<Job>(`/jobs/${from}`), payload: await get<Record<string, unknown>>(`/jobs/${from}/payload`) }),
    enabled: from !== null,
    staleTime: Infinity,
  });
  useEffect(() => {
    if (source.data) begin(fromJob(source.data.job, source.data.payload));
    // Once, when it has come.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [source.data]);
}

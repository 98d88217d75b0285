import { Button, Grid, Group, NumberInput, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { patch, post } from "../../api/client";
import { Problem } from "../../api/problem";
import { usePreview } from "../../api/schedules";
import type { Schedule } from "../../api/types";
import { inWords } from "../../lib/cron";
import { DayAndTime } from "../../parts/DayAndTime";
import { Trouble } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { KindFields } from "../submit/KindFields";
import { fromTemplate, ofAnyKind } from "../submit/again";
import { blank, build, type Draft, type Kind, type Wrong } from "../submit/draft";
import { useFunctions } from "../submit/useFunctions";
import { zones } from "../submit/zones";
import { Preview } from "./Preview";
import { bodyOf, changesOf, draftOf, readable, whenOf, type Plan } from "./plan";

const examples = [
  { value: "*/5 * * * *", label: "every 5 minutes" },
  { value: "0 * * * *", label: "hourly" },
  { value: "0 6 * * MON-FRI", label: "weekdays at 06:00" },
  { value: "30 2 * * *", label: "daily at 02:30" },
  { value: "0 9 1 * *", label: "monthly" },
];

/** When it fires, with a preview while one writes, and the job that it makes. */
export function ScheduleForm({ existing, done }: { existing?: Schedule; done: (made?: Schedule) => void }) {
  const [plan, setPlan] = useState<Plan>(() => draftOf(existing));
  const [before] = useState(() => ({ plan, draft: existing ? fromTemplate(existing.job ?? {}) : { ...blank(), kind: "http" as Kind } }));
  const [draft, setDraft] = useState<Draft>(before.draft);
  const [wrong, setWrong] = useState<Wrong & { planName?: string; schedule?: string }>({});
  const [trouble, setTrouble] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const queries = useQueryClient();
  const functions = useFunctions();
  const put = (part: Partial<Plan>) => setPlan((before) => ({ ...before, ...part }));

  const save = async () => {
    const parameters = functions.find((one) => one.name === draft.function)?.parameters ?? null;
    const built = build({ ...draft, name: draft.kind === "script" ? draft.name || plan.name : draft.name, later: false }, parameters);
    const missing = { ...built.wrong, ...(plan.name.trim() ? {} : { planName: "A schedule needs a name." }), ...(whenOf(plan) ? {} : { schedule: "Say when it fires." }) };
    setWrong(missing);
    setTrouble(null);
    if (Object.keys(missing).length) return;
    setBusy(true);
    try {
      const made = existing ? await patch<Schedule>(`/schedules/${existing.id}`, changesOf(before, { plan, draft }, built.body)) : await post<Schedule>("/schedules", { ...bodyOf(plan), job: built.body });
      await queries.invalidateQueries({ queryKey: ["live"] });
      done(made);
    } catch (error) {
      setTrouble(error);
      const problem = Problem.of(error);
      if (problem.field) setWrong({ [problem.field === "name" ? "planName" : problem.field.replace(/^job\./, "")]: problem.detail });
    } finally {
      setBusy(false);
    }
  };

  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Stack gap="md">
            <Panel title="When">
              <Stack gap="sm">
                <TextInput label="Name of the schedule" required placeholder="nightly-report" value={plan.name} error={wrong.planName} onChange={(e) => put({ name: e.currentTarget.value })} />
                <TextInput label="Description" value={plan.description} onChange={(e) => put({ description: e.currentTarget.value })} />
                <Timing plan={plan} put={put} wrong={wrong.schedule} />
              </Stack>
            </Panel>
            <Panel title="The job it makes">
              <Stack gap="sm">
                <SegmentedControl aria-label="Kind of job" data={[{ value: "http", label: "HTTP request" }, { value: "call", label: "Function" }, { value: "script", label: "Script" }, ...(before.draft.kind === "fetch" ? [{ value: "fetch", label: "URL" }] : [])]} value={draft.kind} onChange={(kind) => setDraft((now) => ofOtherKind(now, kind as Kind, before.draft))} style={{ alignSelf: "flex-start" }} />
                <KindFields draft={draft} set={(part) => setDraft((now) => ({ ...now, ...part }))} wrong={wrong} functions={functions} />
              </Stack>
            </Panel>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Stack gap="md">
            <Coming plan={plan} jumps={existing && whenOf(plan) === existing.schedule ? existing : undefined} />
            <Panel title="When things go otherwise">
              <Stack gap="sm">
                <Select label="Fires that were missed" allowDeselect={false} data={[{ value: "run_once", label: "Run one job for all of them" }, { value: "skip", label: "Skip them" }, { value: "run_all", label: "Run all of them" }]} value={plan.misfire} onChange={(value) => put({ misfire: value ?? "run_once" })} />
                <Select label="While an earlier job has not ended" allowDeselect={false} data={[{ value: "skip", label: "Skip the fire" }, { value: "wait", label: "Wait for it" }, { value: "replace", label: "Replace it" }, { value: "allow", label: "Run both" }]} value={plan.overlap} onChange={(value) => put({ overlap: value ?? "skip" })} />
                <NumberInput label="Jitter (s)" description="Each job runs up to so many seconds later" min={0} max={86400} value={plan.jitter} onChange={(value) => put({ jitter: Number(value) || 0 })} />
              </Stack>
            </Panel>
          </Stack>
        </Grid.Col>
      </Grid>
      <Stack gap="sm" mt="md">
        {trouble !== null && <Trouble error={trouble} />}
        <Group gap="xs">
          <Button type="submit" size="sm" loading={busy}>
            {existing ? "Save the changes" : "Make the schedule"}
          </Button>
          <Button variant="subtle" size="sm" onClick={() => done()}>
            Leave it
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Of what the form has no field for, only what jobs of all kinds have goes over to another kind, until it comes back. */
function ofOtherKind(draft: Draft, kind: Kind, first: Draft): Draft {
  const rest = kind === first.kind ? first.rest : Object.fromEntries(Object.entries(first.rest).filter(([name]) => ofAnyKind.includes(name)));
  return { ...draft, kind, rest };
}

function Timing({ plan, put, wrong }: { plan: Plan; put: (part: Partial<Plan>) => void; wrong?: string }) {
  return (
    <>
      <SegmentedControl aria-label="Sort of schedule" data={[{ value: "cron", label: "Cron" }, { value: "every", label: "Interval" }, { value: "at", label: "Once" }]} value={plan.sort} onChange={(sort) => put({ sort: sort as Plan["sort"] })} style={{ alignSelf: "flex-start" }} />
      {plan.sort === "cron" && (
        <>
          <TextInput label="Cron expression" required placeholder="0 6 * * MON-FRI" value={plan.cron} error={wrong} onChange={(e) => put({ cron: e.currentTarget.value })} styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }} />
          <div className="chips">
            {examples.map((one) => (
              <button key={one.value} type="button" className="chip" onClick={() => put({ cron: one.value })}>
                {one.label}
              </button>
            ))}
          </div>
        </>
      )}
      {plan.sort === "every" && <NumberInput label="Every so many seconds" min={0.1} value={plan.every} error={wrong} onChange={(value) => put({ every: Number(value) || 0 })} />}
      {plan.sort === "at" && <DayAndTime label="Day and time" value={plan.wall} error={wrong} change={(wall) => put({ wall })} />}
      {plan.sort !== "every" && <Select label="Time zone" searchable data={zones} value={plan.timezone} allowDeselect={false} onChange={(value) => put({ timezone: value ?? "UTC" })} limit={60} />}
      <Text size="sm" fw={600} role="status" data-testid="in-words">
        {readable(plan)}
      </Text>
    </>
  );
}

/** The next fires; `jumps` is the schedule whose rules for jumping clocks still hold. */
function Coming({ plan, jumps }: { plan: Plan; jumps?: Schedule }) {
  const [settled] = useDebouncedValue(plan, 300);
  const when = whenOf(settled);
  const preview = usePreview(when ? { schedule: when, timezone: settled.timezone, ...(jumps?.gap && { gap: jumps.gap }), ...(jumps?.fold && { fold: jumps.fold }) } : null);
  return (
    <Panel title="Next fires" aside={<Text size="xs" c="dimmed">{when && typeof when === "string" ? inWords(when, settled.timezone) : ""}</Text>}>
      <Preview of={preview} zone={settled.timezone} />
    </Panel>
  );
}

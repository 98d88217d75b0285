import { Autocomplete, Checkbox, Group, NumberInput, SegmentedControl, Select, Stack, TagsInput, Text, TextInput } from "@mantine/core";

import { useQueueNames } from "../../api/names";
import { clockIn, instantIn, utc } from "../../lib/time";
import { DayAndTime } from "../../parts/DayAndTime";
import type { Draft, Wrong } from "./draft";
import { RetryRules } from "./RetryRules";
import { zones } from "./zones";

type Props = { draft: Draft; set: (part: Partial<Draft>) => void; wrong: Wrong };

const conflicts = [
  { value: "reject", label: "Refuse this one" },
  { value: "wait", label: "Wait for it" },
  { value: "allow", label: "Run both" },
  { value: "skip", label: "Take the other instead" },
  { value: "replace", label: "Replace the other" },
];

/** When a job runs, and by which rules. */
export function Common({ draft, set, wrong }: Props) {
  return (
    <Stack gap="sm">
      <SegmentedControl aria-label="When" fullWidth data={[{ value: "now", label: "Now" }, { value: "later", label: "Later" }]} value={draft.later ? "later" : "now"} onChange={(value) => set({ later: value === "later" })} />
      {draft.later && <Later draft={draft} set={set} wrong={wrong} />}
      <Autocomplete label="Queue" placeholder="default" data={useQueueNames()} value={draft.queue} onChange={(queue) => set({ queue })} />
      <NumberInput label="Priority" description="−100 last … 100 first" min={-100} max={100} value={draft.priority} onChange={(value) => set({ priority: Number(value) || 0 })} />
      <Select label="If one of the same name has not ended" data={[{ value: "", label: draft.kind === "script" ? "Usual: refuse this one" : "Usual: run both" }, ...conflicts]} value={draft.onConflict} allowDeselect={false} onChange={(value) => set({ onConflict: value ?? "" })} />
      <Group grow gap="sm">
        <TextInput label="Timeout (s)" placeholder="usual" inputMode="decimal" value={draft.timeout} onChange={(e) => set({ timeout: digits(e.currentTarget.value) })} />
        <TextInput label="Attempts" placeholder="usual" inputMode="numeric" value={draft.attempts} onChange={(e) => set({ attempts: e.currentTarget.value.replace(/\D/g, "") })} />
      </Group>
      <TagsInput label="Tags" value={draft.tags} onChange={(tags) => set({ tags })} />
      <More draft={draft} set={set} wrong={wrong} />
    </Stack>
  );
}

const parentFailures = [
  { value: "", label: "Usual: cancel this one" },
  { value: "run", label: "Run all the same" },
  { value: "hold", label: "Hold this one" },
];

const backoffs = [
  { value: "", label: "Usual" },
  { value: "fixed", label: "Always as long" },
  { value: "linear", label: "Longer by steps" },
  { value: "exponential", label: "Twice as long each time" },
];

/** What few jobs need; open when something of it is set. */
function More({ draft, set, wrong }: Props) {
  const used = Boolean(draft.hold || draft.key || draft.after.length || draft.expires || draft.retryWait || draft.backoff || draft.maxWait || draft.jitter || draft.rules.length);
  return (
    <details className="more" open={used || undefined}>
      <summary>More options</summary>
      <Stack gap="sm" mt="sm">
        <Checkbox size="xs" label="Hold it until somebody lets it go" checked={draft.hold} onChange={(e) => set({ hold: e.currentTarget.checked })} />
        <TextInput label="Key" description="Jobs with the same key are in each other's way" placeholder="its name" value={draft.key} onChange={(e) => set({ key: e.currentTarget.value })} />
        <TagsInput label="Runs after" description="Ids of the jobs that it waits for" value={draft.after} error={wrong.after} onChange={(after) => set({ after })} splitChars={[",", " ", "\n"]} />
        {draft.after.length > 0 && <Select label="If one of them fails" data={parentFailures} value={draft.onParentFailure} allowDeselect={false} onChange={(value) => set({ onParentFailure: value ?? "" })} />}
        <TextInput label="Expires after (s)" description="Cancelled if it has not begun by then" placeholder="never" inputMode="decimal" value={draft.expires} onChange={(e) => set({ expires: digits(e.currentTarget.value) })} />
        <Group grow gap="sm">
          <TextInput label="Wait to retry (s)" placeholder="usual" inputMode="decimal" value={draft.retryWait} onChange={(e) => set({ retryWait: digits(e.currentTarget.value) })} />
          <Select label="Each time" data={backoffs} value={draft.backoff} allowDeselect={false} onChange={(value) => set({ backoff: value ?? "" })} />
        </Group>
        <Group grow gap="sm">
          <TextInput label="At most (s)" placeholder="3600" inputMode="decimal" value={draft.maxWait} onChange={(e) => set({ maxWait: digits(e.currentTarget.value) })} />
          <TextInput label="Give or take (%)" placeholder="10" inputMode="decimal" value={draft.jitter} onChange={(e) => set({ jitter: digits(e.currentTarget.value) })} />
        </Group>
        <RetryRules rules={draft.rules} wrong={wrong.rules} change={(rules) => set({ rules })} />
      </Stack>
    </details>
  );
}

const digits = (text: string): string => text.replace(/[^\d.]/g, "");

function Later({ draft, set, wrong }: Props) {
  const at = draft.wall ? instantIn(draft.wall, draft.zone) : null;
  return (
    <>
      <DayAndTime label="Day and time" value={draft.wall} error={wrong.wall} change={(wall) => set({ wall })} />
      <Select label="Time zone" searchable data={zones} value={draft.zone} allowDeselect={false} onChange={(value) => set({ zone: value ?? "UTC" })} limit={60} />
      {at && (
        <Text size="xs" c="dimmed">
          {clockIn(at, draft.zone)} in {draft.zone} is {utc(at)}
        </Text>
      )}
    </>
  );
}

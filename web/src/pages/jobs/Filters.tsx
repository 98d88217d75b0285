import { Button, Group, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";

import { useKinds, useQueueNames } from "../../api/names";
import { useStats } from "../../api/stats";
import { count } from "../../lib/numbers";
import { filters, lookOf } from "../../lib/states";
import { Icon } from "../../parts/Icon";
import { isNarrow, none, uuid, type Filter } from "./filter";

type Props = { filter: Filter; change: (filter: Filter) => void };

const spans = [
  { value: "", label: "Any time" },
  { value: "-1h", label: "Last hour" },
  { value: "-1d", label: "Last day" },
  { value: "-7d", label: "Last week" },
];

/** What the table is narrowed to, as chips and short fields. */
export function Filters({ filter, change }: Props) {
  const set = (part: Partial<Filter>) => change({ ...filter, ...part });
  const counts = useCounts(filter.queue);
  return (
    <div className="panel-body" style={{ display: "grid", gap: 8 }}>
      <div className="chips row" role="group" aria-label="States">
        {filters.map((state) => (
          <StateChip key={state} state={state} count={counts[state]} on={filter.states.includes(state)} toggle={() => set({ states: toggled(filter.states, state) })} />
        ))}
      </div>
      <Group gap="xs" className="filter-fields">
        <Typed label="Name, id, or error: text" value={filter.q} set={(q) => set({ q })} />
        <Choice label="Kind" all="All kinds" value={filter.kind} options={useKinds()} set={(kind) => set({ kind })} />
        <Choice label="Queue" all="All queues" value={filter.queue} options={useQueueNames()} set={(queue) => set({ queue })} />
        <Select
          aria-label="Submitted"
          size="xs"
          w={120}
          data={spans}
          value={filter.from}
          allowDeselect={false}
          onChange={(from) => set({ from: from ?? "", time: from ? "created" : "" })}
        />
        {(["name", "tag", "by", "schedule", "to"] as const).map((name) =>
          filter[name] ? (
            <button key={name} type="button" className="chip" aria-pressed="true" onClick={() => set({ [name]: "" })} aria-label={`Remove the filter ${name}`}>
              {name}: {filter[name]} <Icon name="cross" size={10} />
            </button>
          ) : null,
        )}
        {isNarrow(filter) && (
          <Button variant="subtle" size="compact-xs" onClick={() => change(none)}>
            Clear filters
          </Button>
        )}
      </Group>
    </div>
  );
}

/** How many jobs that have not ended are in each state; of those that have, nobody keeps count. */
function useCounts(queue: string): Partial<Record<string, number>> {
  const { data } = useStats();
  const open = queue ? data?.queues.find((one) => one.name === queue) : data?.jobs;
  if (!open) return {};
  return { running: open.running, pending: open.due, scheduled: open.waiting, blocked: open.blocked, creating: open.on_hold, cancelling: open.cancelling };
}

function StateChip({ state, count: found, on, toggle }: { state: string; count?: number; on: boolean; toggle: () => void }) {
  const look = lookOf(state);
  return (
    <button type="button" className={`chip tone-${look.tone}`} aria-pressed={on} onClick={toggle}>
      <span className="tone-text">
        <Icon name={look.icon} size={12} />
      </span>
      {look.word}
      {found ? <span className="count">{count(found)}</span> : null}
    </button>
  );
}

function Choice({ label, all, value, options, set }: { label: string; all: string; value: string; options: string[]; set: (value: string) => void }) {
  const data = [{ value: "", label: all }, ...[...new Set([...options, ...(value ? [value] : [])])].map((name) => ({ value: name, label: name }))];
  return <Select aria-label={label} size="xs" w={130} data={data} value={value} allowDeselect={false} searchable={data.length > 9} onChange={(name) => set(name ?? "")} />;
}

/** Taken over when it is entered, not with every key: each look costs the store something. */
function Typed({ label, value, set }: { label: string; value: string; set: (value: string) => void }) {
  const go = useNavigate();
  const [text, setText] = useState(value);
  const [given, setGiven] = useState(value);
  if (given !== value) {
    setGiven(value);
    setText(value);
  }
  return (
    <TextInput
      size="xs"
      w={220}
      aria-label={label}
      placeholder={label}
      leftSection={<Icon name="search" size={14} />}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      onBlur={() => text !== value && set(text.trim())}
      onKeyDown={(event) => event.key === "Enter" && (uuid.test(text.trim()) ? void go(`/jobs/${text.trim().toLowerCase()}`) : set(text.trim()))}
    />
  );
}

const toggled = (states: string[], state: string): string[] => (states.includes(state) ? states.filter((one) => one !== state) : [...states, state]);

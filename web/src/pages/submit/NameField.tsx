import { Alert, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { get } from "../../api/client";
import type { Job, Page } from "../../api/types";
import { standing } from "../../lib/states";
import { Icon } from "../../parts/Icon";
import { State } from "../../parts/State";
import type { Draft, Wrong } from "./draft";

type Props = { draft: Draft; set: (part: Partial<Draft>) => void; wrong: Wrong; required?: boolean };

/** The job's name, and at once a warning when a job of that name is running or waiting. */
export function NameField({ draft, set, wrong, required = false }: Props) {
  return (
    <>
      <TextInput label="Name" required={required} placeholder={required ? "nightly-backup" : "made from what it does"} value={draft.name} error={wrong.name} onChange={(e) => set({ name: e.currentTarget.value })} />
      <Conflict name={draft.name} onConflict={draft.onConflict || (draft.kind === "script" ? "reject" : "allow")} />
    </>
  );
}

const open = "running,cancelling,submitted,blocked";

const then: Record<string, string> = {
  reject: "This one would be refused. Choose “wait for it” to run it afterwards.",
  wait: "This one will wait until it has ended.",
  allow: "Both may run at once.",
  skip: "This one would not be made; you would get the other.",
  replace: "The other one will be cancelled first.",
};

function Conflict({ name, onConflict }: { name: string; onConflict: string }) {
  const [wanted] = useDebouncedValue(name.trim(), 250);
  const { data } = useQuery({
    queryKey: ["live", "conflict", wanted],
    queryFn: ({ signal }) => get<Page<Job>>("/jobs", { name: wanted, state: open, limit: 1 }, signal),
    enabled: wanted !== "",
  });
  const other = wanted ? data?.items[0] : undefined;
  if (!other) return null;
  return (
    <Alert variant="light" color="orange" className="caution" icon={<Icon name="bang" />} role="status" title={`“${other.name}” has not ended`}>
      <Text size="sm" component="div">
        <Link to={`/jobs/${other.id}`}>That job</Link> is <State of={standing(other)} />. {then[onConflict]}
      </Text>
    </Alert>
  );
}

import { Group, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { patch } from "../../api/client";
import type { Queue } from "../../api/types";
import { FormDialog } from "../../parts/form";
import { tell } from "../../parts/tell";

/** Limits of a queue, for all workers at once. Empty means none. */
export function Limits({ queue, close }: { queue: Queue; close: () => void }) {
  const [running, setRunning] = useState(text(queue.max_running));
  const [rate, setRate] = useState(text(queue.rate));
  const [keyRunning, setKeyRunning] = useState(text(queue.key_max_running));
  const [keyRate, setKeyRate] = useState(text(queue.key_rate));
  const queries = useQueryClient();
  const save = async () => {
    await patch(`/queues/${encodeURIComponent(queue.name)}`, { max_running: number(running), rate: rate.trim() || null, key_max_running: number(keyRunning), key_rate: keyRate.trim() || null });
    tell(`The limits of ${queue.name} hold at once.`);
    await queries.invalidateQueries({ queryKey: ["live"] });
  };
  return (
    <FormDialog opened close={close} title={`Limits of ${queue.name}`} verb="Set the limits" save={save}>
      <Group grow align="flex-end">
        <TextInput label="Running at once" placeholder="no limit" inputMode="numeric" value={running} onChange={(e) => setRunning(e.currentTarget.value.replace(/\D/g, ""))} />
        <TextInput label="Rate" placeholder="100/m" value={rate} onChange={(e) => setRate(e.currentTarget.value)} />
      </Group>
      <Group grow align="flex-end">
        <TextInput label="Running at once, per key" placeholder="no limit" inputMode="numeric" value={keyRunning} onChange={(e) => setKeyRunning(e.currentTarget.value.replace(/\D/g, ""))} />
        <TextInput label="Rate, per key" placeholder="10/s" value={keyRate} onChange={(e) => setKeyRate(e.currentTarget.value)} />
      </Group>
    </FormDialog>
  );
}

const text = (value: number | string | null | undefined): string => (value === null || value === undefined ? "" : String(value));
const number = (value: string): number | null => (value ? Number(value) : null);

import { Checkbox, Group, NumberInput, SegmentedControl, Select, Switch, TagsInput, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { post, put } from "../../api/client";
import type { Channel, Rule } from "../../api/types";
import { FormDialog } from "../../parts/form";
import { causes } from "./rule";

type Mail = Extract<Channel, { type: "email" }>;
type Entered = { type: Channel["type"]; url: string; isSecret: boolean; sign: string; host: string; port: number; security: Mail["security"]; user: string; password: string; sender: string; to: string[] };

/** When to tell whom. */
export function RuleDialog({ rule, close }: { rule: Rule | null; close: () => void }) {
  const [name, setName] = useState(rule?.name ?? "");
  const [on, setOn] = useState(rule?.on ?? "job_failed");
  const [names, setNames] = useState(rule?.names ?? []);
  const [queues, setQueues] = useState(rule?.queues ?? []);
  const [due, setDue] = useState(rule ? (rule.due ?? 0) : 1000);
  const [oldest, setOldest] = useState(rule?.oldest ?? 0);
  const [after, setAfter] = useState(rule?.after ?? 60);
  const [cooldown, setCooldown] = useState(rule?.cooldown ?? 300);
  const [enabled, setEnabled] = useState(rule?.enabled ?? true);
  const [entered, setEntered] = useState<Entered>(() => opened(rule?.channel));
  const queries = useQueryClient();
  const set = (part: Partial<Entered>) => setEntered((before) => ({ ...before, ...part }));
  const save = async () => {
    const backlog = on === "queue_backlog" ? { ...(due ? { due } : {}), ...(oldest ? { oldest } : {}) } : {};
    const body = { name: name.trim(), on, names, queues, after, cooldown, enabled, channel: channelOf(entered), ...backlog };
    if (rule) await put(`/alerts/${rule.id}`, body);
    else await post("/alerts", body);
    await queries.invalidateQueries({ queryKey: ["alerts"] });
  };
  return (
    <FormDialog opened close={close} title={rule ? `Change ${rule.name}` : "New rule"} verb="Keep the rule" save={save}>
      <TextInput label="Name" required placeholder="failures to the team" value={name} onChange={(e) => setName(e.currentTarget.value)} />
      <Select label="When" data={Object.entries(causes).map(([value, label]) => ({ value, label }))} value={on} allowDeselect={false} onChange={(value) => setOn(value ?? "job_failed")} />
      {on === "queue_backlog" && (
        <Group grow align="flex-start">
          <NumberInput label="Due jobs that are too many" min={0} value={due} onChange={(value) => setDue(Number(value) || 0)} />
          <NumberInput label="Or seconds that one waits" min={0} value={oldest} onChange={(value) => setOldest(Number(value) || 0)} />
        </Group>
      )}
      <Group grow align="flex-start">
        <TagsInput label="Only these names" placeholder={names.length ? "" : "all; mail.* works"} value={names} onChange={setNames} />
        <TagsInput label="Only these queues" placeholder={queues.length ? "" : "all"} value={queues} onChange={setQueues} />
      </Group>
      <Group grow align="flex-end">
        {on.startsWith("queue_") && <NumberInput label="Seconds for which it must hold" min={0} value={after} onChange={(value) => setAfter(Number(value) || 0)} />}
        <NumberInput label="Seconds between two messages about the same" min={0} value={cooldown} onChange={(value) => setCooldown(Number(value) || 0)} />
      </Group>
      <SegmentedControl aria-label="Channel" data={[{ value: "webhook", label: "Webhook" }, { value: "slack", label: "Slack" }, { value: "email", label: "Mail" }]} value={entered.type} onChange={(type) => set({ type: type as Channel["type"] })} style={{ alignSelf: "flex-start" }} />
      {entered.type === "email" ? <ByMail entered={entered} set={set} /> : <Hook entered={entered} set={set} />}
      <Switch size="sm" label="On" checked={enabled} onChange={(e) => setEnabled(e.currentTarget.checked)} />
    </FormDialog>
  );
}

type Part = { entered: Entered; set: (part: Partial<Entered>) => void };

function Hook({ entered, set }: Part) {
  return (
    <>
      <TextInput label={entered.isSecret ? "Name of the secret that holds its URL" : "URL"} required value={entered.url} onChange={(e) => set({ url: e.currentTarget.value })} />
      <Checkbox size="xs" label="The URL is kept as a secret" checked={entered.isSecret} onChange={(e) => set({ isSecret: e.currentTarget.checked, url: "" })} />
      {entered.type === "webhook" && <TextInput label="Sign with the secret" placeholder="name of a secret; empty: not signed" value={entered.sign} onChange={(e) => set({ sign: e.currentTarget.value })} />}
    </>
  );
}

const securities = [
  { value: "starttls", label: "STARTTLS" },
  { value: "tls", label: "TLS" },
  { value: "none", label: "none" },
];

function ByMail({ entered, set }: Part) {
  return (
    <>
      <Group align="flex-start" gap="sm" wrap="nowrap">
        <TextInput label="Mail server" required style={{ flex: 1 }} value={entered.host} onChange={(e) => set({ host: e.currentTarget.value })} />
        <NumberInput label="Port" w={90} value={entered.port} onChange={(value) => set({ port: Number(value) || 587 })} />
        <Select label="Security" w={120} data={securities} value={entered.security} allowDeselect={false} onChange={(value) => set({ security: value as Mail["security"] })} />
      </Group>
      <Group grow align="flex-start">
        <TextInput label="User" value={entered.user} onChange={(e) => set({ user: e.currentTarget.value })} />
        <TextInput label="Secret with the password" placeholder="name of a secret" value={entered.password} onChange={(e) => set({ password: e.currentTarget.value })} />
      </Group>
      <TextInput label="From" required placeholder="headway@example.com" value={entered.sender} onChange={(e) => set({ sender: e.currentTarget.value })} />
      <TagsInput label="To" required value={entered.to} onChange={(to) => set({ to })} />
    </>
  );
}

function opened(channel: Channel | undefined): Entered {
  const blank: Entered = { type: "webhook", url: "", isSecret: false, sign: "", host: "", port: 587, security: "starttls", user: "", password: "", sender: "", to: [] };
  if (!channel) return blank;
  if (channel.type === "email") return { ...blank, ...channel, port: channel.port ?? 587, user: channel.user ?? "", password: channel.password?.secret ?? "" };
  const isSecret = typeof channel.url !== "string";
  return { ...blank, type: channel.type, isSecret, url: typeof channel.url === "string" ? channel.url : channel.url.secret, sign: (channel.type === "webhook" && channel.sign?.secret) || "" };
}

function channelOf(entered: Entered): Channel {
  if (entered.type === "email") {
    const { host, port, security, sender, to, user, password } = entered;
    return { type: "email", host, port, security, sender, to, user: user || null, password: password ? secret(password) : null };
  }
  const url = entered.isSecret ? secret(entered.url) : entered.url;
  if (entered.type === "slack") return { type: "slack", url };
  return { type: "webhook", url, sign: entered.sign ? secret(entered.sign) : null };
}

const secret = (name: string) => ({ secret: name, prefix: "" });

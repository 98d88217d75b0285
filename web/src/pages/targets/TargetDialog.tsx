import { Alert, Button, Code, Group, Modal, NumberInput, PasswordInput, SegmentedControl, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { patch, post } from "../../api/client";
import type { Probe, Target } from "../../api/types";
import { FormDialog } from "../../parts/form";
import { Icon } from "../../parts/Icon";
import { Trouble, Waiting } from "../../parts/Notices";

type Props = { target?: Target; close: () => void; done: (name: string) => void };

/** A server: its address and credential first, then a look at the key that it shows, which a person confirms. */
export function TargetDialog({ target, close, done }: Props) {
  const [made, setMade] = useState<Target | null>(null);
  return made ? <Confirm target={made} close={() => done(made.name)} /> : <Address target={target} close={close} next={setMade} />;
}

function Address({ target, close, next }: { target?: Target; close: () => void; next: (made: Target) => void }) {
  const [name, setName] = useState(target?.name ?? "");
  const [host, setHost] = useState(target?.host ?? "");
  const [port, setPort] = useState(target?.port ?? 22);
  const [user, setUser] = useState(target?.user ?? "");
  const [by, setBy] = useState("password");
  const [password, setPassword] = useState("");
  const [key, setKey] = useState("");
  const [passphrase, setPassphrase] = useState("");
  const queries = useQueryClient();
  const secret = by === "password" ? password && { password } : key && { private_key: key.endsWith("\n") ? key : `${key}\n`, ...(passphrase ? { passphrase } : {}) };
  const save = async () => {
    const body = { name: name.trim(), host: host.trim(), port, user: user.trim(), ...(secret ? { credential: secret } : {}) };
    const made = target ? await patch<Target>(`/targets/${target.id}`, body) : await post<Target>("/targets", body);
    await queries.invalidateQueries({ queryKey: ["live", "targets"] });
    next(made);
  };
  return (
    <FormDialog opened close={() => undefined} title={target ? `Change ${target.name}` : "New target"} verb="Save and look at its key" save={save} leave={close}>
      <TextInput label="Name" required placeholder="db-1" value={name} onChange={(e) => setName(e.currentTarget.value)} />
      <Group align="flex-start" gap="sm" wrap="nowrap">
        <TextInput label="Address" required style={{ flex: 1 }} placeholder="db-1.example.org" value={host} onChange={(e) => setHost(e.currentTarget.value)} />
        <NumberInput label="Port" w={90} min={1} max={65535} value={port} onChange={(value) => setPort(Number(value) || 22)} />
      </Group>
      <TextInput label="User" required placeholder="deploy" autoComplete="off" value={user} onChange={(e) => setUser(e.currentTarget.value)} />
      <SegmentedControl aria-label="Credential" data={[{ value: "password", label: "Password" }, { value: "key", label: "Private key" }]} value={by} onChange={setBy} style={{ alignSelf: "flex-start" }} />
      {by === "password" ? (
        <PasswordInput label="Password" required={!target} autoComplete="new-password" placeholder={target?.credential ? "leave empty to keep what is there" : ""} value={password} onChange={(e) => setPassword(e.currentTarget.value)} />
      ) : (
        <>
          <Textarea label="Private key" required={!target} autosize minRows={4} maxRows={10} autoComplete="off" spellCheck={false} placeholder="-----BEGIN OPENSSH PRIVATE KEY-----" value={key} onChange={(e) => setKey(e.currentTarget.value)} styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }} />
          <PasswordInput label="Passphrase of the key" autoComplete="new-password" value={passphrase} onChange={(e) => setPassphrase(e.currentTarget.value)} />
        </>
      )}
      <Text size="xs" c="dimmed">
        It is encrypted, bound to this address, and never shown again.
      </Text>
    </FormDialog>
  );
}

/** What a worker found there. Only a person can tell whether the key that it showed is the right one. */
function Confirm({ target, close }: { target: Target; close: () => void }) {
  const [probe, setProbe] = useState<Probe | null>(null);
  const [trouble, setTrouble] = useState<unknown>(null);
  const [begun, setBegun] = useState(false);
  const queries = useQueryClient();
  const look = async () => {
    setTrouble(null);
    setProbe(null);
    try {
      setProbe(await post<Probe>(`/targets/${target.id}/probe`, {}));
    } catch (error) {
      setTrouble(error);
    }
  };
  const trust = async (hostKey: string) => {
    try {
      await post(`/targets/${target.id}/trust`, { host_key: hostKey });
      await queries.invalidateQueries({ queryKey: ["live", "targets"] });
      await look();
    } catch (error) {
      setTrouble(error);
    }
  };
  if (!begun) {
    setBegun(true);
    void look();
  }
  return (
    <Modal opened onClose={close} title={`Is this ${target.name}?`} size="md">
      <Stack gap="sm">
        {trouble !== null && <Trouble error={trouble} again={() => void look()} />}
        {!probe && trouble === null && (
          <>
            <Text size="sm">A worker tries to reach {target.host} …</Text>
            <Waiting rows={2} />
          </>
        )}
        {probe && <Found probe={probe} target={target} trust={trust} />}
        <Group justify="flex-end" gap="xs">
          {probe && !probe.ok && (
            <Button variant="default" onClick={() => void look()}>
              Try again
            </Button>
          )}
          <Button variant={probe?.ok ? "filled" : "default"} onClick={close}>
            {probe?.ok ? "Done" : "Leave it for later"}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function Found({ probe, target, trust }: { probe: Probe; target: Target; trust: (hostKey: string) => Promise<void> }) {
  if (probe.ok) {
    return (
      <Alert variant="light" icon={<Icon name="check" />} title="It answers, and the login works">
        {probe.worker && <Text size="sm">Tried by {probe.worker}.</Text>}
      </Alert>
    );
  }
  if (probe.host_key && !probe.trusted) {
    return (
      <>
        <Text size="sm">{target.host} shows this key:</Text>
        <Code block style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>{probe.fingerprint}</Code>
        <Text size="sm" c="dimmed">
          Compare it with what <code>ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub</code> prints on the server itself. From now on no other key is accepted.
        </Text>
        <Button style={{ alignSelf: "flex-start" }} leftSection={<Icon name="check" size={14} />} onClick={() => void trust(probe.host_key!)}>
          Yes, this is its key
        </Button>
      </>
    );
  }
  return (
    <Alert color="red" variant="light" icon={<Icon name="bang" />} title={probe.failed ? `It failed at: ${probe.failed.replaceAll("_", " ")}` : "It could not be reached"}>
      <Text size="sm">{probe.message}</Text>
    </Alert>
  );
}

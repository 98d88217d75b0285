import { Button, Group, PasswordInput, Text, Textarea, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";

import { get, put, remove } from "../../api/client";
import type { Page as PageOf, Secret } from "../../api/types";
import { useConfirm } from "../../parts/confirm";
import { DataTable } from "../../parts/DataTable";
import { FormDialog } from "../../parts/form";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { tell } from "../../parts/tell";
import { When } from "../../parts/When";

const column = createColumnHelper<Secret>();

/** Named secrets: written here, used by jobs, never shown again. */
export function Secrets() {
  const secrets = useQuery({ queryKey: ["secrets"], queryFn: () => get<PageOf<Secret>>("/secrets") });
  const [editing, setEditing] = useState<Secret | "new" | null>(null);
  const { ask, dialog } = useConfirm();
  const queries = useQueryClient();
  const columns = useMemo(
    () => [
      column.accessor("name", { header: "Secret", cell: ({ getValue }) => <b className="mono">{getValue()}</b> }),
      column.accessor("note", { header: "For", cell: ({ getValue }) => getValue() ?? "–" }),
      column.accessor("updated_at", { header: "Changed", cell: ({ getValue, row }) => <When at={getValue() ?? row.original.created_at} /> }),
      column.accessor("updated_by", { header: "By", cell: ({ getValue }) => getValue() ?? "–" }),
      column.display({
        id: "acts",
        header: "Actions",
        cell: ({ row: { original: secret } }) => (
          <Group gap={4} wrap="nowrap">
            <Button size="compact-xs" variant="default" onClick={() => setEditing(secret)}>
              Replace
            </Button>
            <Button
              size="compact-xs"
              variant="default"
              onClick={() =>
                ask({
                  title: `Delete the secret ${secret.name}?`,
                  body: "Jobs and schedules that name it will fail until it is there again.",
                  verb: "Delete the secret",
                  danger: true,
                  act: async () => {
                    await remove(`/secrets/${encodeURIComponent(secret.name)}`);
                    await queries.invalidateQueries({ queryKey: ["secrets"] });
                  },
                })
              }
            >
              Delete
            </Button>
          </Group>
        ),
      }),
    ],
    [ask, queries],
  );
  const add = (
    <Button leftSection={<Icon name="plus" size={14} />} onClick={() => setEditing("new")}>
      New secret
    </Button>
  );
  return (
    <Page title="Secrets" actions={add}>
      <section className="panel">
        <Ask of={secrets}>
          {({ items }) =>
            items.length ? (
              <DataTable label="Secrets" rows={items} columns={columns} idOf={(secret) => secret.name} />
            ) : (
              <Empty icon="secrets" title="No secrets yet" action={add}>
                Keep an API key here and name it in a header of an HTTP job, or let a script read it from a file. It is encrypted, and never shown again.
              </Empty>
            )
          }
        </Ask>
      </section>
      {editing && <SecretDialog secret={editing === "new" ? null : editing} close={() => setEditing(null)} />}
      {dialog}
    </Page>
  );
}

function SecretDialog({ secret, close }: { secret: Secret | null; close: () => void }) {
  const [name, setName] = useState(secret?.name ?? "");
  const [value, setValue] = useState("");
  const [note, setNote] = useState(secret?.note ?? "");
  const [manyLines, setManyLines] = useState(false);
  const queries = useQueryClient();
  const save = async () => {
    await put(`/secrets/${encodeURIComponent(name.trim())}`, { value, ...(note ? { note } : {}) });
    await queries.invalidateQueries({ queryKey: ["secrets"] });
    tell(`The secret ${name} is kept.`);
  };
  return (
    <FormDialog opened close={close} title={secret ? `Replace ${secret.name}` : "New secret"} verb="Keep it" save={save}>
      {!secret && <TextInput label="Name" required placeholder="billing-api-key" value={name} onChange={(e) => setName(e.currentTarget.value)} />}
      {manyLines ? (
        <Textarea label="Value" required autosize minRows={4} autoComplete="off" value={value} onChange={(e) => setValue(e.currentTarget.value)} />
      ) : (
        <PasswordInput label="Value" required autoComplete="new-password" value={value} onChange={(e) => setValue(e.currentTarget.value)} />
      )}
      <Group justify="space-between">
        <Text size="xs" c="dimmed">
          It can be replaced and deleted, never read.
        </Text>
        <Button variant="subtle" size="compact-xs" onClick={() => setManyLines(!manyLines)}>
          {manyLines ? "One line" : "Several lines"}
        </Button>
      </Group>
      <TextInput label="What it is for" value={note} onChange={(e) => setNote(e.currentTarget.value)} />
    </FormDialog>
  );
}

import { Alert, Button, Code, Group, MultiSelect, Select, TagsInput, Text, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";

import { get, post, remove } from "../../api/client";
import { useKinds } from "../../api/names";
import type { NewToken, Page as PageOf, Token } from "../../api/types";
import { useConfirm } from "../../parts/confirm";
import { DataTable } from "../../parts/DataTable";
import { FormDialog } from "../../parts/form";
import { Icon } from "../../parts/Icon";
import { Copy } from "../../parts/Ident";
import { Ask, Empty } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { When } from "../../parts/When";
import { roles } from "./roles";

const column = createColumnHelper<Token>();
const lifetimes = [
  { value: "", label: "never" },
  { value: "7", label: "in a week" },
  { value: "30", label: "in a month" },
  { value: "90", label: "in three months" },
  { value: "365", label: "in a year" },
];

/** What programs show. A token is shown once, when it is made. */
export function Tokens() {
  const tokens = useQuery({ queryKey: ["tokens"], queryFn: () => get<PageOf<Token>>("/tokens") });
  const [adding, setAdding] = useState(false);
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  const { ask, dialog } = useConfirm();
  const queries = useQueryClient();
  const columns = useMemo(
    () => [
      column.accessor("name", { header: "Token", cell: ({ getValue }) => <b>{getValue()}</b> }),
      column.accessor("role", { header: "Role" }),
      column.display({ id: "only", header: "Only for", cell: ({ row: { original: token } }) => [token.kinds && `kinds ${token.kinds.join(", ")}`, token.queues && `queues ${token.queues.join(", ")}`].filter(Boolean).join("; ") || "everything" }),
      column.accessor("used_at", { header: "Last used", cell: ({ getValue }) => <When at={getValue()} fallback="never" /> }),
      column.accessor("expires_at", { header: "Expires", cell: ({ getValue }) => <When at={getValue()} fallback="never" /> }),
      column.display({
        id: "acts",
        header: "Actions",
        cell: ({ row: { original: token } }) => (
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => ask({
              title: `Revoke the token ${token.name}?`,
              body: "Programs that use it are refused from now on.",
              verb: "Revoke the token",
              danger: true,
              act: async () => {
                await remove(`/tokens/${encodeURIComponent(token.name)}`);
                await queries.invalidateQueries({ queryKey: ["tokens"] });
              },
            })}
          >
            Revoke
          </Button>
        ),
      }),
    ],
    [ask, queries],
  );
  return (
    <Panel title="API tokens" bare aside={<Button size="compact-xs" leftSection={<Icon name="plus" size={12} />} onClick={() => setAdding(true)}>New token</Button>}>
      {made && (
        <Alert m="sm" variant="light" title={`The token ${made.name}, shown this once`} withCloseButton closeButtonLabel="Close" onClose={() => setMade(null)}>
          <Group gap="xs" wrap="nowrap">
            <Code style={{ overflowWrap: "anywhere" }}>{made.token}</Code>
            <Copy value={made.token} label="Copy the token" />
          </Group>
          <Text size="xs" mt={6}>Keep it now: it is stored as a digest and can't be shown again.</Text>
        </Alert>
      )}
      <Ask of={tokens} rows={3}>
        {({ items }) => (items.length ? <DataTable label="API tokens" rows={items} columns={columns} idOf={(token) => token.name} /> : <Empty icon="secrets" title="No tokens yet">Make one for each program that calls the API.</Empty>)}
      </Ask>
      {adding && <TokenDialog close={() => setAdding(false)} made={setMade} />}
      {dialog}
    </Panel>
  );
}

function TokenDialog({ close, made }: { close: () => void; made: (token: { name: string; token: string }) => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("operator");
  const [kinds, setKinds] = useState<string[]>([]);
  const [queues, setQueues] = useState<string[]>([]);
  const [days, setDays] = useState("90");
  const known = useKinds();
  const queries = useQueryClient();
  const save = async () => {
    const answer = await post<NewToken>("/tokens", {
      name: name.trim(),
      role,
      ...(kinds.length ? { kinds } : {}),
      ...(queues.length ? { queues } : {}),
      ...(days ? { expires_at: new Date(Date.now() + Number(days) * 86_400_000).toISOString() } : {}),
    });
    made({ name: name.trim(), token: answer.token });
    await queries.invalidateQueries({ queryKey: ["tokens"] });
  };
  return (
    <FormDialog opened close={close} title="New token" verb="Make the token" save={save}>
      <TextInput label="Name" required placeholder="ci" value={name} onChange={(e) => setName(e.currentTarget.value)} />
      <Select label="Role" data={roles} value={role} allowDeselect={false} onChange={(value) => setRole(value ?? "viewer")} />
      <MultiSelect label="Only these kinds" placeholder={kinds.length ? "" : "all kinds"} data={known} value={kinds} onChange={setKinds} />
      <TagsInput label="Only these queues" placeholder={queues.length ? "" : "all queues"} value={queues} onChange={setQueues} />
      <Select label="Expires" data={lifetimes} value={days} allowDeselect={false} onChange={(value) => setDays(value ?? "")} />
    </FormDialog>
  );
}

import { Button, Group, PasswordInput, Select, Switch, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";

import { get, patch, post, remove } from "../../api/client";
import type { Page as PageOf, Role, User } from "../../api/types";
import { useConfirm } from "../../parts/confirm";
import { DataTable } from "../../parts/DataTable";
import { FormDialog } from "../../parts/form";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { When } from "../../parts/When";
import { roles } from "./roles";

const column = createColumnHelper<User>();

/** People who log in with a password. */
export function Users() {
  const users = useQuery({ queryKey: ["users"], queryFn: () => get<PageOf<User>>("/users") });
  const [editing, setEditing] = useState<User | "new" | null>(null);
  const { ask, dialog } = useConfirm();
  const queries = useQueryClient();
  const columns = useMemo(
    () => [
      column.accessor("name", { header: "User", cell: ({ getValue }) => <b>{getValue()}</b> }),
      column.accessor("role", { header: "Role" }),
      column.display({ id: "state", header: "State", cell: ({ row: { original: user } }) => (user.disabled ? <span className="state tone-cancelled"><Icon name="slash" size={12} /> disabled</span> : <span className="state tone-completed"><Icon name="check" size={12} /> active</span>) }),
      column.accessor("created_at", { header: "Since", cell: ({ getValue }) => <When at={getValue()} /> }),
      column.display({
        id: "acts",
        header: "Actions",
        cell: ({ row: { original: user } }) => (
          <Group gap={4} wrap="nowrap">
            <Button size="compact-xs" variant="default" onClick={() => setEditing(user)}>Change</Button>
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => ask({
                title: `Delete the user ${user.name}?`,
                body: "Their sessions end within seconds. What they did stays in the audit log.",
                verb: "Delete the user",
                danger: true,
                act: async () => {
                  await remove(`/users/${encodeURIComponent(user.name)}`);
                  await queries.invalidateQueries({ queryKey: ["users"] });
                },
              })}
            >
              Delete
            </Button>
          </Group>
        ),
      }),
    ],
    [ask, queries],
  );
  return (
    <Panel title="Users" bare aside={<Button size="compact-xs" leftSection={<Icon name="plus" size={12} />} onClick={() => setEditing("new")}>New user</Button>}>
      <Ask of={users} rows={3}>
        {({ items }) => (items.length ? <DataTable label="Users" rows={items} columns={columns} idOf={(user) => user.name} /> : <Empty icon="access" title="No users yet">You came by a login link or a token. Make a user for each person who needs the page.</Empty>)}
      </Ask>
      {editing && <UserDialog user={editing === "new" ? null : editing} close={() => setEditing(null)} />}
      {dialog}
    </Panel>
  );
}

function UserDialog({ user, close }: { user: User | null; close: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState(user?.role ?? "viewer");
  const [password, setPassword] = useState("");
  const [disabled, setDisabled] = useState(user?.disabled ?? false);
  const queries = useQueryClient();
  const save = async () => {
    if (user) await patch(`/users/${encodeURIComponent(user.name)}`, { role, disabled, ...(password ? { password } : {}) });
    else await post("/users", { name: name.trim(), role, password });
    await queries.invalidateQueries({ queryKey: ["users"] });
  };
  return (
    <FormDialog opened close={close} title={user ? `Change ${user.name}` : "New user"} verb={user ? "Save" : "Make the user"} save={save}>
      {!user && <TextInput label="Name" required value={name} autoComplete="off" onChange={(e) => setName(e.currentTarget.value)} />}
      <Select label="Role" data={roles} value={role} allowDeselect={false} onChange={(value) => setRole((value as Role) ?? "viewer")} />
      <PasswordInput label={user ? "New password" : "Password"} required={!user} placeholder={user ? "leave empty to keep it" : "at least 12 characters"} autoComplete="new-password" value={password} onChange={(e) => setPassword(e.currentTarget.value)} />
      {user && <Switch size="sm" label="Disabled" checked={disabled} onChange={(e) => setDisabled(e.currentTarget.checked)} />}
    </FormDialog>
  );
}

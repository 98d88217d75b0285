import { Button, Group, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";

import { post, remove } from "../../api/client";
import { useTargets } from "../../api/targets";
import type { Probe, Target } from "../../api/types";
import { useMay } from "../../app/session";
import { useConfirm } from "../../parts/confirm";
import { DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { tell, tellTrouble } from "../../parts/tell";
import { TargetDialog } from "./TargetDialog";

const column = createColumnHelper<Target>();

/** Servers that scripts run on. */
export function Targets() {
  const targets = useTargets();
  const may = useMay();
  const [editing, setEditing] = useState<Target | "new" | null>(null);
  const { ask, dialog } = useConfirm();
  const queries = useQueryClient();
  const columns = useMemo(() => {
    const probe = async (target: Target) => {
      try {
        const answer = await post<Probe>(`/targets/${target.id}/probe`, {});
        if (answer.ok) tell(`${target.name} answers${answer.worker ? `; asked by ${answer.worker}` : ""}.`);
        else tellTrouble(new Error(`${target.name}: ${answer.message}`));
      } catch (error) {
        tellTrouble(error);
      }
    };
    const shown = [
      column.accessor("name", {
        header: "Target",
        cell: ({ row: { original: one } }) => (
          <>
            <b>{one.name}</b>
            {one.description && <Text size="xs" c="dimmed">{one.description}</Text>}
          </>
        ),
      }),
      column.display({ id: "address", header: "Address", cell: ({ row: { original: one } }) => (one.kind === "local" ? "the worker's own machine" : <span className="mono">{`${one.user}@${one.host}:${one.port}`}</span>) }),
      column.accessor("fingerprint", { header: "Host key", cell: ({ getValue, row: { original: one } }) => (one.kind === "local" ? "–" : getValue() ? <span className="mono" title={getValue()!}>{getValue()!.slice(0, 22)}…</span> : <span className="state tone-failed"><Icon name="bang" size={12} /> not confirmed</span>) }),
      column.accessor("credential", { header: "Logs in by", cell: ({ getValue, row: { original: one } }) => (one.kind === "local" ? "–" : (getValue()?.replace("_", " ") ?? <span className="state tone-retrying"><Icon name="bang" size={12} /> nothing yet</span>)) }),
    ];
    if (!may("manage_targets")) return shown;
    return [
      ...shown,
      column.display({
        id: "acts",
        header: "Actions",
        cell: ({ row: { original: one } }) => (
          <Group gap={4} wrap="nowrap">
            <Button size="compact-xs" variant="default" onClick={() => void probe(one)}>Test</Button>
            <Button size="compact-xs" variant="default" onClick={() => setEditing(one)}>Edit</Button>
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => ask({
                title: `Delete the target ${one.name}?`,
                body: "Its credential is gone with it. As long as jobs that name it have not ended, it stays.",
                verb: "Delete the target",
                danger: true,
                act: async () => {
                  await remove(`/targets/${one.id}`);
                  await queries.invalidateQueries({ queryKey: ["live", "targets"] });
                },
              })}
            >
              Delete
            </Button>
          </Group>
        ),
      }),
    ];
  }, [may, ask, queries]);
  const add = may("manage_targets") && (
    <Button leftSection={<Icon name="plus" size={14} />} onClick={() => setEditing("new")}>
      New target
    </Button>
  );
  return (
    <Page title="Targets" actions={add}>
      <section className="panel">
        <Ask of={targets}>
          {({ items }) =>
            items.length ? (
              <DataTable label="Targets" rows={items} columns={columns} idOf={(one) => one.id} />
            ) : (
              <Empty icon="targets" title="No targets yet" action={add}>
                A target is a server that scripts run on: its address, a user, and a password or key that is encrypted and never shown again.
              </Empty>
            )
          }
        </Ask>
      </section>
      {editing && <TargetDialog target={editing === "new" ? undefined : editing} close={() => setEditing(null)} done={() => setEditing(null)} />}
      {dialog}
    </Page>
  );
}

import { Button, Group, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";

import { get, post, remove } from "../../api/client";
import type { Message, Page as PageOf, Rule } from "../../api/types";
import { useMay } from "../../app/session";
import { useConfirm } from "../../parts/confirm";
import { DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { tell, tellTrouble } from "../../parts/tell";
import { When } from "../../parts/When";
import { causes } from "./rule";
import { RuleDialog } from "./RuleDialog";

const column = createColumnHelper<Rule>();

/** Who is told when something goes wrong. */
export function Alerts() {
  const may = useMay();
  const rules = useQuery({ queryKey: ["alerts"], queryFn: () => get<PageOf<Rule>>("/alerts"), enabled: may("administer") });
  const [editing, setEditing] = useState<Rule | "new" | null>(null);
  const { ask, dialog } = useConfirm();
  const queries = useQueryClient();
  const columns = useMemo(() => {
    const test = async (rule: Rule) => {
      try {
        const answer = await post<Message>(`/alerts/${rule.id}/test`);
        if (answer.error) tellTrouble(new Error(answer.error));
        else tell(`A test message of ${rule.name} was delivered.`);
      } catch (error) {
        tellTrouble(error);
      }
    };
    return [
      column.accessor("name", { header: "Rule", cell: ({ getValue }) => <b>{getValue()}</b> }),
      column.accessor("on", { header: "When", cell: ({ row: { original: rule } }) => <Condition rule={rule} /> }),
      column.accessor("channel", { header: "Tells", cell: ({ getValue }) => getValue().type }),
      column.accessor("enabled", { header: "State", cell: ({ getValue }) => (getValue() ? <span className="state tone-completed"><Icon name="check" size={12} /> on</span> : <span className="state tone-cancelled"><Icon name="pause" size={12} /> off</span>) }),
      column.display({ id: "last", header: "Last message", cell: ({ row: { original: rule } }) => <Last id={rule.id} /> }),
      column.display({
        id: "acts",
        header: "Actions",
        cell: ({ row: { original: rule } }) => (
          <Group gap={4} wrap="nowrap">
            <Button size="compact-xs" variant="default" onClick={() => void test(rule)}>Test</Button>
            <Button size="compact-xs" variant="default" onClick={() => setEditing(rule)}>Change</Button>
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => ask({
                title: `Delete the rule ${rule.name}?`,
                body: "Nobody is told by it any more.",
                verb: "Delete the rule",
                danger: true,
                act: async () => {
                  await remove(`/alerts/${rule.id}`);
                  await queries.invalidateQueries({ queryKey: ["alerts"] });
                },
              })}
            >
              Delete
            </Button>
          </Group>
        ),
      }),
    ];
  }, [ask, queries]);
  const add = (
    <Button leftSection={<Icon name="plus" size={14} />} onClick={() => setEditing("new")}>
      New rule
    </Button>
  );
  if (!may("administer")) {
    return (
      <Page title="Alerts">
        <section className="panel"><Empty icon="alerts" title="Alerts are for administrators">They say who is told when jobs fail or queues back up.</Empty></section>
      </Page>
    );
  }
  return (
    <Page title="Alerts" actions={add}>
      <section className="panel">
        <Ask of={rules}>
          {({ items }) =>
            items.length ? (
              <DataTable label="Alert rules" rows={items} columns={columns} idOf={(rule) => rule.id} />
            ) : (
              <Empty icon="alerts" title="Nobody is told yet" action={add}>
                A rule sends a message, to a webhook, to Slack or by mail, when jobs fail, schedules are missed, workers are lost or queues back up.
              </Empty>
            )
          }
        </Ask>
      </section>
      {editing && <RuleDialog rule={editing === "new" ? null : editing} close={() => setEditing(null)} />}
      {dialog}
    </Page>
  );
}

function Condition({ rule }: { rule: Rule }) {
  const of = [...rule.names, ...rule.queues.map((queue) => `queue ${queue}`)].join(", ");
  const limits = [rule.due && `${rule.due} due`, rule.oldest && `behind by ${rule.oldest} s`].filter(Boolean).join(" or ");
  return (
    <>
      {causes[rule.on] ?? rule.on}
      {(of || limits) && <Text size="xs" c="dimmed">{[of, limits].filter(Boolean).join(" · ")}</Text>}
    </>
  );
}

function Last({ id }: { id: string }) {
  const { data } = useQuery({ queryKey: ["alerts", id, "messages"], queryFn: () => get<PageOf<Message>>(`/alerts/${id}/messages`, { limit: 1 }) });
  const last = data?.items[0];
  if (!last) return <>–</>;
  return (
    <>
      <When at={last.created_at} />
      {last.error && !last.delivered_at && <Text size="xs" className="tone-failed tone-text truncate" maw={220} title={last.error}>{last.error}</Text>}
    </>
  );
}

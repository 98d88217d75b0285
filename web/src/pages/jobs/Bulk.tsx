import { Button, Group, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { post } from "../../api/client";
import { asQuery, useJobActs, type Verb } from "../../api/jobs";
import type { BulkAnswer } from "../../api/types";
import { exact, plural } from "../../lib/numbers";
import { useConfirm } from "../../parts/confirm";
import { Icon, type IconName } from "../../parts/Icon";
import { tell, tellTrouble } from "../../parts/tell";
import { isNarrow, type Filter } from "./filter";

const verbs: { verb: Verb; word: string; icon: IconName; danger: boolean; done: string; past: string }[] = [
  { verb: "cancel", word: "Cancel", icon: "slash", danger: true, done: "cancelled", past: "cancelled" },
  { verb: "retry", word: "Retry", icon: "retry", danger: false, done: "to be retried", past: "retried" },
  { verb: "delete", word: "Delete", icon: "trash", danger: true, done: "deleted", past: "deleted" },
];

type Props = { filter: Filter; selected: ReadonlySet<string>; clear: () => void };

/** Acts on the rows selected, or on all that match, however many; the service counts them before it is confirmed. */
export function Bulk({ filter, selected, clear }: Props) {
  const { ask, dialog } = useConfirm();
  const { act } = useJobActs();
  const queries = useQueryClient();
  const [counting, setCounting] = useState<Verb | null>(null);

  const onSelected = ({ verb, word, danger, done }: (typeof verbs)[number]) => {
    const ids = [...selected];
    ask({
      title: `${word} ${plural(ids.length, "job")}?`,
      body: verb === "delete" ? "Jobs, results, output and their places in de-duplication will be gone." : `The ${plural(ids.length, "job")} you selected.`,
      verb: `${word} ${plural(ids.length, "job")}`,
      danger,
      act: async () => {
        const ends = await Promise.allSettled(ids.map((id) => act(verb, id)));
        const refused = ends.filter((end) => end.status === "rejected");
        clear();
        tell(`${plural(ids.length - refused.length, "job")} ${done}.`);
        if (refused[0]) tellTrouble(refused[0].reason);
      },
    });
  };

  const onAll = async ({ verb, word, danger, done, past }: (typeof verbs)[number]) => {
    setCounting(verb);
    const body = { action: verb, filter: dense(asQuery(filter, new Date())) };
    try {
      const { matched: found } = await post<BulkAnswer>("/jobs/bulk", { ...body, dry_run: true });
      ask({
        title: `${word} all ${plural(found, "job")} that match?`,
        body: `${plural(found, "job")} match now and can be ${past}. Those that come to match while this is done may be included.`,
        verb: `${word} ${plural(found, "job")}`,
        danger,
        act: async () => {
          const answer = await post<BulkAnswer>("/jobs/bulk", { ...body, dry_run: false });
          clear();
          tell(`${plural(answer.done, "job")} ${done}${answer.refused ? `, ${exact(answer.refused)} could not be` : ""}.`);
          await queries.invalidateQueries({ queryKey: ["live"] });
        },
      });
    } catch (error) {
      tellTrouble(error);
    } finally {
      setCounting(null);
    }
  };

  if (!selected.size && !isNarrow(filter)) {
    return (
      <Text size="xs" c="dimmed" px="sm" py={8} style={{ borderTop: "1px solid var(--line-soft)" }}>
        Select rows, or narrow the list, to cancel, retry or delete many jobs at once.
      </Text>
    );
  }
  return (
    <Group gap="xs" px="sm" py={6} style={{ borderTop: "1px solid var(--line-soft)" }}>
      <Text size="xs" c="dimmed" miw={90}>
        {selected.size ? `${exact(selected.size)} selected` : "All that match:"}
      </Text>
      {verbs.map((one) => (
        <Button
          key={one.verb}
          size="compact-xs"
          variant="default"
          leftSection={<Icon name={one.icon} size={12} />}
          loading={counting === one.verb}
          onClick={() => (selected.size ? onSelected(one) : void onAll(one))}
        >
          {one.word}
          {selected.size ? "" : " all"}
        </Button>
      ))}
      {selected.size > 0 && (
        <Button size="compact-xs" variant="subtle" onClick={clear}>
          Unselect
        </Button>
      )}
      {dialog}
    </Group>
  );
}

/** Without what is not set: the service takes no empty conditions. */
function dense(query: ReturnType<typeof asQuery>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query)
      .filter(([, value]) => value !== undefined && value !== "" && value !== null)
      .map(([name, value]) => [name, name === "state" || name === "tags" ? String(value).split(",") : value]),
  );
}

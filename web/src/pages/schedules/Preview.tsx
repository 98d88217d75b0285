import { Text } from "@mantine/core";

import { Problem } from "../../api/problem";
import type { Fire, Page } from "../../api/types";
import { clockIn } from "../../lib/time";
import { Icon } from "../../parts/Icon";
import { Waiting } from "../../parts/Notices";
import { When } from "../../parts/When";

const notes: Record<string, string> = {
  gap: "clocks jump ahead here: it fires at the end of the gap",
  fold: "clocks go back here: this time comes twice, it fires once",
};

/** The next fires on the clocks of the schedule's zone, with marks where the clocks jump. */
export function Preview({ of, zone }: { of: { data: Page<Fire> | undefined; error: unknown; isPending: boolean; fetchStatus?: string }; zone: string }) {
  if (of.error) return <Text size="sm" c="red" role="alert">{Problem.of(of.error).advice}</Text>;
  if (!of.data) return of.fetchStatus === "idle" ? <Text size="sm" c="dimmed">Shows here while you write.</Text> : <Waiting rows={4} />;
  if (!of.data.items.length) return <Text size="sm" c="dimmed">It never fires again.</Text>;
  return (
    <ol className="fires">
      {of.data.items.map((fire) => (
        <li key={fire.at}>
          <span className="nowrap">{clockIn(new Date(fire.at), zone)}</span>{" "}
          <Text span size="xs" c="dimmed">
            <When at={fire.at} />
          </Text>
          {fire.note && (
            <Text size="xs" className="tone-retrying tone-text">
              <Icon name="bang" size={11} /> {notes[fire.note] ?? fire.note}
            </Text>
          )}
        </li>
      ))}
    </ol>
  );
}

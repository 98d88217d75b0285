import { Text } from "@mantine/core";

import type { BatchItem } from "../../api/types";
import { plural } from "../../lib/numbers";
import { Ident } from "../../parts/Ident";
import { Panel } from "../../parts/Panel";
import { State } from "../../parts/State";
import { When } from "../../parts/When";

/** What became of each address: a new job, an earlier one that stands for it, or a refusal. */
export function BatchAnswer({ items, urls }: { items: BatchItem[]; urls: string[] }) {
  const earlier = items.filter((item) => item.deduplicated).length;
  const refused = items.filter((item) => item.error).length;
  const told = [plural(items.length - earlier - refused, "new job"), earlier && `${plural(earlier, "address", "addresses")} already fetched or on the way`, refused && `${refused} refused`].filter(Boolean).join(", ");
  return (
    <Panel title={told} bare>
      <div role="status" className="table-scroll" style={{ maxHeight: 420 }}>
        <table className="grid stack">
          <thead>
            <tr>
              <th scope="col">URL</th>
              <th scope="col">What became of it</th>
              <th scope="col">Job</th>
            </tr>
          </thead>
          <tbody>
            {items.map((item, i) => (
              <tr key={i}>
                <td data-label="URL">
                  <div className="cell truncate" style={{ maxWidth: 480 }}>
                    {urls[i]}
                  </div>
                </td>
                <td data-label="Answer">
                  <div className="cell">
                    <Told item={item} />
                  </div>
                </td>
                <td data-label="Job">
                  <div className="cell">{item.job && <Ident id={item.job.id} to={`/jobs/${item.job.id}`} />}</div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Told({ item }: { item: BatchItem }) {
  if (item.error) return <Text size="sm" c="red">{item.error.detail || item.error.title}</Text>;
  if (item.deduplicated && item.job) {
    return (
      <Text size="sm" component="span">
        already fetched, <When at={item.job.created_at} /> <State of={item.job.state} />
      </Text>
    );
  }
  return <Text size="sm" component="span">new</Text>;
}

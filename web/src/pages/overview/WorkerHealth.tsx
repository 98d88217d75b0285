import { Text } from "@mantine/core";

import { useWorkers } from "../../api/stats";
import { ago } from "../../lib/time";
import { Ask, Empty } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { Health } from "../workers/Health";

/** Who works, how full their hands are, and who has gone silent. */
export function WorkerHealth() {
  const workers = useWorkers();
  return (
    <Panel title="Worker health" bare>
      <Ask of={workers} rows={3}>
        {({ items }) =>
          items.length ? (
            <ul className="plain-list">
              {items.slice(0, 8).map((worker) => (
                <li key={worker.id}>
                  <Health worker={worker} />
                  <span className="truncate" style={{ flex: 1 }} title={worker.name}>{worker.name}</span>
                  <Text size="xs" c="dimmed">{worker.fires && !worker.slots ? "scheduler" : `${worker.held} of ${worker.slots ?? "?"} slots`}</Text>
                  <Text size="xs" c="dimmed">{ago(worker.silent)}</Text>
                </li>
              ))}
            </ul>
          ) : (
            <Empty small title="No worker lives.">Start one with <code>headway worker</code>.</Empty>
          )
        }
      </Ask>
    </Panel>
  );
}

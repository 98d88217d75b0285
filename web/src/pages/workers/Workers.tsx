import { createColumnHelper } from "@tanstack/react-table";
import { Text } from "@mantine/core";

import { useWorkers } from "../../api/stats";
import type { Worker } from "../../api/types";
import { ago } from "../../lib/time";
import { DataTable } from "../../parts/DataTable";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { When } from "../../parts/When";
import { Health } from "./Health";

const column = createColumnHelper<Worker>();
const columns = [
  column.accessor("name", {
    header: "Worker",
    cell: ({ row: { original: worker } }) => (
      <>
        <b>{worker.name}</b>
        <Text size="xs" c="dimmed">
          {worker.host} · pid {worker.pid}
        </Text>
      </>
    ),
  }),
  column.accessor("alive", { header: "Health", cell: ({ row: { original: worker } }) => <Health worker={worker} /> }),
  column.accessor("queues", { header: "Serves", cell: ({ row: { original: worker } }) => [...names(worker.queues), worker.fires && "fires schedules"].filter(Boolean).join(", ") || "–" }),
  column.accessor("held", { header: "Holds", meta: { numeric: true }, cell: ({ row: { original: worker } }) => `${worker.held}${worker.slots ? ` / ${worker.slots}` : ""}` }),
  column.accessor("started_at", { header: "Started", cell: ({ getValue }) => <When at={getValue()} /> }),
  column.accessor("silent", { header: "Last sign of life", cell: ({ getValue }) => ago(getValue()) }),
];

const names = (queues: Worker["queues"]): string[] => (Array.isArray(queues) ? queues : Object.entries(queues).map(([name, slots]) => `${name} (${slots})`));

/** Who does the work, and whether they are well. */
export function Workers() {
  const workers = useWorkers();
  return (
    <Page title="Workers">
      <section className="panel">
        <Ask of={workers}>
          {({ items }) =>
            items.length ? (
              <DataTable label="Workers" rows={items} columns={columns} idOf={(worker) => worker.id} />
            ) : (
              <Empty icon="workers" title="No worker lives">
                Nothing runs without one. Start <code>headway worker --app module:app</code> on any machine that reaches the store, or <code>headway up</code> for all in one.
              </Empty>
            )
          }
        </Ask>
      </section>
    </Page>
  );
}

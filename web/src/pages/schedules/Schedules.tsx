import { Button, Group, Text, TextInput } from "@mantine/core";
import { createColumnHelper } from "@tanstack/react-table";
import { useState } from "react";
import { Link, useNavigate } from "react-router";

import { useSchedules, useStrips } from "../../api/schedules";
import type { Mark, Schedule } from "../../api/types";
import { useMay } from "../../app/session";
import { inWords } from "../../lib/cron";
import { DataTable } from "../../parts/DataTable";
import { plural } from "../../lib/numbers";
import { DemoButton } from "../../parts/DemoButton";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { When } from "../../parts/When";
import { Strip } from "./Strip";
import { Standing } from "./Standing";

type Row = Schedule & { jobs?: readonly Mark[] };

const column = createColumnHelper<Row>();
const columns = [
  column.accessor("name", {
    header: "Schedule",
    cell: ({ row: { original: one } }) => (
      <div style={{ minWidth: 0 }}>
        <Link to={`/schedules/${one.id}`}>{one.name}</Link>
        {(one.description ?? one.problem) && (
          <Text size="xs" c="dimmed" className="truncate" maw={340}>
            {one.problem ?? one.description}
          </Text>
        )}
      </div>
    ),
  }),
  column.display({
    id: "when",
    header: "When",
    cell: ({ row: { original: one } }) =>
      one.problem ? (
        "–"
      ) : (
        <>
          {inWords(one.schedule, one.timezone) || String(one.schedule)}
          {typeof one.schedule === "string" && (
            <Text size="xs" c="dimmed" className="mono">
              {one.schedule}
            </Text>
          )}
        </>
      ),
  }),
  column.display({ id: "state", header: "State", cell: ({ row: { original: one } }) => <Standing of={one} /> }),
  column.accessor("next_at", { header: "Next", cell: ({ row: { original: one } }) => (one.paused ? "–" : <When at={one.next_at} />) }),
  column.accessor("last_at", { header: "Last", cell: ({ getValue }) => <When at={getValue()} fallback="never" /> }),
  column.display({ id: "strip", header: "Last 30", cell: ({ row: { original: one } }) => <Strip jobs={one.jobs} /> }),
];

/** All schedules: when each fires, and how its last jobs ended. */
export function Schedules() {
  const schedules = useSchedules();
  const may = useMay();
  const go = useNavigate();
  const add = (
    <Button component={Link} to="/schedules/new" leftSection={<Icon name="plus" size={14} />}>
      New schedule
    </Button>
  );
  return (
    <Page title="Schedules" actions={may("submit") && add}>
      <section className="panel">
        <Ask of={schedules}>
          {(found) =>
            found.length ? (
              <List found={found} open={(one) => void go(`/schedules/${one.id}`)} />
            ) : (
              <Empty icon="schedules" title="No schedules yet" action={<>{may("submit") && add}<DemoButton /></>}>
                A schedule makes a job at each of its times: a request to your service every hour, a function every weekday at six.
              </Empty>
            )
          }
        </Ask>
      </section>
    </Page>
  );
}

const atOnce = 50;

/** Fifty at a time, because the last jobs of each row are looked up; long lists are narrowed by a part of the name. */
function List({ found, open }: { found: Schedule[]; open: (one: Schedule) => void }) {
  const [part, setPart] = useState("");
  const [first, setFirst] = useState(0);
  const matching = part ? found.filter((one) => one.name.toLowerCase().includes(part.toLowerCase())) : found;
  const turn = (to: number) => setFirst(Math.max(0, to));
  const shown = matching.slice(first, first + atOnce);
  const strips = useStrips(shown.map((one) => one.id));
  const rows: Row[] = shown.map((one) => ({ ...one, jobs: strips.data?.get(one.id) }));
  return (
    <>
      {found.length > 10 && (
        <Group gap="sm" p="sm">
          <TextInput size="xs" w={220} aria-label="Part of a name" placeholder="Part of a name" leftSection={<Icon name="search" size={14} />} value={part} onChange={(e) => { setPart(e.currentTarget.value); turn(0); }} />
          <Text size="xs" c="dimmed">{plural(matching.length, "schedule")}</Text>
        </Group>
      )}
      <DataTable label="Schedules" rows={rows} columns={columns} idOf={(one) => one.id} onOpen={open} />
      {matching.length > atOnce && (
        <Group justify="space-between" px="sm" py={6} style={{ borderTop: "1px solid var(--line-soft)" }}>
          <Button size="compact-xs" variant="default" disabled={first === 0} onClick={() => turn(first - atOnce)}>Back</Button>
          <Button size="compact-xs" variant="default" disabled={first + atOnce >= matching.length} onClick={() => turn(first + atOnce)}>On</Button>
        </Group>
      )}
    </>
  );
}

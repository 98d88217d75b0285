import { Button, Group, TextInput } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useState } from "react";
import { Link } from "react-router";

import { get } from "../../api/client";
import type { AuditLine, Page as PageOf } from "../../api/types";
import { DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { Instant } from "../../parts/When";

const column = createColumnHelper<AuditLine>();
const columns = [
  column.accessor("at", { header: "Time", cell: ({ getValue }) => <Instant at={getValue()} /> }),
  column.accessor("actor", { header: "Who" }),
  column.accessor("action", { header: "Did", cell: ({ getValue, row }) => <span className="mono">{getValue()}{row.original.count > 1 ? ` ×${row.original.count}` : ""}</span> }),
  column.accessor("object", { header: "To", cell: ({ getValue }) => <Thing path={getValue()} /> }),
  column.accessor("address", { header: "From", cell: ({ getValue }) => getValue() ?? "–" }),
  column.accessor("detail", { header: "Detail", cell: ({ getValue }) => <span className="anywhere">{detail(getValue())}</span> }),
];

/** What has a page of its own leads there. */
function Thing({ path }: { path: string }) {
  return /^(jobs|schedules)\/[0-9a-f-]{36}$/.test(path) ? <Link to={`/${path}`} className="mono">{path}</Link> : <span className="mono">{path}</span>;
}

/** "role: admin, queues: mail, billing" */
export function detail(value: Record<string, unknown> | null | undefined): string {
  const told = (one: unknown): string => (Array.isArray(one) ? one.map(told).join(", ") : typeof one === "string" ? one : JSON.stringify(one));
  return Object.entries(value ?? {}).map(([name, one]) => `${name.replaceAll("_", " ")}: ${told(one)}`).join("; ") || "–";
}

/** Who did what, when and from where. Nothing here can be changed. */
export function Audit() {
  const [actor, setActor] = useState("");
  const [action, setAction] = useState("");
  const [trail, setTrail] = useState<string[]>([]);
  const cursor = trail.at(-1);
  const lines = useQuery({
    queryKey: ["audit", actor, action, cursor],
    queryFn: () => get<PageOf<AuditLine>>("/audit", { actor, action, cursor, limit: 50 }),
    placeholderData: keepPreviousData,
  });
  const next = lines.data?.cursor;
  return (
    <Page title="Audit log">
      <section className="panel">
        <Group gap="xs" p="sm" className="wide">
          <TextInput size="xs" w={200} aria-label="Who" placeholder="Who: user:ann" value={actor} onChange={(e) => { setActor(e.currentTarget.value); setTrail([]); }} />
          <TextInput size="xs" w={220} aria-label="Action" placeholder="Did: jobs.cancel, or users." value={action} onChange={(e) => { setAction(e.currentTarget.value); setTrail([]); }} />
        </Group>
        <Ask of={lines}>
          {({ items }) =>
            items.length ? (
              <DataTable label="Audit log" rows={items} columns={columns} idOf={(line) => String(line.seq)} height="calc(100vh - 220px)" />
            ) : (
              <Empty icon="audit" title="No line matches">
                Every change that a person or a program makes leaves a line here.
              </Empty>
            )
          }
        </Ask>
        <Group justify="space-between" px="sm" py={6} style={{ borderTop: "1px solid var(--line-soft)" }}>
          <Button size="compact-xs" variant="default" disabled={!trail.length} onClick={() => setTrail(trail.slice(0, -1))} leftSection={<Icon name="left" size={12} />}>
            Newer
          </Button>
          <Button size="compact-xs" variant="default" disabled={!next} onClick={() => next && setTrail([...trail, next])} rightSection={<Icon name="right" size={12} />}>
            Older
          </Button>
        </Group>
      </section>
    </Page>
  );
}

import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";

import { useJobs } from "../../api/jobs";
import { useMay } from "../../app/session";
import { DataTable } from "../../parts/DataTable";
import { DemoButton } from "../../parts/DemoButton";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { Bulk } from "./Bulk";
import { columns } from "./columns";
import { fromAddress, isNarrow, toAddress, type Filter } from "./filter";
import { Filters } from "./Filters";

/** All jobs: a live table of any length, page by page from the service. */
export function Jobs() {
  const [params, setParams] = useSearchParams();
  const filter = fromAddress(params);
  const { trail, selected, turn, setSelected } = useReading(params.toString());
  const go = useNavigate();
  const may = useMay();
  const jobs = useJobs(filter, trail.at(-1) ?? null);

  const change = (next: Filter) => setParams(toAddress(next));
  const cursor = jobs.data?.cursor;

  return (
    <Page
      title="Jobs"
      actions={
        may("submit") && (
          <Button component={Link} to="/submit" leftSection={<Icon name="plus" size={14} />}>
            Submit a job
          </Button>
        )
      }
    >
      <section className="panel">
        <Filters filter={filter} change={change} />
        {may("submit") && (jobs.data?.items.length ?? 0) > 0 && <Bulk filter={filter} selected={selected} clear={() => setSelected(new Set())} />}
        <div style={{ borderTop: "1px solid var(--line-soft)" }}>
          <Ask of={jobs} rows={12}>
            {(page) =>
              page.items.length ? (
                <DataTable
                  label="Jobs"
                  rows={page.items}
                  columns={columns}
                  idOf={(job) => job.id}
                  selected={selected}
                  onSelect={may("submit") ? setSelected : undefined}
                  onOpen={(job) => void go(`/jobs/${job.id}`)}
                  height="calc(100dvh - 284px)"
                />
              ) : (
                <Nothing filter={filter} change={change} />
              )
            }
          </Ask>
        </div>
        <Group justify="space-between" px="sm" py={6} style={{ borderTop: "1px solid var(--line-soft)" }}>
          <Button size="compact-xs" variant="default" disabled={!trail.length} onClick={() => turn(trail.slice(0, -1))} leftSection={<Icon name="left" size={12} />}>
            Newer
          </Button>
          <Button size="compact-xs" variant="default" disabled={!cursor} onClick={() => cursor && turn([...trail, cursor])} rightSection={<Icon name="right" size={12} />}>
            Older
          </Button>
        </Group>
      </section>
    </Page>
  );
}

type Reading = { of: string; trail: string[]; selected: Set<string> };

/** How far somebody has turned the pages of a list, and what they selected there. With another list, by whatever way they
 * came to it, both are gone: nothing may be done to rows that are out of sight. */
function useReading(list: string) {
  const [reading, setReading] = useState<Reading>({ of: list, trail: [], selected: new Set() });
  const { trail, selected } = reading.of === list ? reading : { trail: [], selected: new Set<string>() };
  return {
    trail,
    selected,
    turn: (to: string[]) => setReading({ of: list, trail: to, selected: new Set() }),
    setSelected: (to: Set<string>) => setReading({ of: list, trail, selected: to }),
  };
}

function Nothing({ filter, change }: { filter: Filter; change: (filter: Filter) => void }) {
  if (isNarrow(filter)) {
    const inErrors = filter.q && !filter.q.startsWith("error:");
    return (
      <Empty
        icon="search"
        title="No job matches"
        action={
          <>
            {inErrors && <Button onClick={() => change({ ...filter, q: `error: ${filter.q}` })}>Look for it in error texts</Button>}
            <Button component={Link} to="/jobs" variant="default">Show all jobs</Button>
          </>
        }
      >
        {inErrors ? "Names of jobs were looked at." : "Take a filter away, or look at a longer time."}
      </Empty>
    );
  }
  return (
    <Empty
      title="No jobs yet"
      action={
        <>
          <Button component={Link} to="/submit">Submit the first job</Button>
          <DemoButton />
        </>
      }
    >
      Submit one here, by <code>headway submit</code>, over the API or from your code; it shows up by itself.
    </Empty>
  );
}

import { Button, Grid, SegmentedControl, Select, Stack } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";

import { useJobs } from "../../api/jobs";
import { useQueueNames } from "../../api/names";
import { useHistory, useStats } from "../../api/stats";
import type { Period } from "../../api/types";
import { useMay } from "../../app/session";
import { DemoButton } from "../../parts/DemoButton";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { none } from "../jobs/filter";
import { Charts } from "./Charts";
import { Failing } from "./Failing";
import { Figures } from "./Figures";
import { NextFires } from "./NextFires";
import { RunningNow } from "./RunningNow";
import { WorkerHealth } from "./WorkerHealth";

const periods = [
  { value: "hour", label: "Hour" },
  { value: "day", label: "Day" },
  { value: "week", label: "Week" },
];

/** What is happening now. */
export function Overview() {
  const [period, setPeriod] = useState<Period>("hour");
  const [queue, setQueue] = useState("");
  const queues = [{ value: "", label: "All queues" }, ...useQueueNames().map((name) => ({ value: name, label: name }))];
  const stats = useStats();
  const history = useHistory(period);
  const charted = useHistory(period, queue || undefined);
  const any = useJobs(none, null, 1);
  const may = useMay();
  const isEmpty = any.data?.items.length === 0;
  const choices = (
    <>
      <Select aria-label="Queue of the charts" size="xs" w={130} data={queues} value={queue} allowDeselect={false} searchable={queues.length > 9} onChange={(name) => setQueue(name ?? "")} />
      <SegmentedControl aria-label="Time shown" data={periods} value={period} onChange={(value) => setPeriod(value as Period)} />
    </>
  );
  return (
    <Page title="Overview" actions={choices}>
      <Ask of={stats} rows={3}>
        {(now) => <Figures stats={now} history={history.data} period={period} />}
      </Ask>
      {isEmpty && (
        <section className="panel">
          <Empty
            icon="overview"
            title="Nothing has happened here yet"
            action={
              <>
                {may("submit") && <Button component={Link} to="/submit" leftSection={<Icon name="plus" size={14} />}>Submit a job</Button>}
                <DemoButton />
              </>
            }
          >
            Submit a job, make a schedule, or fill this page with a demo to see how it looks when it lives.
          </Empty>
        </section>
      )}
      {!isEmpty && (
        <Ask of={charted} rows={6}>
          {(told) => <Charts history={told} />}
        </Ask>
      )}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <Stack gap="md">
            <RunningNow />
            <WorkerHealth />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Stack gap="md">
            <Failing period={period} />
            <NextFires />
          </Stack>
        </Grid.Col>
      </Grid>
    </Page>
  );
}

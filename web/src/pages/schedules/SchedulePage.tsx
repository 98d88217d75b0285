import { Button, Grid, Group, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, useNavigate, useParams } from "react-router";

import { usePreview, useSchedule, useScheduleActs, useScheduleJobs } from "../../api/schedules";
import type { Schedule } from "../../api/types";
import { useMay } from "../../app/session";
import { inWords } from "../../lib/cron";
import { duration } from "../../lib/time";
import { useConfirm } from "../../parts/confirm";
import { DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Ident } from "../../parts/Ident";
import { JsonView } from "../../parts/JsonView";
import { Ask, Empty } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { Panel } from "../../parts/Panel";
import { tell, tellTrouble } from "../../parts/tell";
import { Instant, When } from "../../parts/When";
import { columns } from "../jobs/columns";
import { Ledger } from "./Ledger";
import { Preview } from "./Preview";
import { ScheduleForm } from "./ScheduleForm";
import { Standing } from "./Standing";

/** A schedule: when it fires next, what became of its past times, and the job that it makes. */
export function SchedulePage() {
  const { id = "" } = useParams();
  const schedule = useSchedule(id);
  return (
    <Ask of={schedule} rows={8}>
      {(found) => <Shown schedule={found} />}
    </Ask>
  );
}

function Shown({ schedule }: { schedule: Schedule }) {
  const preview = usePreview(schedule.problem ? null : timetable(schedule));
  const heading = (
    <Group gap="sm">
      {schedule.name} <Standing of={schedule} />
    </Group>
  );
  return (
    <Page title={schedule.name} heading={heading} actions={<Actions schedule={schedule} />}>
      {schedule.description && <Text size="sm">{schedule.description}</Text>}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <Stack gap="md">
            <Ledger id={schedule.id} />
            <RecentJobs id={schedule.id} />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <Stack gap="md">
            <Facts schedule={schedule} />
            <Panel title="Next fires">
              <Preview of={preview} zone={schedule.timezone ?? "UTC"} />
            </Panel>
            <Panel title="The job it makes">
              <JsonView value={schedule.job} open={3} />
            </Panel>
          </Stack>
        </Grid.Col>
      </Grid>
    </Page>
  );
}

const timetable = ({ schedule, timezone, gap, fold }: Schedule) => ({ schedule, timezone, ...(gap ? { gap } : {}), ...(fold ? { fold } : {}) });

function Facts({ schedule: one }: { schedule: Schedule }) {
  return (
    <Panel title="Facts">
      <dl className="facts">
        <dt>When</dt>
        <dd>
          {inWords(one.schedule, one.timezone)} {typeof one.schedule === "string" && <span className="mono">({one.schedule})</span>}
        </dd>
        <dt>Time zone</dt>
        <dd>{one.timezone ?? "UTC"}</dd>
        <dt>Next</dt>
        <dd>{one.paused ? "paused" : <><Instant at={one.next_at} /> (<When at={one.next_at} />)</>}</dd>
        <dt>Last</dt>
        <dd><When at={one.last_at} fallback="never" /></dd>
        <dt>Missed fires</dt>
        <dd>{(one.misfire ?? "run_once").replace("_", " ")}</dd>
        <dt>Overlap</dt>
        <dd>{one.overlap ?? "skip"}</dd>
        {one.jitter ? <><dt>Jitter</dt><dd>up to {duration(one.jitter)}</dd></> : null}
        {one.pause_reason && <><dt>Paused</dt><dd>{one.pause_reason}</dd></>}
        {one.origin && <><dt>Kept by</dt><dd>{one.origin === "code" ? `the code of ${one.source ?? "an app"}` : "people"}</dd></>}
        {one.updated_by && <><dt>Changed by</dt><dd>{one.updated_by}, <When at={one.updated_at} /></dd></>}
        <dt>Id</dt>
        <dd><Ident id={one.id} full /></dd>
      </dl>
    </Panel>
  );
}

function Actions({ schedule }: { schedule: Schedule }) {
  const may = useMay();
  const act = useScheduleActs();
  const { ask, dialog } = useConfirm();
  const go = useNavigate();
  const [editing, edit] = useDisclosure(false);
  if (!may("submit")) return null;
  const now = (verb: "pause" | "resume", done: string) => void act(verb, schedule.id).then(() => tell(done)).catch(tellTrouble);
  const run = () =>
    void act("run", schedule.id)
      .then((job) => {
        tell("A job of it runs now.");
        if (job?.id) void go(`/jobs/${job.id}`);
      })
      .catch(tellTrouble);
  const remove = () =>
    ask({
      title: `Delete the schedule ${schedule.name}?`,
      body: "It fires no more and its ledger is gone. Jobs that it made stay.",
      verb: "Delete the schedule",
      danger: true,
      act: async () => {
        await act("delete", schedule.id);
        void go("/schedules");
      },
    });
  return (
    <>
      <Button leftSection={<Icon name="play" size={14} />} onClick={run}>
        Run now
      </Button>
      {schedule.paused ? (
        <Button variant="default" leftSection={<Icon name="play" size={14} />} onClick={() => now("resume", "It fires again.")}>
          Resume
        </Button>
      ) : (
        <Button variant="default" leftSection={<Icon name="pause" size={14} />} onClick={() => now("pause", "It fires no more until it is resumed.")}>
          Pause
        </Button>
      )}
      <Button variant="default" leftSection={<Icon name="edit" size={14} />} onClick={edit.open}>
        Edit
      </Button>
      <Button variant="default" leftSection={<Icon name="trash" size={14} />} onClick={remove}>
        Delete
      </Button>
      <Modal opened={editing} onClose={edit.close} title={`Change ${schedule.name}`} size="xl">
        <ScheduleForm existing={schedule} done={edit.close} />
      </Modal>
      {dialog}
    </>
  );
}

function RecentJobs({ id }: { id: string }) {
  const jobs = useScheduleJobs(id);
  const go = useNavigate();
  return (
    <Panel title="Its jobs" bare aside={<Button component={Link} to={`/jobs?schedule=${id}`} variant="subtle" size="compact-xs">All of them</Button>}>
      <Ask of={jobs}>
        {({ items }) =>
          items.length ? (
            <DataTable label="Jobs of this schedule" rows={items} columns={columns} idOf={(job) => job.id} onOpen={(job) => void go(`/jobs/${job.id}`)} />
          ) : (
            <Empty icon="hourglass" title="It has not fired yet">
              Its first job shows here by itself; “Run now” makes one at once.
            </Empty>
          )
        }
      </Ask>
    </Panel>
  );
}

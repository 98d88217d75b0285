import { Grid, Group, Stack, Tabs, Text } from "@mantine/core";
import { useParams } from "react-router";

import { useJob } from "../../api/jobs";
import type { Job } from "../../api/types";
import { hasEnded, isRunning, standing } from "../../lib/states";
import { Ask } from "../../parts/Notices";
import { Page } from "../../parts/Page";
import { Panel } from "../../parts/Panel";
import { Progress } from "../../parts/Progress";
import { State } from "../../parts/State";
import { Actions } from "./Actions";
import { Arguments } from "./Arguments";
import { Artifacts } from "./Artifacts";
import { Attempts } from "./Attempts";
import { ErrorPanel } from "./ErrorPanel";
import { Facts } from "./Facts";
import { Graph } from "./Graph";
import { Life } from "./Life";
import { Output } from "./Output";
import { Result } from "./Result";
import { WhyPanel } from "./WhyPanel";

/** A job: what it is, how it lives, what it said and what came of it. */
export function JobPage() {
  const { id = "" } = useParams();
  const job = useJob(id);
  return (
    <Ask of={job} rows={8}>
      {(found) => <Shown key={found.id} job={found} />}
    </Ask>
  );
}

function Shown({ job }: { job: Job }) {
  const heading = (
    <Group gap="sm" wrap="nowrap" style={{ minWidth: 0 }}>
      <span className="truncate" title={job.name}>
        {job.name}
      </span>
      <State of={standing(job)} outcome={job.outcome} />
    </Group>
  );
  return (
    <Page title={job.name} heading={heading} actions={<Actions job={job} />}>
      {!hasEnded(job.state) && <WhyPanel job={job} />}
      {job.progress && isRunning(job.state) && (
        <Panel>
          <Progress of={job.progress} />
        </Panel>
      )}
      {job.error && job.state !== "completed" && <ErrorPanel error={job.error} />}
      {job.warnings.map((warning) => (
        <Text key={warning} size="sm" c="dimmed">
          {warning}
        </Text>
      ))}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <Stack gap="md">
            <Said job={job} />
            <Attempts job={job} />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <Stack gap="md">
            <Facts job={job} />
            <Life job={job} />
            <Graph job={job} />
          </Stack>
        </Grid.Col>
      </Grid>
    </Page>
  );
}

/** What it was given, what it wrote and what came of it. */
function Said({ job }: { job: Job }) {
  return (
    <section className="panel">
      <Tabs defaultValue={job.state === "completed" && job.kind !== "script" ? "result" : job.attempt ? "output" : "arguments"} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="output">Output</Tabs.Tab>
          <Tabs.Tab value="result">Result</Tabs.Tab>
          <Tabs.Tab value="arguments">Arguments</Tabs.Tab>
          <Tabs.Tab value="artifacts">Artifacts</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="output">
          <Output job={job} />
        </Tabs.Panel>
        <Tabs.Panel value="result" p="sm">
          <Result job={job} />
        </Tabs.Panel>
        <Tabs.Panel value="arguments" p="sm">
          <Arguments job={job} />
        </Tabs.Panel>
        <Tabs.Panel value="artifacts" p="sm">
          <Artifacts job={job} />
        </Tabs.Panel>
      </Tabs>
    </section>
  );
}

import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";

import type { History, Period, Stats } from "../../api/types";
import { count } from "../../lib/numbers";
import { duration } from "../../lib/time";

/** The state of things in eight figures. */
export function Figures({ stats, history, period }: { stats: Stats; history: History | undefined; period: Period }) {
  const sum = (name: "completed" | "failed") => history?.total.reduce((all, point) => all + point[name], 0) ?? 0;
  const [done, failed] = [sum("completed"), sum("failed")];
  return (
    <section className="panel figures" aria-label="Figures">
      <Figure name="Running" to="/jobs?state=running">{count(stats.jobs.running)}<Small> of {count(stats.slots)} slots</Small></Figure>
      <Figure name="Due" to="/jobs?state=pending">{count(stats.jobs.due)}</Figure>
      <Figure name="Behind by">{stats.oldest_due ? duration(stats.oldest_due) : "–"}</Figure>
      <Figure name="Planned" to="/jobs?state=scheduled">{count(stats.jobs.waiting)}</Figure>
      <Figure name="Blocked" to="/jobs?state=blocked">{count(stats.jobs.blocked)}</Figure>
      <Figure name={`Done, last ${period}`} to="/jobs?state=completed">{count(done)}</Figure>
      <Figure name={`Failed, last ${period}`} to="/jobs?state=failed" tone={failed ? "failed" : undefined}>
        {count(failed)}
        <Small>{done + failed > 0 ? ` ${((100 * failed) / (done + failed)).toFixed(1)} %` : ""}</Small>
      </Figure>
      <Figure name="Workers alive" to="/workers" tone={stats.workers ? undefined : "failed"}>{stats.workers}</Figure>
    </section>
  );
}

function Figure({ name, to, tone, children }: { name: string; to?: string; tone?: string; children: ReactNode }) {
  const value = <span className={`figure${tone ? ` tone-${tone} tone-text` : ""}`}>{children}</span>;
  return (
    <div>
      <Text size="xs" c="dimmed">{name}</Text>
      {to ? <Link to={to} className="plain-link" aria-label={`${name}: show these jobs`}>{value}</Link> : value}
    </div>
  );
}

function Small({ children }: { children: ReactNode }) {
  return <Text span size="xs" c="dimmed" fw={400}>{children}</Text>;
}

import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { get } from "../../api/client";
import type { Job, Page } from "../../api/types";
import { place } from "../../lib/graph";
import { lookOf, standing } from "../../lib/states";
import { Panel } from "../../parts/Panel";
import { State } from "../../parts/State";

const cell = { width: 128, height: 46, gapX: 34, gapY: 12 };

/** Parents and children of a job, and how they stand; also as a list, for those who can't see the drawing. */
export function Graph({ job }: { job: Job }) {
  const parents = useQueries({
    queries: job.after.slice(0, 20).map((id) => ({ queryKey: ["job", id, "self"], queryFn: () => get<Job>(`/jobs/${id}`), retry: false })),
  });
  const children = useQuery({
    queryKey: ["live", "children", job.id],
    queryFn: () => get<Page<Job>>(`/jobs/${job.id}/children`),
    retry: false,
  });
  const found = parents.flatMap(({ data }) => (data ? [data] : []));
  const below = (children.data?.items ?? []).slice(0, 20);
  if (!found.length && !below.length) return null;
  const jobs = [...found, job, ...below];
  const nodes = jobs.map(({ id, after }) => ({ id, after: below.some((one) => one.id === id) ? after.filter((parent) => parent === job.id || jobs.some((j) => j.id === parent)) : id === job.id ? after : [] }));
  return (
    <Panel title="Before and after it">
      <Drawing jobs={jobs} nodes={nodes} current={job.id} />
      <ul className="kin">
        {[...found, ...below].map((one) => (
          <li key={one.id}>
            {found.includes(one) ? "waits for " : "lets go "}
            <Link to={`/jobs/${one.id}`}>{one.name}</Link> <State of={standing(one)} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Drawing({ jobs, nodes, current }: { jobs: Job[]; nodes: { id: string; after: readonly string[] }[]; current: string }) {
  const { placed, edges, columns, rows } = place(nodes);
  const spot = new Map(placed.map((one) => [one.id, { x: one.column * (cell.width + cell.gapX), y: one.row * (cell.height + cell.gapY) }]));
  const size = { width: columns * (cell.width + cell.gapX) - cell.gapX, height: rows * (cell.height + cell.gapY) };
  return (
    <div style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="Graph of dependencies">
      <svg width={size.width} height={size.height} role="img" aria-label="Each job points to those that wait for it">
        {edges.map(({ from, to }) => {
          const [a, b] = [spot.get(from)!, spot.get(to)!];
          const [x1, y1, x2, y2] = [a.x + cell.width, a.y + cell.height / 2, b.x, b.y + cell.height / 2];
          return <path key={from + to} d={`M${x1} ${y1} C${x1 + 18} ${y1} ${x2 - 18} ${y2} ${x2} ${y2}`} fill="none" stroke="var(--line)" strokeWidth="2" />;
        })}
        {jobs.map((job) => (
          <Box key={job.id} job={job} at={spot.get(job.id)!} current={job.id === current} />
        ))}
      </svg>
    </div>
  );
}

function Box({ job, at, current }: { job: Job; at: { x: number; y: number }; current: boolean }) {
  const look = lookOf(standing(job));
  return (
    <g transform={`translate(${at.x} ${at.y})`} className={`tone-${look.tone}`}>
      <title>{`${job.name}: ${look.word}`}</title>
      <rect width={cell.width} height={cell.height} rx="5" fill="var(--tone-bg)" stroke={current ? "var(--mantine-color-anchor)" : "var(--tone)"} strokeWidth={current ? 2.5 : 1} />
      <text x="9" y="19" fontSize="12" fontWeight="600" fill="var(--mantine-color-text)">
        {job.name.length > 16 ? `${job.name.slice(0, 15)}…` : job.name}
      </text>
      <text x="9" y="36" fontSize="11" fill="var(--tone)">
        {look.word}
      </text>
    </g>
  );
}

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";

import type { Filter } from "../pages/jobs/filter";
import { hasEnded, isRunning } from "../lib/states";
import { instant } from "../pages/jobs/filter";
import { get, patch, post, remove, type Query } from "./client";
import type { Job, Page } from "./types";

export const pageSize = 50;

/** A filter as the API takes it. */
export function asQuery(filter: Filter, now: Date): Query {
  return {
    state: filter.states.join(",") || undefined,
    kind: filter.kind,
    queue: filter.queue,
    ...sought(filter),
    tags: filter.tag,
    created_by: filter.by,
    schedule: filter.schedule,
    time: filter.time,
    from: filter.from && instant(filter.from, now),
    to: filter.to && instant(filter.to, now),
  };
}

/** `error: text` looks in the errors of jobs, everything else at the beginning of their names. */
function sought(filter: Filter): Query {
  const [, error] = /^error:\s*(.*)$/i.exec(filter.q) ?? [];
  if (error !== undefined) return { error, name: filter.name };
  return { name: filter.q ? (filter.q.endsWith("*") ? filter.q : `${filter.q}*`) : filter.name };
}

/** Progress, places in queues and reasons to wait change without an event: they are looked at in this pace (ms). */
export const pace = 1_500;

/** A page of jobs, newest first; the page before stays while the next one is fetched. */
export function useJobs(filter: Filter, cursor: string | null, limit = pageSize) {
  return useQuery({
    queryKey: ["live", "jobs", filter, cursor, limit],
    queryFn: ({ signal }) => get<Page<Job>>("/jobs", { ...asQuery(filter, new Date()), cursor, limit }, signal),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) => data?.items.some((job) => isRunning(job.state)) && pace,
  });
}

export function useJob(id: string) {
  return useQuery({
    queryKey: ["job", id, "self"],
    queryFn: ({ signal }) => get<Job>(`/jobs/${id}`, {}, signal),
    refetchInterval: ({ state: { data } }) => data && !hasEnded(data.state) && pace,
  });
}

type Looking = { enabled?: boolean; refetchInterval?: number };

/** Something below a job: its attempts, history, why … */
export function useJobPart<T>(id: string, part: string, looking: Looking = {}) {
  return useQuery({ queryKey: ["job", id, part], queryFn: ({ signal }) => get<T>(`/jobs/${id}/${part}`, {}, signal), ...looking });
}

export type Verb = "cancel" | "retry" | "delete";

/** Acts on one job, and shows at once what became of it. */
export function useJobActs() {
  const queries = useQueryClient();
  const settle = async (id: string) => {
    await Promise.all([queries.invalidateQueries({ queryKey: ["job", id] }), queries.invalidateQueries({ queryKey: ["live"] })]);
  };
  return {
    act: async (verb: Verb, id: string): Promise<void> => {
      if (verb === "delete") await remove(`/jobs/${id}`);
      else await post(`/jobs/${id}/${verb}`);
      await settle(id);
    },
    change: async (id: string, changes: { run_at?: string; priority?: number; queue?: string }): Promise<void> => {
      await patch(`/jobs/${id}`, changes);
      await settle(id);
    },
    release: async (id: string, runAt?: string): Promise<void> => {
      await post(`/jobs/${id}/schedule`, runAt ? { run_at: runAt } : {});
      await settle(id);
    },
  };
}

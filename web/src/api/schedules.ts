import { useQuery, useQueryClient } from "@tanstack/react-query";

import { get, post, remove } from "./client";
import type { Fire, Job, Occurrence, Page, Schedule, Strip } from "./types";

export function useSchedules() {
  return useQuery({ queryKey: ["live", "schedules"], queryFn: ({ signal }) => all(signal) });
}

/** All schedules, up to a thousand: the list is for people. */
async function all(signal: AbortSignal): Promise<Schedule[]> {
  const found: Schedule[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Schedule> = await get<Page<Schedule>>("/schedules", { limit: 200, cursor }, signal);
    found.push(...page.items);
    cursor = page.cursor;
  } while (cursor && found.length < 1000);
  return found;
}

export const useSchedule = (id: string) => useQuery({ queryKey: ["live", "schedule", id], queryFn: () => get<Schedule>(`/schedules/${id}`) });

/** The latest jobs of a schedule. */
export const useScheduleJobs = (id: string, limit = 12) => useQuery({ queryKey: ["schedule-jobs", id, limit], queryFn: () => get<Page<Job>>(`/schedules/${id}/jobs`, { limit }), refetchInterval: 5_000 });

/** How the latest jobs of some schedules ended, by schedule: all rows of a list in one answer, which comes anew by the clock. */
export function useStrips(ids: readonly string[]) {
  return useQuery({
    queryKey: ["strips", ids],
    queryFn: async ({ signal }) => new Map((await get<Page<Strip>>("/stats/strips", { schedule: ids }, signal)).items.map((strip) => [strip.schedule, strip.jobs])),
    enabled: ids.length > 0,
    refetchInterval: 5_000,
    placeholderData: (before) => before,
  });
}

/** The ledger of a schedule: its latest lines, or all of it day by day. */
export const useOccurrences = (id: string, query: { limit: number } | { daily: true }) => useQuery({ queryKey: ["live", "schedule", id, "occurrences", query], queryFn: () => get<Page<Occurrence>>(`/schedules/${id}/occurrences`, query) });

/** As many coming fires of a schedule as are asked for at once. */
export const known = 100;

/** When a schedule fires next, as milliseconds since 1970. */
export async function comingFires(id: string): Promise<number[]> {
  const { items } = await get<Page<Fire>>(`/schedules/${id}/preview`, { count: known });
  return items.map((fire) => new Date(fire.at).getTime());
}

/** The next fires of a timetable that need not be stored yet. */
export function usePreview(body: { schedule: unknown; timezone?: string; gap?: string; fold?: string } | null) {
  return useQuery({
    queryKey: ["preview", body],
    queryFn: () => post<Page<Fire>>("/schedules/preview", body),
    enabled: body !== null,
    retry: false,
    refetchInterval: 30_000,
    placeholderData: (before) => before,
  });
}

export function useScheduleActs() {
  const queries = useQueryClient();
  return async (verb: "pause" | "resume" | "run" | "delete", id: string): Promise<Job | undefined> => {
    const answer = verb === "delete" ? await remove<undefined>(`/schedules/${id}`) : await post<Job>(`/schedules/${id}/${verb}`);
    await queries.invalidateQueries({ queryKey: ["live"] });
    return answer;
  };
}

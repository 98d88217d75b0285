import type { Schedule, When } from "../../api/types";
import { inWords } from "../../lib/cron";
import { instantIn, zone } from "../../lib/time";
import type { Draft } from "../submit/draft";

/** A timetable as a person enters it. */
export type Plan = { name: string; description: string; sort: "cron" | "every" | "at"; cron: string; every: number; wall: string; timezone: string; misfire: string; overlap: string; jitter: number };

export function draftOf(existing?: Schedule): Plan {
  const plan: Plan = { name: "", description: "", sort: "cron", cron: "", every: 300, wall: "", timezone: zone(), misfire: "run_once", overlap: "skip", jitter: 0 };
  if (!existing) return plan;
  const { schedule: when = "" } = existing;
  const timing: Partial<Plan> = typeof when === "string" ? { sort: "cron", cron: when } : "every" in when ? { sort: "every", every: when.every } : { sort: "at", wall: when.at.slice(0, 16).replace("T", " "), timezone: "UTC" };
  return {
    ...plan,
    name: existing.name,
    description: existing.description ?? "",
    timezone: existing.timezone ?? "UTC",
    misfire: existing.misfire ?? "run_once",
    overlap: existing.overlap ?? "skip",
    jitter: existing.jitter ?? 0,
    ...timing,
  };
}

/** What the API takes as `schedule`; null while it is not complete. */
export function whenOf(plan: Plan): When | null {
  if (plan.sort === "cron") return plan.cron.trim() || null;
  if (plan.sort === "every") return plan.every > 0 ? { every: plan.every } : null;
  return plan.wall ? { at: instantIn(plan.wall, plan.timezone).toISOString() } : null;
}

export function readable(plan: Plan): string {
  const when = whenOf(plan);
  return when ? inWords(when, plan.timezone) : "";
}

/** A schedule as the API takes it, without its job. */
export const bodyOf = (plan: Plan): Body => ({ name: plan.name.trim(), description: plan.description || null, schedule: whenOf(plan), timezone: plan.timezone, misfire: plan.misfire, overlap: plan.overlap, jitter: plan.jitter });

type Body = Record<string, unknown>;
type Entered = { plan: Plan; draft: Draft };

/** What was changed, and nothing else: a timetable that is told anew loses how it deals with jumping clocks, and a job that
 * is told anew what only its code knows. */
export function changesOf(before: Entered, after: Entered, job: Body): Body {
  const [was, is] = [bodyOf(before.plan), bodyOf(after.plan)];
  const changes = Object.fromEntries(Object.entries(is).filter(([name, value]) => !same(value, was[name])));
  return same(before.draft, after.draft) ? changes : { ...changes, job };
}

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

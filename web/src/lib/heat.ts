/** The occurrences of a schedule by day, for a calendar. */

import type { Occurrence } from "../api/types";

export type Line = Pick<Occurrence, "nominal_at" | "until_at" | "count" | "job_id" | "reason">;
export type Day = { date: string; fired: number; skipped: number; reasons: string[] };

const oneDay = 86_400_000;

/** The last `weeks` weeks up to today, Monday first; days without any occurrence are there with zeros. */
export function byDay(lines: readonly Line[], today: Date, weeks = 18): Day[][] {
  const end = startOfDay(today);
  const monday = end - ((new Date(end).getUTCDay() + 6) % 7) * oneDay;
  const start = monday - (weeks - 1) * 7 * oneDay;
  const days = new Map<number, Day>();
  for (let at = start; at <= end; at += oneDay) days.set(at, { date: new Date(at).toISOString().slice(0, 10), fired: 0, skipped: 0, reasons: [] });
  for (const line of lines) spread(line, days);
  const all = [...days.values()];
  return Array.from({ length: weeks }, (_, week) => all.slice(week * 7, week * 7 + 7));
}

/** A line that stands for several times is spread evenly over its days. */
function spread(line: Line, days: Map<number, Day>): void {
  const [first, last] = [startOfDay(new Date(line.nominal_at)), startOfDay(new Date(line.until_at))];
  const span = Math.round((last - first) / oneDay) + 1;
  for (let i = 0; i < span; i += 1) {
    const day = days.get(first + i * oneDay);
    if (!day) continue;
    const share = Math.max(1, Math.round(line.count / span));
    if (line.job_id) day.fired += line.count;
    else {
      day.skipped += share;
      if (line.reason && !day.reasons.includes(line.reason)) day.reasons.push(line.reason);
    }
  }
}

const startOfDay = (at: Date): number => Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate());

/** Which of five steps a count stands on, seen from the largest. */
export function step(count: number, largest: number): number {
  if (count === 0) return 0;
  return Math.min(4, 1 + Math.floor((3.999 * count) / Math.max(1, largest)));
}

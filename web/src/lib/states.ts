import type { IconName } from "../parts/Icon";

/** How each state and label looks. Never by colour alone: each has a shape and a word of its own. */
export type Tone = "completed" | "failed" | "running" | "retrying" | "blocked" | "waiting" | "cancelled";

export const looks: Record<string, { tone: Tone; icon: IconName; word: string }> = {
  creating: { tone: "waiting", icon: "dashed", word: "on hold" },
  scheduled: { tone: "waiting", icon: "clock", word: "scheduled" },
  submitted: { tone: "waiting", icon: "clock", word: "submitted" },
  pending: { tone: "waiting", icon: "hourglass", word: "pending" },
  retrying: { tone: "retrying", icon: "retry", word: "retrying" },
  parked: { tone: "retrying", icon: "pause", word: "parked" },
  blocked: { tone: "blocked", icon: "link", word: "blocked" },
  running: { tone: "running", icon: "spinner", word: "running" },
  cancelling: { tone: "cancelled", icon: "spinner", word: "cancelling" },
  completed: { tone: "completed", icon: "check", word: "completed" },
  failed: { tone: "failed", icon: "bang", word: "failed" },
  cancelled: { tone: "cancelled", icon: "slash", word: "cancelled" },
  skipped: { tone: "cancelled", icon: "slash", word: "skipped" },
};

export const lookOf = (state: string) => looks[state] ?? { tone: "waiting" as Tone, icon: "dashed" as IconName, word: state };

/** What people filter by, in the order in which a job lives. */
export const filters = ["running", "pending", "scheduled", "retrying", "blocked", "creating", "parked", "cancelling", "completed", "failed", "cancelled"];

const ended = new Set(["completed", "failed", "cancelled"]);
export const hasEnded = (state: string): boolean => ended.has(state);
export const isRunning = (state: string): boolean => state === "running" || state === "cancelling";

/** How a job stands, in the most telling word. */
export const standing = (job: { state: string; label: string }): string => (hasEnded(job.state) || isRunning(job.state) ? job.state : job.label);

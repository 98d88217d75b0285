import type { HistoryEntry } from "../api/types";

/** What a line of a job's history means to people. */
export type Told = { state: string; word: string; detail: string };

/** Acts on a job: the state whose look they have, and a word. */
const acts: Record<string, [string, string]> = {
  cancel: ["cancelling", "told to stop"],
  retry: ["retrying", "retried"],
  edit: ["scheduled", "changed"],
  give_back: ["scheduled", "given back"],
  snooze: ["scheduled", "snoozed"],
};

const waits: Record<string, string> = {
  after: "waits for other jobs",
  previous: "waits for the one before it of the same key",
};

/** A job goes back to wait when an attempt has failed: such a line tells how that ended. */
const tried = /^(failed|timed_out|lost|poison|unknown):/;

export function told({ what, detail }: Pick<HistoryEntry, "what" | "detail">): Told {
  const said = detail ?? "";
  if (what === "scheduled" && tried.test(said)) return { state: "retrying", word: "waits for a retry", detail: said.replace("_", " ") };
  if (what === "blocked") return { state: what, word: what, detail: waits[said] ?? said };
  if (what === "completed" && said === "succeeded") return { state: what, word: what, detail: "" };
  if (said.startsWith(`${what}: `)) return { state: what, word: what, detail: said.slice(what.length + 2) };
  const [state, word] = acts[what] ?? [what, what === "creating" ? "on hold" : what.replaceAll("_", " ")];
  return { state, word, detail: said };
}

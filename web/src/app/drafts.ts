/** What is entered in the form for jobs, kept in the tab until it is sent, given up, or its author logs out. */

import { parse } from "../lib/json";

const prefix = "headway-draft";

const place = (from: string | null): string => (from ? `${prefix}-${from}` : prefix);

/** The draft of a new job, or of one that was made from another. */
export function remembered(from: string | null): Record<string, unknown> | null {
  try {
    return parse(sessionStorage.getItem(place(from)) ?? "null") as Record<string, unknown> | null;
  } catch {
    return null; // a storage that is forbidden, or holds something else, costs the convenience only
  }
}

export function remember(from: string | null, draft: object | null): void {
  try {
    if (draft) sessionStorage.setItem(place(from), JSON.stringify(draft));
    else sessionStorage.removeItem(place(from));
  } catch {
    // A full or forbidden storage costs the convenience only.
  }
}

/** Nobody who comes after finds what somebody has written. */
export function forgetAll(): void {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(prefix)) sessionStorage.removeItem(name);
}

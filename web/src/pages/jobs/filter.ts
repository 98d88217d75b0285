/** What the table of jobs is narrowed to. It lives in the address, so that it can be sent to others and survives a reload. */

export type Filter = { q: string; states: string[]; kind: string; queue: string; name: string; tag: string; by: string; schedule: string; time: string; from: string; to: string };

export const none: Filter = { q: "", states: [], kind: "", queue: "", name: "", tag: "", by: "", schedule: "", time: "", from: "", to: "" };

export function fromAddress(params: URLSearchParams): Filter {
  const text = (name: string) => params.get(name) ?? "";
  const soughtByName = text("q") !== "" && !/^error:/i.test(text("q"));
  return {
    q: text("q"),
    states: text("state").split(",").filter(Boolean),
    kind: text("kind"),
    queue: text("queue"),
    name: soughtByName ? "" : text("name"),
    tag: text("tag"),
    by: text("by"),
    schedule: text("schedule"),
    time: text("time"),
    from: text("from"),
    to: text("to"),
  };
}

export function toAddress(filter: Filter): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...filter, state: filter.states.join(","), states: "" })) {
    if (typeof value === "string" && value) params.set(name, value);
  }
  return params;
}

/** "-1h", "-7d": before now. Everything else is taken as it stands. */
export function instant(text: string, now: Date): string {
  const match = /^-(\d+)([mhd])$/.exec(text);
  if (!match) return text;
  const size = { m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] as "m" | "h" | "d"];
  return new Date(now.getTime() - Number(match[1]) * size).toISOString();
}

export const isNarrow = (filter: Filter): boolean => toAddress(filter).size > 0;

/** A whole id: there is one job of it, which is shown instead of a list. */
export const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

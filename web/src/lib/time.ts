/** Times as people read them: near ones relative, all of them in the zone of whoever looks, with UTC at hand. */

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

const words = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });

/** "3m ago", "in 2h", "now". */
export function relative(at: Date, now: Date): string {
  const seconds = Math.round((at.getTime() - now.getTime()) / 1000);
  if (Math.abs(seconds) < 2) return "now";
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return words.format(Math.trunc(seconds / size), unit);
  }
  return "now";
}

/** "3m ago", of so many seconds. */
export const ago = (seconds: number): string => relative(new Date(-1000 * seconds), new Date(0));

const long = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
  timeZoneName: "short",
});

export const local = (at: Date): string => long.format(at);

export const utc = (at: Date): string => `${at.toISOString().replace("T", " ").slice(0, 19)} UTC`;

export const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** "850 ms", "12.3 s", "4m 05s", "2h 10m", "3d 4h". */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 60) return `${seconds < 10 && !Number.isInteger(seconds) ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86_400), Math.floor(whole / 3_600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days}d ${hours}h`;
  if (hours) return `${hours}h ${String(minutes).padStart(2, "0")}m`;
  return `${minutes}m ${String(whole % 60).padStart(2, "0")}s`;
}

/** Seconds from one instant to another, or to now. */
export function between(from: string, to: string | null | undefined, now: Date): number {
  return Math.max(0, ((to ? new Date(to) : now).getTime() - new Date(from).getTime()) / 1000);
}

/** The instant at which clocks in `zone` show `wall` ("2030-01-31 06:00"). In a gap: the instant after it. */
export function instantIn(wall: string, timeZone: string): Date {
  const naive = new Date(`${wall.replace(" ", "T")}${wall.length === 16 ? ":00" : ""}Z`).getTime();
  const first = naive - offset(new Date(naive), timeZone);
  const second = naive - offset(new Date(first), timeZone);
  return new Date(offset(new Date(second), timeZone) === naive - second ? second : Math.max(first, second));
}

/** What clocks in a zone show at an instant: "2030-01-31 06:00". */
export const wallIn = (at: Date, timeZone: string): string => new Date(at.getTime() + offset(at, timeZone)).toISOString().slice(0, 16).replace("T", " ");

/** How far clocks in a zone are ahead of UTC at an instant, in milliseconds. */
export function offset(at: Date, timeZone: string): number {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  }).formatToParts(at);
  const part = (type: string) => Number(parts.find((one) => one.type === type)?.value ?? 0);
  const shown = Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second"));
  return shown - Math.floor(at.getTime() / 1000) * 1000;
}

/** An instant as clocks in a zone show it: "Mon 31 Jan 2030 06:00"; with seconds where there are some. */
export function clockIn(at: Date, timeZone: string): string {
  return new Intl.DateTimeFormat("en-GB", {
    timeZone,
    weekday: "short",
    day: "2-digit",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: at.getTime() % 60_000 ? "2-digit" : undefined,
    hour12: false,
  })
    .format(at)
    .replaceAll(",", "");
}

import cronstrue from "cronstrue";

import type { When } from "../api/types";

const aliases: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/** A schedule's timetable in words: "every weekday at 06:00, Berlin time"; nothing of one that nobody can read. */
export function inWords(when: When | undefined, timezone = "UTC"): string {
  if (when === undefined) return "";
  if (typeof when !== "string") return "every" in when ? `Every ${seconds(when.every)}` : `Once, at ${new Date(when.at).toLocaleString()}`;
  const text = words(when.trim());
  return text ? `${text}${place(timezone, when)}` : "";
}

function words(expression: string): string {
  try {
    const plain = aliases[expression.toLowerCase()] ?? expression;
    return cronstrue.toString(plain, { use24HourTimeFormat: true, verbose: false }).replace("Monday through Friday", "every weekday");
  } catch {
    return "";
  }
}

/** The zone matters only where a time of day is named. */
function place(timezone: string, expression: string): string {
  const fields = expression.split(/\s+/);
  const hour = fields.length === 6 ? fields[2] : fields[1];
  if (hour === "*" && !expression.startsWith("@")) return "";
  const city = timezone.split("/").at(-1)?.replaceAll("_", " ");
  return timezone === "UTC" ? ", UTC" : `, ${city} time`;
}

function seconds(n: number): string {
  const sizes: [number, string][] = [
    [86_400, "day"],
    [3_600, "hour"],
    [60, "minute"],
  ];
  for (const [size, word] of sizes) {
    if (n % size === 0) return n === size ? word : `${n / size} ${word}s`;
  }
  return n === 1 ? "second" : `${n} seconds`;
}

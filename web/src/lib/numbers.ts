/** Numbers as people read them. */

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat("en");

export const count = (n: number): string => (n < 10_000 ? whole.format(n) : compact.format(n));

export const exact = (n: number): string => whole.format(n);

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = n / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** "1 job", "3 jobs". */
export const plural = (n: number, one: string, many = `${one}s`): string => `${exact(n)} ${n === 1 ? one : many}`;

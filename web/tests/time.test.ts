import { expect, test, vi } from "vitest";

import { ago as since, between, clockIn, duration, instantIn, relative, wallIn } from "../src/lib/time";
import { current, subscribe } from "../src/live/now";

const now = new Date("2030-01-31T12:00:00Z");
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000);

test("near times are relative", () => {
  expect(relative(ago(0), now)).toBe("now");
  expect(relative(ago(30), now)).toMatch(/30\s?s/);
  expect(relative(ago(200), now)).toMatch(/3\s?m/);
  expect(relative(ago(-7200), now)).toMatch(/^in 2/);
});

test("a silence is told as other times are", () => {
  expect(since(0.4)).toBe("now");
  expect(since(9.6)).toMatch(/^10\s?s ago$/);
});

test("a clock in a zone shows seconds where there are some", () => {
  expect(clockIn(new Date("2030-01-31T05:00:00Z"), "Europe/Berlin")).toBe("Thu 31 Jan 2030 06:00");
  expect(clockIn(new Date("2030-01-31T05:00:02Z"), "Europe/Berlin")).toBe("Thu 31 Jan 2030 06:00:02");
});

test("the page's clock is right for whoever looks at it first after a while", () => {
  vi.useFakeTimers({ now });
  vi.stubGlobal("document", { hidden: false });
  subscribe(() => undefined)();
  vi.setSystemTime(ago(-600));
  const leave = subscribe(() => undefined);
  expect(current()).toEqual(ago(-600));
  vi.advanceTimersByTime(2_000);
  expect(current()).toEqual(ago(-602));
  leave();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("durations are short", () => {
  expect(duration(0.0123)).toBe("12 ms");
  expect(duration(3.21)).toBe("3.2 s");
  expect(duration(65)).toBe("1m 05s");
  expect(duration(3 * 3600 + 60)).toBe("3h 01m");
  expect(duration(90_000)).toBe("1d 1h");
});

test("time never runs backwards", () => {
  expect(between("2030-01-31T12:00:05Z", null, now)).toBe(0);
});

test("a wall time is an instant of its zone", () => {
  expect(instantIn("2030-01-31 06:00", "Europe/Berlin").toISOString()).toBe("2030-01-31T05:00:00.000Z");
  expect(instantIn("2030-07-01 06:00", "Europe/Berlin").toISOString()).toBe("2030-07-01T04:00:00.000Z");
  expect(instantIn("2030-01-31 06:00", "UTC").toISOString()).toBe("2030-01-31T06:00:00.000Z");
  expect(instantIn("2030-01-31 06:00", "Asia/Kathmandu").toISOString()).toBe("2030-01-31T00:15:00.000Z");
});

test("a wall time in a gap is the instant after it", () => {
  // Clocks in Berlin jump from 02:00 to 03:00 on 31 March 2030.
  expect(instantIn("2030-03-31 02:30", "Europe/Berlin").toISOString()).toBe("2030-03-31T01:30:00.000Z");
});

test("a wall clock and its instant are each other's", () => {
  for (const zone of ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"]) {
    expect(instantIn(wallIn(new Date("2030-07-31T04:30:00Z"), zone), zone).toISOString()).toBe("2030-07-31T04:30:00.000Z");
  }
});

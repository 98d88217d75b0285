import { expect, test, vi } from "vitest";

import { inWords } from "../src/lib/cron";
import { density } from "../src/lib/density";
import { place } from "../src/lib/graph";
import { told } from "../src/lib/life";
import { byDay, step } from "../src/lib/heat";
import { interpreterOf, languageOf, troubleOf } from "../src/lib/script";
import { Gatherer } from "../src/live/gatherer";
import { Stream } from "../src/live/stream";
import { fromAddress, instant, isNarrow, none, toAddress } from "../src/pages/jobs/filter";

test("a filter survives its way through the address", () => {
  const filter = { ...none, q: "a b&c", states: ["failed", "retrying"], queue: "mail", from: "-1h", time: "created" };
  expect(fromAddress(new URLSearchParams(toAddress(filter).toString()))).toEqual(filter);
  expect(isNarrow(none)).toBe(false);
});

test("what is sought by name takes the place of a name that was chosen", () => {
  expect(fromAddress(new URLSearchParams("name=a&q=b")).name).toBe("");
  expect(fromAddress(new URLSearchParams("name=a&q=error: b")).name).toBe("a");
});

test("spans of time are counted from now", () => {
  expect(instant("-1h", new Date("2030-01-31T12:00:00Z"))).toBe("2030-01-31T11:00:00.000Z");
  expect(instant("2030-01-01T00:00:00Z", new Date())).toBe("2030-01-01T00:00:00Z");
});

test("cron is told in words, with its place", () => {
  expect(inWords("0 6 * * MON-FRI", "Europe/Berlin")).toBe("At 06:00, every weekday, Berlin time");
  expect(inWords("*/5 * * * *", "Europe/Berlin")).toBe("Every 5 minutes");
  expect(inWords({ every: 7200 })).toBe("Every 2 hours");
  expect(inWords("nonsense")).toBe("");
});

test("parents stand left of children, however they are listed", () => {
  const { placed, edges, columns, rows } = place([{ id: "c", after: ["a", "b"] }, { id: "a", after: [] }, { id: "b", after: ["a"] }]);
  expect(Object.fromEntries(placed.map(({ id, column }) => [id, column]))).toEqual({ a: 0, b: 1, c: 2 });
  expect([edges.length, columns, rows]).toEqual([3, 3, 1]);
});

test("a ring in the graph does not hang the page", () => {
  expect(place([{ id: "a", after: ["b"] }, { id: "b", after: ["a"] }]).placed).toHaveLength(2);
});

test("the ledger is counted by day, long skips spread over theirs", () => {
  const lines = [
    { nominal_at: "2030-01-30T02:00:00Z", until_at: "2030-01-30T02:00:00Z", count: 1, job_id: "x", reason: null },
    { nominal_at: "2030-01-27T02:00:00Z", until_at: "2030-01-29T02:00:00Z", count: 3, job_id: null, reason: "missed" },
  ];
  const days = byDay(lines, new Date("2030-01-31T12:00:00Z"), 2).flat();
  expect(days.at(-1)?.date).toBe("2030-01-31");
  expect(days.find((day) => day.date === "2030-01-30")?.fired).toBe(1);
  expect(days.filter((day) => day.skipped === 1).map((day) => day.date)).toEqual(["2030-01-27", "2030-01-28", "2030-01-29"]);
  expect([step(0, 9), step(1, 9), step(9, 9)]).toEqual([0, 1, 4]);
});

test("a job's history is told in words", () => {
  expect(told({ what: "scheduled", detail: "timed_out: took too long" })).toEqual({ state: "retrying", word: "waits for a retry", detail: "timed out: took too long" });
  expect(told({ what: "scheduled", detail: null })).toEqual({ state: "scheduled", word: "scheduled", detail: "" });
  expect(told({ what: "blocked", detail: "after" }).detail).toBe("waits for other jobs");
  expect(told({ what: "blocked", detail: "limit mail" }).detail).toBe("limit mail");
  expect(told({ what: "failed", detail: "failed: it broke" })).toEqual({ state: "failed", word: "failed", detail: "it broke" });
  expect(told({ what: "completed", detail: "succeeded" }).detail).toBe("");
  expect(told({ what: "give_back", detail: null }).word).toBe("given back");
});

test("a script's first line is looked at", () => {
  expect(troubleOf("#! sh\n")).toContain("whole path");
  expect(troubleOf("#!/usr/bin/env python3\n")).toBeNull();
  expect(interpreterOf("#!/usr/bin/env python3\n")).toBe("python3");
  expect(languageOf("#!/usr/bin/env python3\n", "")).toBe("python");
  expect(languageOf("echo", "/bin/bash")).toBe("shell");
});

test("a thousand events cost one look", () => {
  vi.useFakeTimers();
  const invalidateQueries = vi.fn(() => Promise.resolve());
  const gatherer = new Gatherer({ invalidateQueries });
  for (let i = 0; i < 1000; i += 1) gatherer.add({ job_id: "same" });
  vi.advanceTimersByTime(1_000);
  expect(invalidateQueries).toHaveBeenCalledTimes(2);
  vi.useRealTimers();
});

test("when some events were missed, all that is shown is asked for anew", () => {
  vi.useFakeTimers();
  const invalidateQueries = vi.fn(() => Promise.resolve());
  const gatherer = new Gatherer({ invalidateQueries });
  gatherer.add({ job_id: "one" });
  gatherer.add({});
  vi.advanceTimersByTime(1_000);
  expect(invalidateQueries.mock.calls).toEqual([[]]);
  vi.useRealTimers();
});

test("a stream that opens has missed what happened before", () => {
  const opened: { onopen?: () => void }[] = [];
  vi.stubGlobal("EventSource", class { onopen?: () => void; addEventListener() {} close() {} constructor() { opened.push(this); } });
  vi.stubGlobal("BroadcastChannel", undefined);
  const stream = new Stream();
  const heard: unknown[] = [];
  stream.onEvent((event) => heard.push(event));
  stream.start();
  opened[0]?.onopen?.();
  expect([stream.health, heard]).toEqual(["live", [{}]]);
  stream.stop();
  vi.unstubAllGlobals();
});

test("fires are counted by parts of the hours to come, and go on at their pace", () => {
  expect(density({ fires: [0, 10, 25], more: false }, 0, 40, 4)).toEqual([1, 1, 1, 0]);
  expect(density({ fires: [0, 1, 2], more: true }, 0, 40, 4)).toEqual([11, 10, 10, 10]);
  expect(density({ fires: [-5, 100], more: false }, 0, 40, 4)).toEqual([1, 0, 0, 0]);
});

import { expect, test } from "vitest";

import { fieldsOf } from "../src/lib/form";
import { parse } from "../src/lib/json";
import { pairsOf, quoted, wordsOf } from "../src/lib/words";
import { fromJob, fromTemplate } from "../src/pages/submit/again";
import { blank, build, enteredIn, type Draft } from "../src/pages/submit/draft";
import { changesOf, draftOf } from "../src/pages/schedules/plan";

const draft = (part: Partial<Draft>): Draft => ({ ...blank(), ...part });

test("a script needs a name, a target and some text", () => {
  const { wrong } = build(draft({ kind: "script", script: "  " }), null);
  expect(Object.keys(wrong).sort()).toEqual(["name", "script", "target"]);
});

test("a script's body says what was entered, and nothing else", () => {
  const { body, wrong } = build(draft({ kind: "script", name: "backup", target: "db1", script: "#!/bin/sh\ndate\n", scriptArgs: "--fast 'two words'", env: "A=1\nB=x=y", collect: "a.csv, b/*.log" }), null);
  expect(wrong).toEqual({});
  expect(body).toEqual({ kind: "script", name: "backup", target: "db1", script: "#!/bin/sh\ndate\n", args: ["--fast", "two words"], env: { A: "1", B: "x=y" }, collect: ["a.csv", "b/*.log"] });
});

test("a time is sent as an instant", () => {
  const { body } = build(draft({ kind: "http", url: "https://example.com/x", later: true, wall: "2030-01-31 06:00", zone: "Europe/Berlin" }), null);
  expect(body.run_at).toBe("2030-01-31T05:00:00.000Z");
});

test("a payload is JSON if it can be, else text; headers may name secrets", () => {
  const headers = [{ name: "Authorization", value: "billing", secret: true }, { name: "", value: "left out", secret: false }];
  const { body } = build(draft({ kind: "http", url: "https://example.com/x", payload: '{"a": 1}', headers }), null);
  expect(body.payload).toEqual({ a: 1 });
  expect(body.headers).toEqual({ Authorization: { secret: "billing" } });
  expect(build(draft({ kind: "http", url: "https://example.com/x", payload: "plain" }), null).body.payload).toBe("plain");
});

test("addresses that are none are named", () => {
  expect(build(draft({ kind: "fetch", urls: "https://a.example ftp://b.example" }), null).wrong.urls).toContain("ftp://b.example");
});

const schema = { properties: { user: { type: "integer" }, note: { anyOf: [{ type: "string" }, { type: "null" }], default: null }, deep: { $ref: "#/$defs/Deep" }, colour: { enum: ["red", "blue"] } }, required: ["user"], $defs: { Deep: { type: "object", properties: {} } } };

test("a form is made from a signature", () => {
  expect(fieldsOf(schema).map(({ name, kind, required, optional }) => [name, kind, required, optional])).toEqual([
    ["user", "integer", true, false],
    ["note", "text", false, true],
    ["deep", "json", false, false],
    ["colour", "choice", false, false],
  ]);
});

test("arguments are typed, and wrong ones named", () => {
  expect(build(draft({ kind: "call", function: "f", entered: { user: "42", deep: '{"x": [1]}', colour: "red" } }), schema).body.kwargs).toEqual({ user: 42, deep: { x: [1] }, colour: "red" });
  expect(build(draft({ kind: "call", function: "f", entered: { user: "4.5", deep: "{" } }), schema).wrong).toEqual({ "args.user": "not a whole number", "args.deep": "not JSON: strings stand in double quotes" });
  expect(build(draft({ kind: "call", function: "f" }), schema).wrong).toEqual({ "args.user": "needed" });
});

test("a job that was becomes a draft, its script by reference only", () => {
  const job = { id: "0199", kind: "script", name: "backup", queue: "ops", priority: 5, tags: ["nightly"] };
  const files = { "a.ini": { attachment: "0198" } };
  const again = fromJob(job, { target: "db1", interpreter: ["python3", "-u"], args: ["two words"], files, env: { A: "1", TOKEN: { secret: "t" }, NOTE: "a\nb" } });
  expect(build(again, null).body).toMatchObject({ script_from: "0199", target: "db1", interpreter: "python3 -u", args: ["two words"], files, env: { A: "1", TOKEN: { secret: "t" }, NOTE: "a\nb" }, priority: 5 });
  expect(build({ ...again, files: {} }, null).body.files).toBeUndefined();
  expect(build(again, null).body.script).toBeUndefined();
});

test("small texts are read as people write them", () => {
  expect(pairsOf("oops").wrong).toContain("NAME=value");
  expect(wordsOf(`a "b c" 'd e' --name="f g"`)).toEqual(["a", "b c", "d e", "--name=f g"]);
  const hard = ["", "a'b", 'say "no"', "two words", "--x=1"];
  expect(wordsOf(quoted(hard))).toEqual(hard);
});

test("what few jobs need is told only when it is entered", () => {
  const id = "0199c5e2-7a1b-7c3d-9e4f-0123456789ab";
  const draft = { ...blank(), kind: "call" as const, function: "greet" };
  expect(build(draft, null).body).toEqual({ kind: "call", function: "greet", args: [], kwargs: {} });
  const more = { ...draft, hold: true, key: "k", after: [id.toUpperCase()], onParentFailure: "run", expires: "60", attempts: "3", retryWait: "2", backoff: "fixed" };
  expect(build(more, null)).toMatchObject({ wrong: {}, body: { hold: true, key: "k", after: [id], on_parent_failure: "run", expires: 60, retry: { max_attempts: 3, wait: 2, backoff: "fixed" } } });
  expect(build({ ...draft, after: ["x"] }, null).wrong.after).toContain("not the id of a job");
});

test("what is run again keeps what the form does not ask for, and asks for what is not shown", () => {
  const job = { id: "0199c5e2-7a1b-7c3d-9e4f-0123456789ab", kind: "http", name: "hook", queue: "default", priority: 0, tags: [], key: "other", timeout: 12, max_attempts: 5 };
  const again = fromJob(job, { callback_url: "https://example.com/x", http_method: "PUT", expected_status: ["3xx"], headers: { "X-A": { secret: "s", prefix: "Bearer " }, Authorization: "•••" } });
  const { body, wrong } = build(again, null);
  expect(body).toMatchObject({ key: "other", timeout: 12, retry: { max_attempts: 5 }, expected_status: ["3xx"], http_method: "PUT", headers: { "X-A": { secret: "s", prefix: "Bearer " } } });
  expect(wrong.headers).toContain("Authorization");
});

test("a fetch is run again with its headers and limits", () => {
  const job = { id: "0199", kind: "fetch", name: "example.com/a", queue: "default", priority: 0, tags: [], metadata: { by: "hand" } };
  const { body } = build(fromJob(job, { url: "https://example.com/a", source: "x", headers: { "X-A": "1" }, max_size: 5, read_timeout: 2 }), null);
  expect(body).toMatchObject({ kind: "fetch", headers: { "X-A": "1" }, max_size: 5, read_timeout: 2, dedupe: false, metadata: { by: "hand" } });
  expect(body.source).toBeUndefined();
});

test("arguments by position stand in the fields of their parameters", () => {
  const job = { id: "0199", kind: "call", name: "f", queue: "default", priority: 0, tags: [] };
  const again = fromJob(job, { function: "f", args: [42, "hi"], kwargs: { colour: "red" } });
  expect(enteredIn(fieldsOf(schema), again)).toEqual({ user: "42", note: "hi", colour: "red" });
  expect(build({ ...again, entered: { user: "7" } }, schema).body).toMatchObject({ kwargs: { user: 7, note: "hi", colour: "red" } });
  const more = fromJob(job, { function: "f", args: [42], kwargs: { other: 1 } });
  expect(build(more, schema).body).toMatchObject({ args: [42], kwargs: { other: 1 } });
});

test("a text that looks like JSON stays a text", () => {
  const job = { id: "0199", kind: "http", name: "h", queue: "default", priority: 0, tags: [] };
  expect(build(fromJob(job, { callback_url: "https://example.com", payload: "42" }), null).body.payload).toBe("42");
  expect(build(fromJob(job, { callback_url: "https://example.com", payload: "[1]", payload_format: "raw" }), null).body.payload).toBe("[1]");
});

test("whole numbers of any size stay as they are", () => {
  const big = "123456789012345678901234567890";
  const job = { id: "0199", kind: "call", name: "f", queue: "default", priority: 0, tags: [] };
  const again = fromJob(job, parse(`{"function": "f", "kwargs": {"user": ${big}, "deep": {"n": ${big}}}}`) as Record<string, unknown>);
  expect(JSON.stringify(build(again, schema).body.kwargs)).toBe(`{"user":${big},"deep":{"n":${big}}}`);
});

test("rules of retrying are told with the rest of the policy", () => {
  const { body, wrong } = build(draft({ kind: "http", url: "https://example.com", maxWait: "60", jitter: "25", rules: [{ on: "status", match: "400-499", then: "" }, { on: "exception", match: "TimeoutError", then: "5" }] }), null);
  expect(wrong).toEqual({});
  expect(body.retry).toEqual({ max_wait: 60, jitter: 0.25, rules: [{ on: "status", match: "400-499", then: "permanent" }, { on: "exception", match: "TimeoutError", then: 5 }] });
});

test("of a schedule only what was changed is told", () => {
  const job = { kind: "script", name: "backup", target: "db1", script: { attachment: "a1" }, files: { "a.txt": { attachment: "a2" } }, env: { T: { secret: "t" } }, queue: "ops" };
  const existing = { id: "1", name: "nightly", schedule: "30 2 * * *", timezone: "Europe/Berlin", gap: "skip", job } as unknown as Parameters<typeof draftOf>[0];
  const before = { plan: draftOf(existing), draft: fromTemplate(job) };
  expect(changesOf(before, { ...before, plan: { ...before.plan, jitter: 5 } }, {})).toEqual({ jitter: 5 });
  const after = { ...before, draft: { ...before.draft, scriptArgs: "--fast" } };
  expect(changesOf(before, after, build(after.draft, null).body)).toEqual({ job: { ...job, args: ["--fast"] } });
});

test("what is masked in a schedule is sent back masked", () => {
  const job = { kind: "http", callback_url: "https://example.com", headers: { Authorization: "•••" }, priority: 3, retry: { max_attempts: 2 } };
  expect(build(fromTemplate(job), null).body).toEqual({ ...job, http_method: "POST" });
});

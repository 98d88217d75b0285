import { fieldsOf, valuesOf, type Entered, type Field, type Schema } from "../../lib/form";
import { parse } from "../../lib/json";
import { troubleOf } from "../../lib/script";
import { instantIn, zone } from "../../lib/time";
import { urlsIn } from "../../lib/urls";
import { pairsOf, wordsOf } from "../../lib/words";
import { uuid } from "../jobs/filter";

/** What a person has entered so far, and the job body that it adds up to. */

/** A header; `value` is the name of a secret if it is one, with what stands before it. */
export type Header = { name: string; value: string; secret: boolean; prefix?: string };

/** A rule of retries: what an attempt failed with, and how many seconds to wait then, or "permanent". */
export type RetryRule = { on: string; match: string; then: string };

export type Kind = "script" | "http" | "fetch" | "call";
export type Draft = {
  kind: Kind;
  name: string;
  queue: string;
  priority: number;
  later: boolean;
  wall: string;
  zone: string;
  onConflict: string;
  timeout: string;
  attempts: string;
  tags: string[];
  hold: boolean;
  key: string;
  after: string[];
  onParentFailure: string;
  expires: string;
  retryWait: string;
  backoff: string;
  maxWait: string;
  jitter: string;
  rules: RetryRule[];
  script: string;
  scriptFrom: string;
  interpreter: string;
  scriptArgs: string;
  target: string;
  env: string;
  /** Variables that lines of text can't tell: secrets, and values of several lines. */
  envKept: Record<string, unknown>;
  collect: string;
  /** Files that it finds beside it, by name: uploads, and those of the job that is run again. */
  files: Record<string, unknown>;
  url: string;
  method: string;
  headers: Header[];
  payload: string;
  urls: string;
  refetch: boolean;
  function: string;
  entered: Entered;
  rawArgs: string;
  rawKwargs: string;
  /** Fields that this form does not ask for, of the job that is run again or changed. */
  rest: Record<string, unknown>;
};

export const blank = (): Draft => ({
  kind: "script",
  name: "",
  queue: "",
  priority: 0,
  later: false,
  wall: "",
  zone: zone(),
  onConflict: "",
  timeout: "",
  attempts: "",
  tags: [],
  hold: false,
  key: "",
  after: [],
  onParentFailure: "",
  expires: "",
  retryWait: "",
  backoff: "",
  maxWait: "",
  jitter: "",
  rules: [],
  script: "#!/bin/sh\nset -eu\n\n",
  scriptFrom: "",
  interpreter: "",
  scriptArgs: "",
  target: "",
  env: "",
  envKept: {},
  collect: "",
  files: {},
  url: "",
  method: "POST",
  headers: [],
  payload: "",
  urls: "",
  refetch: false,
  function: "",
  entered: {},
  rawArgs: "",
  rawKwargs: "",
  rest: {},
});

export type Wrong = Partial<Record<keyof Draft | `args.${string}`, string>>;
export type Built = { body: Record<string, unknown>; wrong: Wrong };

/** The body of one job (of a batch: what all of its jobs share), and what is still wrong with it. */
export function build(draft: Draft, parameters: Schema | null): Built {
  const { body: own, wrong } = builders[draft.kind](draft, parameters);
  const common = commonOf(draft);
  return { body: { kind: draft.kind, ...draft.rest, ...common.body, ...own }, wrong: { ...common.wrong, ...wrong } };
}

function commonOf(draft: Draft): Built {
  const body: Record<string, unknown> = {};
  const wrong: Wrong = {};
  if (draft.name.trim()) body.name = draft.name.trim();
  if (draft.queue.trim()) body.queue = draft.queue.trim();
  if (draft.priority) body.priority = draft.priority;
  if (draft.onConflict) body.on_conflict = draft.onConflict;
  if (draft.tags.length) body.tags = draft.tags;
  if (draft.timeout) body.timeout = Number(draft.timeout);
  const retry = retryOf(draft);
  if (Object.keys(retry).length) body.retry = retry;
  if (draft.rules.some(({ match }) => !match.trim())) wrong.rules = "Say of each rule what it looks for.";
  if (draft.hold) body.hold = true;
  if (draft.key.trim()) body.key = draft.key.trim();
  if (draft.expires) body.expires = Number(draft.expires);
  if (draft.after.length) {
    body.after = draft.after.map((id) => id.trim().toLowerCase());
    if (draft.onParentFailure) body.on_parent_failure = draft.onParentFailure;
    const wrongId = draft.after.find((id) => !uuid.test(id.trim()));
    if (wrongId) wrong.after = `"${wrongId}" is not the id of a job.`;
  }
  if (draft.later) {
    if (draft.wall) body.run_at = instantIn(draft.wall, draft.zone).toISOString();
    else wrong.wall = "Choose a day and a time, or let it run now.";
  }
  return { body, wrong };
}

function retryOf(draft: Draft): Record<string, unknown> {
  return {
    ...(draft.attempts && { max_attempts: Number(draft.attempts) }),
    ...(draft.retryWait && { wait: Number(draft.retryWait) }),
    ...(draft.backoff && { backoff: draft.backoff }),
    ...(draft.maxWait && { max_wait: Number(draft.maxWait) }),
    ...(draft.jitter && { jitter: Number(draft.jitter) / 100 }),
    ...(draft.rules.length && { rules: draft.rules.map(({ on, match, then }) => ({ on, match: match.trim(), then: then ? Number(then) : "permanent" })) }),
  };
}

const builders: Record<Kind, (draft: Draft, parameters: Schema | null) => Built> = {
  script: (draft) => {
    const wrong: Wrong = {};
    const isKept = Boolean(draft.scriptFrom || draft.rest.script);
    const trouble = isKept ? null : troubleOf(draft.script);
    if (trouble) wrong.script = trouble;
    if (!draft.name.trim()) wrong.name = "A script needs a name: jobs of the same name don't run at once.";
    if (!draft.target && !draft.rest.target) wrong.target = "Choose where it runs.";
    const env = pairsOf(draft.env);
    if (env.wrong) wrong.env = env.wrong;
    const body: Record<string, unknown> = draft.scriptFrom ? { script_from: draft.scriptFrom } : isKept ? {} : { script: draft.script };
    if (draft.target) body.target = draft.target;
    if (draft.interpreter.trim()) body.interpreter = draft.interpreter.trim();
    if (draft.scriptArgs.trim()) body.args = wordsOf(draft.scriptArgs);
    const variables = { ...draft.envKept, ...env.pairs };
    if (Object.keys(variables).length) body.env = variables;
    if (Object.keys(draft.files).length) body.files = draft.files;
    if (draft.collect.trim()) body.collect = draft.collect.split(/[\n,]+/).map((one) => one.trim()).filter(Boolean);
    return { body, wrong };
  },
  http: (draft) => {
    const wrong: Wrong = {};
    if (urlsIn(draft.url).urls.length !== 1) wrong.url = "An address that begins with http:// or https://.";
    const { body: own, wrong: bad } = headersOf(draft);
    const body: Record<string, unknown> = { callback_url: draft.url.trim(), http_method: draft.method, ...own };
    if (draft.payload.trim()) body.payload = isBytes(draft.rest.payload_format) ? draft.payload : (jsonOf(draft.payload) ?? draft.payload);
    return { body, wrong: { ...wrong, ...bad } };
  },
  fetch: (draft) => {
    const { urls, wrong: bad } = urlsIn(draft.urls);
    const wrong: Wrong = {};
    if (bad.length) wrong.urls = `Not an address: ${bad.slice(0, 3).join(", ")}`;
    else if (!urls.length) wrong.urls = "Paste at least one address that begins with http:// or https://.";
    const { body, wrong: others } = headersOf(draft);
    return { body: { url: urls[0], ...body, ...(draft.refetch && { dedupe: false }) }, wrong: { ...wrong, ...others } };
  },
  call: (draft, parameters) => {
    const wrong: Wrong = {};
    if (!draft.function) wrong.function = "Choose the function to call.";
    const body: Record<string, unknown> = { function: draft.function };
    const fields = parameters && fieldsOf(parameters);
    const entered = fields && enteredIn(fields, draft);
    if (fields && entered) {
      const { values, wrong: bad } = valuesOf(fields, entered);
      for (const [name, trouble] of Object.entries(bad)) wrong[`args.${name}`] = trouble;
      body.kwargs = values;
    } else {
      body.args = listOf(draft.rawArgs);
      body.kwargs = objectOf(draft.rawKwargs);
      if (!body.args) wrong.rawArgs = "A JSON list, such as [42].";
      if (!body.kwargs) wrong.rawKwargs = 'A JSON object, such as {"user_id": 42}.';
    }
    return { body, wrong };
  },
};

function headersOf(draft: Draft): Built {
  const headers = draft.headers.filter(({ name }) => name.trim());
  const unfilled = headers.find(({ value }) => !value);
  const wrong: Wrong = unfilled ? { headers: `Fill in ${unfilled.name}: what was sent before is not shown.` } : {};
  if (!headers.length) return { body: {}, wrong };
  return { body: { headers: Object.fromEntries(headers.map(({ name, value, secret, prefix }) => [name.trim(), secret ? { secret: value, ...(prefix ? { prefix } : {}) } : value])) }, wrong };
}

/** Payloads that are sent as they stand. */
export const isBytes = (format: unknown): boolean => format === "raw" || format === "base64";

/** What stands in the fields of a signature: what was entered there, else the arguments of the job that is run again, by
 * position or by name. Null if the signature has no place for all of those. */
export function enteredIn(fields: Field[], draft: Draft): Entered | null {
  const [args, kwargs] = [listOf(draft.rawArgs) ?? [], objectOf(draft.rawKwargs) ?? {}];
  const byName = new Map(fields.map((field) => [field.name, field]));
  if (args.length > fields.length || Object.keys(kwargs).some((name) => !byName.has(name))) return null;
  const given = [...args.map((value, i) => [fields[i]!, value] as const), ...Object.entries(kwargs).map(([name, value]) => [byName.get(name)!, value] as const)];
  return { ...Object.fromEntries(given.map(([field, value]) => [field.name, asEntered(field, value)])), ...draft.entered };
}

function asEntered(field: Field, value: unknown): string | boolean {
  if (typeof value === "boolean" && field.kind === "boolean") return value;
  if (value === null) return "";
  return typeof value === "string" && field.kind !== "json" ? value : JSON.stringify(value, null, 2);
}

const listOf = (text: string): unknown[] | undefined => {
  const value = jsonOf(text.trim() || "[]");
  return Array.isArray(value) ? value : undefined;
};

const objectOf = (text: string): Record<string, unknown> | undefined => {
  const value = jsonOf(text.trim() || "{}");
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
};

/** What a text means as JSON, if it is some. */
export function jsonOf(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

import { quoted } from "../../lib/words";
import { blank, isBytes, jsonOf, type Draft, type Header, type Kind } from "./draft";

/** Drafts from what was: a job that is run again, the job that a schedule makes. What the form has no field for stays in
 * `rest`, so that nothing of it is lost on the way. */

type Body = Record<string, unknown>;
type Was = { id: string; kind: string; name: string; queue: string; priority: number; tags: readonly string[]; key?: string; timeout?: number | null; max_attempts?: number; metadata?: Body | null };

/** What the service shows in the place of what it doesn't show. */
const mask = "•••";

/** A job that was, to be run again with changes. Its script is taken from it; masked headers must be written anew. */
export function fromJob(job: Was, payload: Body): Draft {
  const draft = ofKind(job.kind, payload);
  const metadata = job.metadata && Object.keys(job.metadata).length ? { metadata: job.metadata } : {};
  return {
    ...draft,
    name: job.kind === "fetch" ? "" : job.name,
    queue: job.queue,
    priority: job.priority,
    tags: [...job.tags],
    key: job.key && job.key !== job.name ? job.key : "",
    timeout: job.timeout ? String(job.timeout) : "",
    attempts: job.max_attempts ? String(job.max_attempts) : "",
    headers: draft.headers.map((header) => (header.value === mask ? { ...header, value: "" } : header)),
    refetch: job.kind === "fetch",
    ...(job.kind === "script" && { scriptFrom: job.id }),
    ...(job.kind === "call" && { function: draft.function || job.name }),
    rest: { ...metadata, ...(isOpen(payload.target) ? without(draft.rest, ["target"]) : draft.rest) },
  };
}

/** The job that a schedule makes. What is masked is sent back masked, and stays as it is. */
export function fromTemplate(body: Body): Draft {
  const draft = ofKind(text(body.kind) || "http", without(body, ["kind", "name"]));
  return { ...draft, name: text(body.name) };
}

/** Fields that jobs of all kinds have: they stay when a schedule comes to make jobs of another kind. */
export const ofAnyKind = ["queue", "priority", "key", "tags", "on_conflict", "timeout", "retry", "expires", "metadata", "retain"];

function ofKind(kind: string, fields: Body): Draft {
  const { own, asked } = readers[kind as Kind]?.(fields) ?? { own: {}, asked: [] };
  const rest = Object.fromEntries(Object.entries(without(fields, asked)).filter(([, value]) => value !== null));
  return { ...blank(), kind: kind as Kind, ...own, rest };
}

const readers: Record<Kind, (fields: Body) => { own: Partial<Draft>; asked: string[] }> = {
  script: (fields) => ({
    own: {
      script: "",
      interpreter: Array.isArray(fields.interpreter) ? quoted(fields.interpreter as string[]) : text(fields.interpreter),
      scriptArgs: quoted((fields.args as string[] | undefined) ?? []),
      target: typeof fields.target === "string" ? fields.target : "",
      collect: ((fields.collect as string[] | undefined) ?? []).join("\n"),
      files: (fields.files as Body | undefined) ?? {},
      ...variables((fields.env as Body | undefined) ?? {}),
    },
    asked: ["interpreter", "args", "env", "files", "collect", ...(typeof fields.target === "string" ? ["target"] : [])],
  }),
  http: (fields) => ({
    own: { url: text(fields.callback_url), method: text(fields.http_method) || "POST", payload: payloadText(fields), headers: headers(fields) },
    asked: ["callback_url", "http_method", "payload", "headers"],
  }),
  fetch: (fields) => ({ own: { urls: text(fields.url), headers: headers(fields) }, asked: ["url", "source", "headers"] }),
  call: (fields) => ({ own: { function: text(fields.function), rawArgs: text(fields.args), rawKwargs: text(fields.kwargs) }, asked: ["function", "args", "kwargs"] }),
};

function variables(env: Body): Pick<Draft, "env" | "envKept"> {
  const isLine = (value: unknown): boolean => typeof value === "string" && !value.includes("\n");
  const lines = Object.entries(env).filter(([, value]) => isLine(value));
  return { env: lines.map(([name, value]) => `${name}=${String(value)}`).join("\n"), envKept: Object.fromEntries(Object.entries(env).filter(([, value]) => !isLine(value))) };
}

function headers(fields: Body): Header[] {
  return Object.entries((fields.headers as Body | undefined) ?? {}).map(([name, value]) =>
    typeof value === "object" && value !== null && "secret" in value
      ? { name, value: String(value.secret), secret: true, ...("prefix" in value ? { prefix: String(value.prefix) } : {}) }
      : { name, value: text(value), secret: false },
  );
}

/** A text that would be read as something else is written as JSON. */
function payloadText({ payload, payload_format: format }: Body): string {
  return typeof payload === "string" && !isBytes(format) && jsonOf(payload) !== undefined ? JSON.stringify(payload) : text(payload);
}

/** A target that came with the job: what opened it is not shown, so it can't be used again. */
const isOpen = (target: unknown): boolean => typeof target === "object" && target !== null && !("credential" in target);

const text = (value: unknown): string => (typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value, null, 2));

const without = (fields: Body, names: readonly string[]): Body => Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));

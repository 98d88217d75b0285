import { parse } from "../lib/json";
import { Problem } from "./problem";

/** Everything that this page knows comes through here: the same REST API that every other client uses. */
export const root = "/api/v1";

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

/** Told when the session has ended, wherever that was noticed. */
export const ended = new EventTarget();

export function address(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (Array.isArray(value)) for (const one of value) params.append(name, one);
    else params.append(name, String(value));
  }
  const text = params.toString();
  return `${root}${path}${text ? `?${text}` : ""}`;
}

type Options = { query?: Query; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal };

/** The raw answer; raises a Problem unless it is a success. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  let body: BodyInit | undefined;
  if (options.body instanceof FormData) body = options.body;
  else if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(options.body);
  }
  const answer = await fetch(address(path, options.query), { method, headers, body, signal: options.signal, credentials: "same-origin" });
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await told(answer));
  if (answer.status === 401) ended.dispatchEvent(new Event("ended"));
  throw problem;
}

async function told(answer: Response): Promise<Record<string, unknown>> {
  try {
    const body: unknown = await answer.json();
    return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return { title: `The service answered ${answer.status} ${answer.statusText}`.trim() };
  }
}

async function parsed<T>(answer: Response): Promise<T> {
  if (answer.status === 204 || answer.headers.get("content-length") === "0") return undefined as T;
  return parse(await answer.text()) as T;
}

export const get = async <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> => parsed<T>(await send("GET", path, { query, signal }));
export const post = async <T>(path: string, body?: unknown, query?: Query): Promise<T> => parsed<T>(await send("POST", path, { body, query }));
export const put = async <T>(path: string, body: unknown): Promise<T> => parsed<T>(await send("PUT", path, { body }));
export const patch = async <T>(path: string, body: unknown): Promise<T> => parsed<T>(await send("PATCH", path, { body }));
export const remove = async <T>(path: string): Promise<T> => parsed<T>(await send("DELETE", path));

/** What the service said went wrong (RFC 9457), or that it could not be reached. */
export class Problem extends Error {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly field: string | null;
  readonly extra: Record<string, unknown>;

  constructor(status: number, body: Record<string, unknown>) {
    const title = text(body.title) ?? `The service answered ${status}`;
    const detail = text(body.detail) ?? text(body.message) ?? "";
    super(detail || title);
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.field = text(body.field);
    this.extra = body;
  }

  static of(error: unknown): Problem {
    if (error instanceof Problem) return error;
    return new Problem(0, {
      title: "The service can't be reached",
      detail: error instanceof Error ? error.message : String(error),
    });
  }

  /** The sentence to show: what happened, and what to do. */
  get advice(): string {
    if (this.status === 0) return "Check that `headway up` is running, then try again; this page goes on by itself.";
    if (this.status === 403) return this.detail || "Your role does not allow this. Ask an admin for a role that does.";
    if (this.status === 404) return this.detail || "It may have been deleted, or pruned after its time.";
    if (this.status === 413) return this.detail || "It is too large.";
    return this.detail || this.message;
  }
}

const text = (value: unknown): string | null => (typeof value === "string" && value ? value : null);

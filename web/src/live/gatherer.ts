import type { QueryClient } from "@tanstack/react-query";

/** Views are fetched again when something happened, but not more often than people can read. */
const calm = 1_000;

/** Gathers events for a moment and then asks anew for what they concern: all that is shown, if some were missed. */
export class Gatherer {
  private readonly jobs = new Set<string>();
  private missed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly queries: Pick<QueryClient, "invalidateQueries">) {}

  add(event: { job_id?: string | null }): void {
    if (event.job_id) this.jobs.add(event.job_id);
    else this.missed = true;
    this.timer ??= setTimeout(() => this.flush(), calm);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private flush(): void {
    this.timer = undefined;
    if (this.missed) void this.queries.invalidateQueries();
    else for (const queryKey of [...[...this.jobs].map((id) => ["job", id]), ["live"]]) void this.queries.invalidateQueries({ queryKey });
    this.jobs.clear();
    this.missed = false;
  }
}

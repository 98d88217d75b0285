/** A rule of the alerts, and what it sends. */
export const causes: Record<string, string> = {
  job_failed: "a job fails",
  schedule_missed: "a schedule misses its time",
  worker_lost: "a worker is lost",
  queue_backlog: "a queue backs up",
  queue_unserved: "a queue has no worker",
};

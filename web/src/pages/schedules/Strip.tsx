import { Link } from "react-router";

import type { Mark } from "../../api/types";
import { lookOf } from "../../lib/states";
import { local } from "../../lib/time";

/** The last jobs of a schedule, the latest on the right: height and colour tell how each ended, the title says it. */
export function Strip({ jobs }: { jobs: readonly Mark[] | undefined }) {
  if (!jobs) return <span className="strip" aria-hidden="true" />;
  if (!jobs.length) return <>–</>;
  const failed = jobs.filter((job) => job.state === "failed").length;
  return (
    <span className="strip" role="group" aria-label={`Last ${jobs.length} jobs, ${failed} failed`}>
      {[...jobs].reverse().map((job) => {
        const look = lookOf(job.state);
        const words = `${look.word}, ${local(new Date(job.at))}`;
        return <Link key={job.id} to={`/jobs/${job.id}`} className={`tone-${look.tone}`} title={words} aria-label={words} tabIndex={-1} />;
      })}
    </span>
  );
}

import type { Schedule } from "../../api/types";
import { Icon } from "../../parts/Icon";

/** Whether a schedule fires, in a word. */
export function Standing({ of }: { of: Schedule }) {
  if (of.problem) return <span className="state tone-failed"><Icon name="bang" size={12} />unreadable</span>;
  if (of.paused) return <span className="state tone-retrying" title={of.pause_reason ?? undefined}><Icon name="pause" size={12} />paused</span>;
  if (of.ended) return <span className="state tone-cancelled"><Icon name="slash" size={12} />ended</span>;
  return <span className="state tone-completed"><Icon name="clock" size={12} />active</span>;
}

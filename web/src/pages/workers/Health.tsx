import type { Worker } from "../../api/types";
import { Icon } from "../../parts/Icon";

export function Health({ worker }: { worker: Worker }) {
  return worker.alive ? (
    <span className="state tone-completed">
      <Icon name="check" size={12} /> alive
    </span>
  ) : (
    <span className="state tone-failed">
      <Icon name="bang" size={12} /> silent
    </span>
  );
}

import { lookOf } from "../lib/states";
import { Icon } from "./Icon";

/** A state at a glance: colour, shape and word. */
export function State({ of, outcome }: { of: string; outcome?: string | null }) {
  const look = lookOf(of);
  const special = outcome && !["succeeded", "failed", "cancelled"].includes(outcome) ? ` · ${outcome.replace("_", " ")}` : "";
  return (
    <span className={`state tone-${look.tone}`} data-state={of}>
      <Icon name={look.icon} size={12} spin={look.icon === "spinner"} />
      {look.word}
      {special}
    </span>
  );
}

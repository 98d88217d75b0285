import { Tooltip } from "@mantine/core";

import { useHealth } from "../live/Live";

const told = {
  live: "Live: changes show by themselves",
  connecting: "Connecting to live updates",
  lost: "Live updates are interrupted; trying again every two seconds. What you see may be old.",
} as const;

/** Whether what is shown keeps itself up to date. */
export function LiveLight() {
  const health = useHealth();
  return (
    <Tooltip label={told[health]} multiline maw={240}>
      <span className={`live live-${health}`} role="status" aria-label={told[health]} tabIndex={0}>
        <span className="live-dot" />
        <span className="live-word">{health === "lost" ? "reconnecting" : health}</span>
      </span>
    </Tooltip>
  );
}

import { Text } from "@mantine/core";

import { between, duration, local, relative, utc } from "../lib/time";
import { useTicking } from "../live/now";

/** An instant: relative and ticking; the exact time, local and UTC, on hover. */
export function When({ at, fallback = "–" }: { at: string | null | undefined; fallback?: string }) {
  if (!at) return <Text span c="dimmed" inherit>{fallback}</Text>;
  return <Ticking at={at} />;
}

function Ticking({ at }: { at: string }) {
  const instant = new Date(at);
  const shown = useTicking((now) => relative(instant, now));
  return (
    <time dateTime={at} title={`${local(instant)}\n${utc(instant)}`} className="nowrap">
      {shown}
    </time>
  );
}

/** An instant in full, in the reader's zone, with UTC on hover. */
export function Instant({ at }: { at: string | null | undefined }) {
  if (!at) return <Text span c="dimmed" inherit>–</Text>;
  return (
    <time dateTime={at} title={utc(new Date(at))}>
      {local(new Date(at))}
    </time>
  );
}

/** How long something took, or has taken so far. */
export function Took({ from, to }: { from: string | null | undefined; to?: string | null }) {
  if (!from) return <Text span c="dimmed" inherit>–</Text>;
  return to ? <span className="nowrap">{duration(between(from, to, new Date()))}</span> : <Elapsed from={from} />;
}

function Elapsed({ from }: { from: string }) {
  return <span className="nowrap">{useTicking((now) => duration(Math.floor(between(from, null, now))).replace("0 ms", "0 s"))}</span>;
}

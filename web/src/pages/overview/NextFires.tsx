import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { comingFires, known, useSchedules } from "../../api/schedules";
import type { Schedule } from "../../api/types";
import { inWords } from "../../lib/cron";
import { density } from "../../lib/density";
import { plural } from "../../lib/numbers";
import { useNow } from "../../live/now";
import { Ask } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { When } from "../../parts/When";

const hours = 6;
const span = hours * 3_600_000;
const parts = hours * 12;
/** Schedules that are shown: the fires of each are asked for. */
const shown = 8;

/** What fires in the coming hours: a line for each schedule, those that fire next first. */
export function NextFires() {
  const schedules = useSchedules();
  return (
    <Panel title="Next fires" aside={<Text size="xs" c="dimmed">next {hours} hours</Text>}>
      <Ask of={schedules} rows={3}>
        {(all) => {
          const next = all.filter((one) => one.next_at && !one.paused).sort((a, b) => a.next_at!.localeCompare(b.next_at!));
          if (!next.length) return <Text size="sm" c="dimmed">No schedule is active.</Text>;
          return (
            <div className="lanes">
              {next.slice(0, shown).map((one) => (
                <Lane key={one.id} schedule={one} />
              ))}
              <div className="lane-hours" aria-hidden="true">
                {Array.from({ length: hours + 1 }, (_, i) => (
                  <span key={i} style={{ left: `${(100 * i) / hours}%` }}>{i === 0 ? "now" : `+${i}h`}</span>
                ))}
              </div>
              {next.length > shown && <Text size="xs" c="dimmed"><Link to="/schedules">and {plural(next.length - shown, "more schedule")}</Link></Text>}
            </div>
          );
        }}
      </Ask>
    </Panel>
  );
}

function Lane({ schedule: one }: { schedule: Schedule }) {
  const start = Math.floor(useNow().getTime() / 60_000) * 60_000;
  const isNear = new Date(one.next_at!).getTime() < start + span;
  const { data: fires } = useQuery({ queryKey: ["coming", one.id, one.next_at, Math.floor(start / 300_000)], queryFn: () => comingFires(one.id), enabled: isNear, placeholderData: (before) => before });
  const bars = fires && isNear ? density({ fires, more: fires.length === known }, start, span, parts) : [];
  const total = bars.reduce((sum, fired) => sum + fired, 0);
  return (
    <>
      <Link to={`/schedules/${one.id}`} className="truncate" title={inWords(one.schedule, one.timezone)}>{one.name}</Link>
      <div className="lane" role="img" aria-label={`${plural(total, "fire")} within ${hours} hours`}>
        {bars.map((fired, i) => {
          if (!fired) return null;
          const from = new Date(start + (i * span) / parts).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
          return <span key={i} style={{ left: `${(100 * i) / parts}%`, width: fired > 1 ? `calc(${100 / parts}% + 1px)` : 3 }} title={`${plural(fired, "fire")} within five minutes from ${from}`} />;
        })}
      </div>
      <Text size="xs" ta="right"><When at={one.next_at} /></Text>
    </>
  );
}

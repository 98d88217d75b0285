import { SegmentedControl, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";

import { useOccurrences } from "../../api/schedules";
import type { Occurrence } from "../../api/types";
import { byDay, step, type Day } from "../../lib/heat";
import { plural } from "../../lib/numbers";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { Instant } from "../../parts/When";

const cell = 15;
const weekdays = ["Mon", "", "Wed", "", "Fri", "", "Sun"];

/** What became of each expected fire: a calendar for the eye, a table for the details. */
export function Ledger({ id }: { id: string }) {
  const [view, setView] = useState("calendar");
  const occurrences = useOccurrences(id, view === "calendar" ? { daily: true } : { limit: 200 });
  return (
    <Panel title="Ledger" bare aside={<SegmentedControl aria-label="View of the ledger" data={[{ value: "calendar", label: "Calendar" }, { value: "table", label: "Table" }]} value={view} onChange={setView} />}>
      <Ask of={occurrences} rows={4}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="schedules" title="Nothing in the ledger yet">
              Each expected fire is recorded here: the job that it became, or why none.
            </Empty>
          ) : view === "calendar" ? (
            <Calendar lines={items} />
          ) : (
            <Lines lines={items} />
          )
        }
      </Ask>
    </Panel>
  );
}

function Calendar({ lines }: { lines: Occurrence[] }) {
  const weeks = byDay(lines, new Date());
  const largest = Math.max(...weeks.flat().map((day) => day.fired));
  const fired = lines.reduce((sum, line) => sum + (line.job_id ? line.count : 0), 0);
  const skipped = lines.reduce((sum, line) => sum + (line.job_id ? 0 : line.count), 0);
  return (
    <div className="panel-body">
      <div className="heat" tabIndex={0} role="region" aria-label="Calendar of fires">
        <svg width={weeks.length * cell + 34} height={7 * cell + 2} role="img" aria-label={`${fired} fired, ${skipped} skipped; the table tells each`}>
          {weekdays.map((name, i) => (
            <text key={i} x={0} y={i * cell + 11} fontSize="10" fill="var(--mantine-color-dimmed)">
              {name}
            </text>
          ))}
          {weeks.map((week, w) => week.map((day, d) => <Square key={day.date} day={day} x={34 + w * cell} y={d * cell} largest={largest} />))}
        </svg>
      </div>
      <Text size="xs" c="dimmed" mt={6}>
        {plural(fired, "fire")}, {plural(skipped, "skip")} since <Instant at={lines.at(-1)!.nominal_at} /> (a hollow square is a day with skips only, a dot marks skips beside fires; days are UTC)
      </Text>
    </div>
  );
}

const fills = [0, 0.3, 0.5, 0.75, 1];

function Square({ day, x, y, largest }: { day: Day; x: number; y: number; largest: number }) {
  const words = `${day.date}: ${day.fired} fired, ${day.skipped} skipped${day.reasons.length ? ` (${day.reasons.join(", ")})` : ""}`;
  const level = step(day.fired, largest);
  const only = day.fired === 0 && day.skipped > 0;
  return (
    <g>
      <title>{words}</title>
      <rect x={x} y={y} width={cell - 3} height={cell - 3} rx={2} fill={level ? "var(--completed)" : "var(--surface-sunk)"} fillOpacity={level ? fills[level] : 1} stroke={only ? "var(--failed)" : "none"} strokeWidth={1.5} />
      {day.fired > 0 && day.skipped > 0 && <circle cx={x + (cell - 3) / 2} cy={y + (cell - 3) / 2} r={2.4} fill="var(--failed)" stroke="var(--surface)" />}
    </g>
  );
}

function Lines({ lines }: { lines: Occurrence[] }) {
  return (
    <div className="table-scroll" style={{ maxHeight: 340 }} tabIndex={0} role="region" aria-label="Ledger">
      <table className="grid stack">
        <thead>
          <tr>
            <th scope="col">Nominal time</th>
            <th scope="col" className="num">Count</th>
            <th scope="col">What became of it</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.nominal_at}>
              <td data-label="Time">
                <div className="cell">
                  <Instant at={line.nominal_at} />
                  {line.until_at !== line.nominal_at && <> … <Instant at={line.until_at} /></>}
                </div>
              </td>
              <td data-label="Count" className="num"><div className="cell">{line.count}</div></td>
              <td data-label="Became">
                <div className="cell">
                  {line.job_id ? <Link to={`/jobs/${line.job_id}`}>a job</Link> : <><Icon name="slash" size={11} /> skipped: {line.reason}{line.detail ? `, ${line.detail}` : ""}</>}
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

import { Text } from "@mantine/core";

import { useJobPart } from "../../api/jobs";
import type { HistoryEntry, Job, Page } from "../../api/types";
import { told } from "../../lib/life";
import { lookOf } from "../../lib/states";
import { between, duration } from "../../lib/time";
import { Icon } from "../../parts/Icon";
import { Ask } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { Instant } from "../../parts/When";

/** Every change of a job, with its time and who asked for it. */
export function Life({ job }: { job: Job }) {
  const history = useJobPart<Page<HistoryEntry>>(job.id, "history");
  return (
    <Panel title="Timeline">
      <Ask of={history} rows={4}>
        {(page) => (
          <>
            <Spans history={page.items} />
            <ol className="life">
              {page.items.map((entry, i) => (
                <Event key={`${entry.at}-${i}`} entry={entry} before={page.items[i - 1]} />
              ))}
            </ol>
          </>
        )}
      </Ask>
    </Panel>
  );
}

/** The job's time, parted by what it was spent with. */
function Spans({ history }: { history: HistoryEntry[] }) {
  const parts = history.slice(1).map((entry, i) => ({ look: lookOf(told(history[i]!).state), took: between(history[i]!.at, entry.at, new Date()) }));
  const whole = parts.reduce((sum, { took }) => sum + took, 0);
  if (whole <= 0) return null;
  const words = parts.map(({ look, took }) => `${look.word} ${duration(took)}`).join(", ");
  return (
    <div className="spans" role="img" aria-label={words} title={words}>
      {parts.map(({ look, took }, i) => (
        <span key={i} className={`tone-${look.tone}`} style={{ flexGrow: took / whole }} />
      ))}
    </div>
  );
}

function Event({ entry, before }: { entry: HistoryEntry; before?: HistoryEntry }) {
  const { state, word, detail } = told(entry);
  const look = lookOf(state);
  return (
    <li className={`tone-${look.tone}`}>
      <span className="dot">
        <Icon name={look.icon} size={15} />
      </span>
      <div>
        <b>{word}</b>
        {entry.by && <span> by {entry.by}</span>}
      </div>
      <Text size="xs" c="dimmed">
        <Instant at={entry.at} />
        {before && ` · after ${duration(between(before.at, entry.at, new Date()))}`}
      </Text>
      {detail && (
        <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {detail}
        </Text>
      )}
    </li>
  );
}

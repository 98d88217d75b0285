import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { get } from "../../api/client";

import type { FailurePage, Period } from "../../api/types";
import { plural } from "../../lib/numbers";
import { instant } from "../jobs/filter";
import { Ask, Empty } from "../../parts/Notices";
import { Panel } from "../../parts/Panel";
import { When } from "../../parts/When";

const spans = { hour: "-1h", day: "-1d", week: "-7d" } as const;

/** What fails most, of the latest failures. */
export function Failing({ period }: { period: Period }) {
  const jobs = useQuery({
    queryKey: ["live", "failing", period],
    queryFn: () => get<FailurePage>("/stats/failures", { from: instant(spans[period], new Date()) }),
    placeholderData: (before) => before,
  });
  return (
    <Panel title="Fails most" aside={<Text size="xs" c="dimmed">last {period}</Text>} bare>
      <Ask of={jobs} rows={4}>
        {({ items, more }) => {
          const groups = items.slice(0, 6);
          if (!groups.length) return <Empty small title={`Nothing failed in the last ${period}.`} />;
          return (
            <ul className="plain-list">
              {groups.map((group) => (
                <li key={group.name}>
                  <span className="state tone-failed">{group.count}{more ? "+" : ""}</span>
                  <div style={{ minWidth: 0, flex: 1 }}>
                    <Link to={`/jobs?state=failed&name=${encodeURIComponent(group.name)}`} className="truncate" style={{ display: "block" }} aria-label={`${group.name}: ${plural(group.count, "failure")}`}>
                      {group.name}
                    </Link>
                    <Text size="xs" c="dimmed" className="truncate" title={group.message}>{group.message}</Text>
                  </div>
                  <Text size="xs" c="dimmed"><When at={group.last} /></Text>
                </li>
              ))}
            </ul>
          );
        }}
      </Ask>
    </Panel>
  );
}

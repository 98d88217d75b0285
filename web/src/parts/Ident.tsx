import { ActionIcon, CopyButton, Group, Tooltip } from "@mantine/core";
import { Link } from "react-router";

import { Icon } from "./Icon";

/** An id in monospace, short where room is short, with a button that copies all of it. */
export function Ident({ id, to, full = false }: { id: string; to?: string; full?: boolean }) {
  const shown = full ? id : brief(id);
  return (
    <Group gap={2} wrap="nowrap" display="inline-flex" maw="100%">
      {to ? (
        <Link to={to} className="mono truncate" title={id}>
          {shown}
        </Link>
      ) : (
        <span className={full ? "mono" : "mono truncate"} style={full ? { overflowWrap: "anywhere" } : undefined} title={id}>
          {shown}
        </span>
      )}
      <Copy value={id} />
    </Group>
  );
}

/** UUIDs of version 7 begin with the time, so the end tells them apart. */
export const brief = (id: string): string => (id.length > 14 ? `${id.slice(0, 4)}…${id.slice(-8)}` : id);

export function Copy({ value, label = "Copy" }: { value: string; label?: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : label}>
          <ActionIcon size="xs" onClick={copy} aria-label={`${label} ${value.length < 80 ? value : ""}`.trim()}>
            <Icon name={copied ? "check" : "copy"} size={12} />
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

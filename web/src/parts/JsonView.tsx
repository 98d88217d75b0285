import { useState } from "react";

import { writtenOut } from "../lib/json";

/** More entries than this are opened on request. */
const step = 100;

/** A value as a tree that opens and closes. */
export function JsonView({ value, open = 2 }: { value: unknown; open?: number }) {
  return (
    <div className="json" role="tree" aria-label="JSON">
      <Node value={value} depth={0} open={open} />
    </div>
  );
}

function Node({ name, value, depth, open }: { name?: string; value: unknown; depth: number; open: number }) {
  const [isOpen, setOpen] = useState(depth < open);
  const [limit, setLimit] = useState(step);
  const label = name === undefined ? null : <span className="json-key">{name}: </span>;
  if (typeof value !== "object" || value === null || writtenOut(value) !== null) {
    return (
      <div role="treeitem" className="json-row">
        {label}
        <Scalar value={value} />
      </div>
    );
  }
  const isList = Array.isArray(value);
  const entries: [string, unknown][] = isList ? value.map((one, i) => [String(i), one]) : Object.entries(value);
  return (
    <div role="treeitem" aria-expanded={isOpen} className="json-row">
      <button type="button" className="json-toggle" onClick={() => setOpen(!isOpen)}>
        {isOpen ? "▾" : "▸"} {label}
        <span className="json-size">{isList ? `[${entries.length}]` : `{${entries.length}}`}</span>
      </button>
      {isOpen && (
        <div role="group" className="json-children">
          {entries.slice(0, limit).map(([key, one]) => (
            <Node key={key} name={key} value={one} depth={depth + 1} open={open} />
          ))}
          {entries.length > limit && (
            <button type="button" className="json-toggle" onClick={() => setLimit(limit + step * 5)}>
              {entries.length - limit} more …
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Scalar({ value }: { value: unknown }) {
  if (typeof value === "string") return <span className="json-text">{JSON.stringify(value)}</span>;
  return <span className="json-value">{writtenOut(value) ?? String(value)}</span>;
}

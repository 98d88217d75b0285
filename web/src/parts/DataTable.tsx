import { Checkbox } from "@mantine/core";
import { flexRender, getCoreRowModel, useReactTable, type ColumnDef, type RowSelectionState } from "@tanstack/react-table";
import { useEffect, useRef, useState, type CSSProperties, type ReactNode } from "react";

import { isTyping } from "../app/Keys";

declare module "@tanstack/react-table" {
  // The parameters must be named as they are in the declaration that this one joins.
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  interface ColumnMeta<TData, TValue> {
    numeric?: boolean;
    width?: string;
  }
}

type Props<Row> = {
  label: string;
  rows: Row[];
  // Columns of one table hold values of many types.
  columns: ColumnDef<Row, any>[];
  idOf: (row: Row) => string;
  selected?: ReadonlySet<string>;
  onSelect?: (selected: Set<string>) => void;
  onOpen?: (row: Row) => void;
  height?: string;
  footer?: ReactNode;
};

/** A table that stays in place: sticky head, rows for `j` and `k`, selection. Below a phone's width each row is a card. */
export function DataTable<Row>(props: Props<Row>) {
  const { rows, columns, idOf, selected, onSelect, onOpen } = props;
  const [chosen, setChosen] = useState<{ id: string | undefined; at: number }>({ id: undefined, at: -1 });
  // By its id: rows of a live table move while one reads.
  const current = chosen.id === undefined ? -1 : rows.findIndex((row) => idOf(row) === chosen.id);
  const body = useRef<HTMLTableSectionElement>(null);
  const selection: RowSelectionState = Object.fromEntries([...(selected ?? [])].map((id) => [id, true]));
  const table = useReactTable({
    data: rows,
    columns,
    getRowId: idOf,
    getCoreRowModel: getCoreRowModel(),
    enableRowSelection: Boolean(onSelect),
    state: { rowSelection: selection },
    onRowSelectionChange: (change) => {
      const next = typeof change === "function" ? change(selection) : change;
      onSelect?.(new Set(Object.keys(next).filter((id) => next[id])));
    },
  });
  useRowKeys({
    count: rows.length,
    current: current < 0 ? chosen.at : current,
    isThere: current >= 0,
    move: (to) => {
      const row = rows[to];
      setChosen({ id: row && idOf(row), at: to });
      body.current?.rows[to]?.scrollIntoView({ block: "nearest" });
    },
    open: onOpen && ((at) => rows[at] && onOpen(rows[at])),
    select: onSelect && ((at) => table.getRowModel().rows[at]?.toggleSelected()),
  });
  return (
    <div className="table-scroll" style={props.height ? ({ "--table-height": props.height } as CSSProperties) : undefined} tabIndex={0} role="region" aria-label={props.label}>
      <table className="grid stack">
        <thead>
          <tr>
            {onSelect && (
              <th style={{ width: 32 }}>
                <Checkbox
                  size="xs"
                  aria-label="Select all rows shown"
                  checked={table.getIsAllRowsSelected()}
                  indeterminate={table.getIsSomeRowsSelected()}
                  onChange={table.getToggleAllRowsSelectedHandler()}
                />
              </th>
            )}
            {table.getFlatHeaders().map((header) => (
              <th key={header.id} scope="col" className={header.column.columnDef.meta?.numeric ? "num" : undefined} style={{ width: header.column.columnDef.meta?.width }}>
                {flexRender(header.column.columnDef.header, header.getContext())}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {table.getRowModel().rows.map((row, at) => (
            <tr key={row.id} data-current={at === current} data-selected={row.getIsSelected()}>
              {onSelect && (
                <td data-label="Select" className="pick">
                  <div className="cell">
                    <Checkbox size="xs" aria-label={`Select row ${at + 1}`} checked={row.getIsSelected()} onChange={row.getToggleSelectedHandler()} />
                  </div>
                </td>
              )}
              {row.getVisibleCells().map((cell, i) => (
                <td key={cell.id} data-label={String(cell.column.columnDef.header ?? "")} className={i === 0 ? "main" : cell.column.columnDef.meta?.numeric ? "num" : undefined}>
                  <div className="cell">{flexRender(cell.column.columnDef.cell, cell.getContext())}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {props.footer}
    </div>
  );
}

type RowKeys = { count: number; current: number; isThere: boolean; move: (to: number) => void; open?: (at: number) => void; select?: (at: number) => void };

/** From where the current row was, should it have gone; it is opened and selected only while it is there. */
function useRowKeys({ count, current, isThere, move, open, select }: RowKeys): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey || document.querySelector("[role=dialog]")) return;
      if (event.key === "j") move(Math.min(count - 1, current + 1));
      else if (event.key === "k") move(Math.max(0, current - 1));
      else if (event.key === "Enter" && isThere && event.target === document.body) open?.(current);
      else if (event.key === "x" && isThere) select?.(current);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  });
}

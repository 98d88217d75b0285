/** Where the jobs of a graph of dependencies stand: parents left of children, one column per step. */

export type Node = { id: string; after: readonly string[] };
export type Placed = { id: string; column: number; row: number };
export type Edge = { from: string; to: string };

/** Columns by the longest way from a job without parents; rows in the order given. */
export function place(nodes: readonly Node[]): { placed: Placed[]; edges: Edge[]; columns: number; rows: number } {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const depth = new Map<string, number>();
  const depthOf = (id: string, seen: ReadonlySet<string>): number => {
    const found = depth.get(id);
    if (found !== undefined) return found;
    const parents = (known.get(id)?.after ?? []).filter((parent) => known.has(parent) && !seen.has(parent));
    const value = parents.length ? 1 + Math.max(...parents.map((parent) => depthOf(parent, new Set([...seen, id])))) : 0;
    depth.set(id, value);
    return value;
  };
  const used = new Map<number, number>();
  const placed = nodes.map(({ id }) => {
    const column = depthOf(id, new Set());
    const row = used.get(column) ?? 0;
    used.set(column, row + 1);
    return { id, column, row };
  });
  const edges = nodes.flatMap(({ id, after }) => after.filter((parent) => known.has(parent)).map((parent) => ({ from: parent, to: id })));
  return { placed, edges, columns: Math.max(0, ...placed.map((one) => one.column + 1)), rows: Math.max(0, ...used.values()) };
}

/** Where the steps of a plan stand in a drawing: after all that they need. */

/** A step with what it needs. */
export interface Node {
  id: string;
  needs: readonly string[];
}

/** A place in the drawing: columns from the left, rows from the top. */
export interface Place {
  column: number;
  row: number;
}

/**
 * Returns the place of each step. A step stands in the column after the last of those
 * that it needs; within a column it stands near them. What needs itself through others
 * stands where it was first met.
 */
export function layout(nodes: readonly Node[]): Map<string, Place> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const columns = new Map<string, number>();
  const under = new Set<string>();
  const column = (id: string): number => {
    const known = columns.get(id);
    if (known !== undefined) return known;
    const node = byId.get(id);
    if (node === undefined || under.has(id)) return -1;
    under.add(id);
    const own = Math.max(-1, ...node.needs.map(column)) + 1;
    under.delete(id);
    columns.set(id, own);
    return own;
  };
  const places = new Map<string, Place>();
  const lists: Node[][] = [];
  for (const node of nodes) (lists[column(node.id)] ??= []).push(node);
  for (const [c, list] of lists.entries()) {
    const middle = (node: Node): number => {
      const rows = node.needs.map((id) => places.get(id)?.row).filter((row) => row !== undefined);
      return rows.length === 0 ? 0 : rows.reduce((sum, row) => sum + row, 0) / rows.length;
    };
    const order = (list ?? []).map((node, i) => ({ node, i, at: middle(node) })).sort((a, b) => a.at - b.at || a.i - b.i);
    for (const [row, { node }] of order.entries()) places.set(node.id, { column: c, row });
  }
  return places;
}

import { QUEUE_DEPTH_MAX } from "./decide.ts";

/** A queue with the one above it. */
export type TreeEdge = { readonly name: string; readonly parent: string | null };

/** Why a queue cannot have this parent. */
export type TreeProblem =
  | { readonly kind: "unknownParent"; readonly parent: string }
  /** The path leads from the queue up to itself. */
  | { readonly kind: "circle"; readonly path: readonly string[] }
  | { readonly kind: "tooDeep"; readonly depthMax: number };

/**
 * Checks a new or changed queue against all others. The parent must exist. No queue may be its own ancestor. A path
 * from the root through this queue may have at most `QUEUE_DEPTH_MAX` queues.
 */
export function treeProblem(queue: TreeEdge, others: readonly TreeEdge[]): TreeProblem | null {
  if (queue.parent === null) return null;
  const parents = new Map(others.map(({ name, parent }) => [name, parent]));
  parents.set(queue.name, queue.parent);
  if (!parents.has(queue.parent)) return { kind: "unknownParent", parent: queue.parent };
  const path = [queue.name];
  let next: string | null = queue.parent;
  while (next !== null && next !== queue.name && path.length <= parents.size) {
    path.push(next);
    next = parents.get(next) ?? null;
  }
  if (next === queue.name) return { kind: "circle", path: [...path, queue.name] };
  const deepest = path.length - 1 + heightOf(queue.name, parents);
  return deepest > QUEUE_DEPTH_MAX ? { kind: "tooDeep", depthMax: QUEUE_DEPTH_MAX } : null;
}

/** Returns the number of queues on the longest path downwards, including the queue itself. */
function heightOf(name: string, parents: ReadonlyMap<string, string | null>): number {
  const children = new Map<string, string[]>();
  for (const [child, parent] of parents) {
    if (parent !== null) children.set(parent, [...(children.get(parent) ?? []), child]);
  }
  const seen = new Set<string>();
  let level: readonly string[] = [name];
  let height = 0;
  while (level.length > 0) {
    height += 1;
    for (const one of level) seen.add(one);
    level = level.flatMap((one) => children.get(one) ?? []).filter((one) => !seen.has(one));
  }
  return height;
}

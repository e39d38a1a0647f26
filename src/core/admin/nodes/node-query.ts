/** Which nodes a list has, in which order, and in which pages. */
import { compareText } from "../../../runtime/compare-text.ts";
import { Heap } from "../../../runtime/heap.ts";
import type { NodeState } from "./node-standing.ts";

/** The facts of a node that a list selects and orders by. It is small: there may be 50,000. */
export type NodeRow = {
  readonly cluster: string;
  readonly name: string;
  readonly flavors: readonly string[];
  readonly states: readonly NodeState[];
  readonly held: number;
  readonly free: number;
  /** The place in the changes of its cluster at which the node was read. It changed no later. */
  readonly sequence: number;
};

/** An empty list passes every node. */
export type NodeFilter = {
  readonly names: readonly string[];
  readonly flavors: readonly string[];
  readonly states: readonly NodeState[];
};

export const NODE_ORDERS = ["cluster", "name", "held desc", "free desc"] as const;
export type NodeOrder = (typeof NODE_ORDERS)[number];

/** The sort key of a node. No two nodes have the same, and it changes only with the node. */
export type NodeKey = readonly (string | number)[];

export const KEY_TYPES: Readonly<Record<NodeOrder, readonly ("string" | "number")[]>> = {
  cluster: ["string", "string"],
  name: ["string", "string"],
  "held desc": ["number", "number", "string", "string"],
  "free desc": ["number", "number", "string", "string"],
};

export function keyOf(node: NodeRow, order: NodeOrder): NodeKey {
  switch (order) {
    case "cluster":
      return [node.cluster, node.name];
    case "name":
      return [node.name, node.cluster];
    case "held desc":
      return [node.held, node.free, node.cluster, node.name];
    case "free desc":
      return [node.free, node.held, node.cluster, node.name];
  }
}

/** The order of keys of one list: numbers descend, texts ascend. */
export function compareKeys(one: NodeKey, other: NodeKey): number {
  for (const [at, part] of one.entries()) {
    const against = other[at];
    const found =
      typeof part === "number" ? Number(against) - part : compareText(part, typeof against === "string" ? against : "");
    if (found !== 0) return found;
  }
  return 0;
}

/** The function that says whether a node passes. */
export function passing({ names, flavors, states }: NodeFilter): (node: NodeRow) => boolean {
  const wanted = new Set(names);
  return (node) =>
    (wanted.size === 0 || wanted.has(node.name)) &&
    (flavors.length === 0 || node.flavors.some((one) => flavors.includes(one))) &&
    (states.length === 0 || node.states.some((one) => states.includes(one)));
}

type Keyed = { readonly node: NodeRow; readonly key: NodeKey };

/**
 * The first nodes after a key, in order, at most `limit`, and the number of all nodes. It visits each node once, and
 * keeps no more than the page.
 */
export function firstAfter(
  nodes: Iterable<NodeRow>,
  { order, after, limit }: { readonly order: NodeOrder; readonly after: NodeKey | null; readonly limit: number },
): { readonly nodes: readonly Keyed[]; readonly total: number } {
  // The last one of the page is on top.
  const kept = new Heap<Keyed>([], (one, other) => compareKeys(one.key, other.key) > 0);
  let total = 0;
  for (const node of nodes) {
    total += 1;
    const key = keyOf(node, order);
    if (after !== null && compareKeys(key, after) <= 0) continue;
    const last = kept.peek();
    if (kept.size >= limit && last !== undefined && compareKeys(key, last.key) > 0) continue;
    kept.push({ node, key });
    if (kept.size > limit) kept.pop();
  }
  const found: Keyed[] = [];
  for (let last = kept.pop(); last !== undefined; last = kept.pop()) found.push(last);
  return { nodes: found.reverse(), total };
}

import type { NodeCapacity } from "../model/snapshot.ts";
import { HOSTNAME_LABEL, type Topology } from "../model/topology.ts";
import { DomainTree } from "./domain-tree.ts";

/** The domain of a slot whose node lacks the label of a level, and of one without a node. */
export const NO_DOMAIN = -1;

type Nodes = readonly (NodeCapacity | null)[];

/**
 * In which domain of each level the node of each slot is. A domain is a path of values: racks of one name in different
 * blocks are different domains. A node that lacks the label of a level is in no domain of it, nor of a finer one.
 */
export class NodeDomains {
  /** By level, coarse to fine, then by slot. Hosts are left out: a host has what its node has. */
  readonly of: Int32Array[];
  readonly #labels: readonly string[];
  /** The numbers of domains of all levels together, by their paths. */
  readonly #byPath = new Map<string, { readonly domain: number; nodes: number }>();
  readonly #unused: number[] = [];
  #count = 0;
  /** By slot: 1 if the free devices of the node count for its domains. */
  #counts = new Uint8Array(0);
  /** By slot, the values of the node's labels down to the first that it lacks. */
  readonly #values: (readonly string[])[] = [];
  readonly #topology: Topology;
  readonly #nodes: Nodes;
  readonly #hosts: (string | undefined)[] = [];
  #tree: DomainTree | null = null;

  constructor(topology: Topology, nodes: Nodes, capacity: number) {
    this.#topology = topology;
    this.#nodes = nodes;
    this.#labels = topology.map(({ label }) => label).filter((label) => label !== HOSTNAME_LABEL);
    this.of = this.#labels.map(() => new Int32Array(0));
    this.grow(capacity);
    for (const [slot, node] of nodes.entries()) this.setNode(slot, node);
  }

  /** One more than the highest number of a domain. */
  get count(): number {
    return this.#count;
  }

  /** The domains of all levels, hosts included, as a tree. It is another one once nodes come, go or move. */
  get tree(): DomainTree {
    this.#tree ??= new DomainTree(
      this.#topology.map(({ label }) => label),
      this.#nodes,
    );
    return this.#tree;
  }

  /** The levels, coarse to fine. */
  get topology(): Topology {
    return this.#topology;
  }

  /** True if the free devices of a slot's node count: nobody can use those of a node that takes no pods. */
  countsAt(slot: number): boolean {
    return this.#counts[slot] === 1;
  }

  setNode(slot: number, node: NodeCapacity | null): void {
    this.#counts[slot] = Number(node !== null && !node.unschedulable);
    const before = this.#values[slot] ?? NO_VALUES;
    const after = node === null ? NO_VALUES : valuesOf(this.#labels, node);
    const host = node?.labels[HOSTNAME_LABEL];
    if (this.#hosts[slot] !== host || !isSame(before, after)) this.#tree = null;
    this.#hosts[slot] = host;
    if (isSame(before, after)) return;
    this.#values[slot] = after;
    for (const [level, of] of this.of.entries()) {
      of[slot] = level < after.length ? this.#enter(pathOf(after, level)) : NO_DOMAIN;
    }
    for (let level = 0; level < before.length; level++) this.#leave(pathOf(before, level));
  }

  grow(capacity: number): void {
    for (const [level, old] of this.of.entries()) {
      const grown = new Int32Array(capacity).fill(NO_DOMAIN);
      grown.set(old);
      this.of[level] = grown;
    }
    const counts = new Uint8Array(capacity);
    counts.set(this.#counts);
    this.#counts = counts;
  }

  #enter(path: string): number {
    const known = this.#byPath.get(path);
    if (known !== undefined) {
      known.nodes += 1;
      return known.domain;
    }
    const domain = this.#unused.pop() ?? this.#count++;
    this.#byPath.set(path, { domain, nodes: 1 });
    return domain;
  }

  #leave(path: string): void {
    const known = this.#byPath.get(path);
    if (known === undefined) return;
    known.nodes -= 1;
    if (known.nodes > 0) return;
    this.#byPath.delete(path);
    this.#unused.push(known.domain);
  }
}

const NO_VALUES: readonly string[] = [];

/** The values of a node's labels, down to the first that it lacks. */
function valuesOf(labels: readonly string[], node: NodeCapacity): readonly string[] {
  const values: string[] = [];
  for (const label of labels) {
    const value = node.labels[label];
    if (value === undefined) break;
    values.push(value);
  }
  return values;
}

function pathOf(values: readonly string[], level: number): string {
  return JSON.stringify(values.slice(0, level + 1));
}

export function isSame<T extends number | string>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((column, at) => column === other[at]);
}

/**
 * The nodes of all clusters, as small facts that follow the recorded capacity. A page of 50,000 nodes in the order of
 * their GPUs then reads the records of its own nodes alone.
 */
import type { Change } from "../../plan/facts/changes.ts";
import type { Cursor } from "../../plan/facts/facts.ts";
import type { CapacityEntry, EntryChange } from "../../plan/model/capacity-entry.ts";
import type { ClusterFlavor } from "../../plan/model/snapshot.ts";
import type { NodeRow } from "./node-query.ts";
import { flavorsOf, gpusOf, statesOf, sumOf, troubleOf } from "./node-standing.ts";

/** A cluster whose nodes are listed. */
export type ListedCluster = {
  readonly name: string;
  readonly flavors: readonly ClusterFlavor[];
  /** When its capacity was last recorded. Null: never. */
  readonly observedMs: number | null;
  readonly reachable: boolean;
  readonly cordoned: boolean;
  readonly simulated: boolean;
  /** Rises with every change of its settings. */
  readonly version: number;
};

type Booked = {
  readonly flavors: string;
  cursor: Cursor | null;
  /** The place at which all entries were read. Changes before it are not known. */
  knownFrom: number;
  readonly nodes: Map<string, NodeRow>;
  /** Nodes that are gone, with the place at which that was read. */
  readonly removed: Map<string, number>;
};

/** Removed nodes of a cluster that are remembered. Readers that are further behind get all nodes again. */
const REMOVED_MAX = 1_000;
/** Kubernetes allows no longer names. A broken server's would make page tokens too long. */
const NAME_CHARS_MAX = 253;

/** What has changed in a cluster since a place. */
export type NodeNews = {
  /** True: the place is too far back, or of another observer, so all nodes are news. */
  readonly complete: boolean;
  readonly removed: readonly string[];
  readonly isNews: (node: NodeRow) => boolean;
};

export class NodeBook {
  readonly #clusters = new Map<string, Booked>();

  /** The place up to which a cluster is known. Null: it is to be read as a whole. */
  cursorOf(cluster: string): Cursor | null {
    return this.#clusters.get(cluster)?.cursor ?? null;
  }

  /** Forgets the nodes of a cluster whose flavors have changed: they decide what counts. */
  follow({ name, flavors }: Pick<ListedCluster, "name" | "flavors">): void {
    const text = JSON.stringify(flavors);
    if (this.#clusters.get(name)?.flavors === text) return;
    const empty = { cursor: null, knownFrom: 0, nodes: new Map(), removed: new Map() };
    this.#clusters.set(name, { flavors: text, ...empty });
  }

  /** Forgets clusters that are gone. */
  keepOnly(clusters: ReadonlySet<string>): void {
    for (const name of this.#clusters.keys()) if (!clusters.has(name)) this.#clusters.delete(name);
  }

  /** Applies what was read of a cluster that it follows, after its cursor. */
  apply(change: Extract<Change, { readonly kind: "capacity" | "unobserved" }>): void {
    const booked = this.#clusters.get(change.cluster);
    if (booked === undefined) return;
    if (change.kind === "unobserved" || change.since === null) {
      booked.nodes.clear();
      booked.removed.clear();
    }
    if (change.kind === "unobserved") {
      booked.cursor = null;
      return;
    }
    const { cluster, epoch, sequence, changes } = change;
    if (change.since === null) booked.knownFrom = sequence;
    const flavors = JSON.parse(booked.flavors) as readonly ClusterFlavor[];
    for (const one of changes) book(booked, one, { cluster, flavors, sequence });
    booked.cursor = { epoch, sequence };
    forgetRemoved(booked);
  }

  /** The known nodes of these clusters. */
  *nodesOf(clusters: Iterable<string>): Generator<NodeRow> {
    for (const name of clusters) yield* this.#clusters.get(name)?.nodes.values() ?? [];
  }

  nodeOf(cluster: string, name: string): NodeRow | null {
    return this.#clusters.get(cluster)?.nodes.get(name) ?? null;
  }

  /** What is newer than a place. */
  newsSince(cluster: string, place: Cursor): NodeNews {
    const booked = this.#clusters.get(cluster);
    const cursor = booked?.cursor ?? null;
    const { epoch, sequence } = place;
    const follows = cursor?.epoch === epoch && sequence <= cursor.sequence;
    if (booked === undefined || !follows || sequence < booked.knownFrom) {
      return { complete: true, removed: [], isNews: () => true };
    }
    const removed = [...booked.removed].filter(([, at]) => at > sequence).map(([name]) => name);
    return { complete: false, removed, isNews: (node) => node.sequence > sequence };
  }
}

type Where = { readonly cluster: string; readonly flavors: readonly ClusterFlavor[]; readonly sequence: number };

function book(booked: Booked, { key, entry }: EntryChange, where: Where): void {
  if (key.kind !== "node" || key.name === "" || key.name.length > NAME_CHARS_MAX) return;
  const facts = entry === null ? null : factsOf(entry, key.name, where);
  if (facts !== null) {
    booked.nodes.set(key.name, facts);
    booked.removed.delete(key.name);
  } else if (booked.nodes.delete(key.name)) booked.removed.set(key.name, where.sequence);
}

/** Null: members are bound to a node that does not exist. */
function factsOf(entry: CapacityEntry, name: string, { cluster, flavors, sequence }: Where): NodeRow | null {
  if (entry.kind !== "node" || entry.node === null) return null;
  const gpus = gpusOf(entry.node, flavors);
  return {
    cluster,
    name,
    flavors: flavorsOf(entry.node, flavors),
    states: statesOf(troubleOf(entry.node)),
    held: sumOf(gpus, "held"),
    free: sumOf(gpus, "free"),
    sequence,
  };
}

/** A reader that has not read of the forgotten ones gets all nodes again. */
function forgetRemoved(booked: Booked): void {
  for (const [name, sequence] of booked.removed) {
    if (booked.removed.size <= REMOVED_MAX) return;
    booked.removed.delete(name);
    booked.knownFrom = Math.max(booked.knownFrom, sequence);
  }
}

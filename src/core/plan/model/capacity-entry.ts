import { compareText } from "../../../runtime/compare-text.ts";
import { append } from "../../../runtime/lists.ts";
import type { BoundMember, ClusterCapacity, NodeCapacity, UnboundPod } from "./snapshot.ts";

/**
 * A part of a cluster's capacity that changes as one. A node's free amounts and the members on it are one entry, so
 * that no pod counts twice or not at all.
 */
export type CapacityEntry =
  | {
      readonly kind: "node";
      readonly name: string;
      /** Null: members are bound to a node that does not exist. */
      readonly node: NodeCapacity | null;
      /** The members whose pods are bound to the node. */
      readonly members: readonly BoundMember[];
    }
  | {
      readonly kind: "unbound";
      /** The pod's `namespace/name`. */
      readonly name: string;
      readonly pod: UnboundPod;
    };

/** Names an entry uniquely within its cluster. */
export type EntryKey = Pick<CapacityEntry, "kind" | "name">;

/** One entry after a change. */
export type EntryChange = {
  readonly key: EntryKey;
  /** Null: there is no such entry any more. */
  readonly entry: CapacityEntry | null;
};

/** The change that leaves an entry as it is given. */
export function presentEntry(entry: CapacityEntry): EntryChange {
  return { key: { kind: entry.kind, name: entry.name }, entry };
}

export function entryKeyText({ kind, name }: EntryKey): string {
  return `${kind}/${name}`;
}

/** A cluster's capacity from all its entries. Its order does not depend on theirs. */
export function capacityOf(entries: Iterable<CapacityEntry>): ClusterCapacity {
  const nodes: NodeCapacity[] = [];
  const seen: BoundMember[] = [];
  const unbound: UnboundPod[] = [];
  for (const entry of [...entries].sort((a, b) => compareText(a.name, b.name))) {
    if (entry.kind === "unbound") unbound.push(entry.pod);
    else {
      if (entry.node !== null) nodes.push(entry.node);
      append(seen, entry.members);
    }
  }
  return { nodes, seen: seen.sort(compareMembers), unbound };
}

/** A cluster's capacity as entries, if it is only known as a whole. */
export function entriesOf({ nodes, seen, unbound }: ClusterCapacity): readonly CapacityEntry[] {
  return [
    ...nodes.map((node): CapacityEntry => ({ kind: "node", name: node.name, node, members: [] })),
    // It does not say which node shows a member. A node that does not exist stands for all.
    { kind: "node", name: "", node: null, members: seen },
    // Its order is that of the names of the pods, which it does not say.
    ...unbound.map((pod, at): CapacityEntry => ({ kind: "unbound", name: String(at).padStart(8, "0"), pod })),
  ];
}

export function compareMembers(a: BoundMember, b: BoundMember): number {
  const byAdmission = compareText(a.jobUid, b.jobUid) || a.admission - b.admission;
  return byAdmission || compareText(a.role, b.role) || a.index - b.index;
}

import type { PoolLimit, Scope } from "../../quota/counters.ts";
import type { EntryChange } from "../model/capacity-entry.ts";
import type { LimitedTenant } from "../model/limited-tenant.ts";
import type { GangHolds, PlanGang } from "../model/plan-gang.ts";
import type { ClusterFacts, PlanQueue } from "../model/snapshot.ts";
import type { Fact } from "./facts.ts";

/**
 * One change of the state's facts, as the store has it. A record's version rises with each change of it, so that a late
 * or repeated one is known. Null in place of a record: it is gone.
 */
export type Change =
  | { readonly kind: "gang"; readonly uid: string; readonly version: number; readonly gang: PlanGang | null }
  | { readonly kind: "sum"; readonly scope: Scope; readonly version: number; readonly used: number }
  | { readonly kind: "holds"; readonly uid: string; readonly version: number; readonly holds: GangHolds | null }
  | { readonly kind: "queue"; readonly name: string; readonly version: number; readonly queue: PlanQueue | null }
  | { readonly kind: "pool"; readonly name: string; readonly version: number; readonly pool: PoolLimit | null }
  | { readonly kind: "tenant"; readonly name: string; readonly version: number; readonly tenant: LimitedTenant | null }
  | { readonly kind: "cluster"; readonly name: string; readonly version: number; readonly facts: ClusterFacts | null }
  /** Entries of a cluster's capacity after a place in the numbering of its observers. */
  | {
      readonly kind: "capacity";
      readonly cluster: string;
      /** Rises with each new observer of the cluster, which begins with a full list. */
      readonly epoch: number;
      /** The sequence after which the changes come. Null: they are the full list. */
      readonly since: number | null;
      /** The sequence up to which the changes are complete. */
      readonly sequence: number;
      readonly changes: readonly EntryChange[];
    }
  /** No observer has seen the cluster since it was registered. */
  | { readonly kind: "unobserved"; readonly cluster: string };

/** What a change says of each entity that it names, but that a full list of capacity leaves others out. */
export function factsOf(change: Change): readonly Fact[] {
  if (change.kind === "unobserved") return [];
  if (change.kind !== "capacity") {
    const { version: _, ...fact } = change;
    return [fact];
  }
  return change.changes.map((entry) => entryFact(change.cluster, entry));
}

/** An entry of a cluster's capacity as a fact. */
export function entryFact(cluster: string, { key, entry }: EntryChange): Fact {
  const { name } = key;
  if (key.kind === "unbound")
    return { kind: "unbound", cluster, name, pod: entry?.kind === "unbound" ? entry.pod : null };
  if (entry?.kind !== "node") return { kind: "node", cluster, name, node: null, members: [] };
  return { kind: "node", cluster, name, node: entry.node, members: entry.members };
}

/**
 * `applied`: the state has moved. `stale`: the state knows this, or something newer. `gap`: entries before these are
 * missing, so that the cluster's full list must be read.
 */
export type ApplyOutcome = "applied" | "stale" | "gap";

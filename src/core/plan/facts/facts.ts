import { canonicalJson } from "../../../runtime/json.ts";
import type { PoolLimit, Scope } from "../../quota/counters.ts";
import { scopeKey } from "../../quota/scopes.ts";
import type { LimitedTenant } from "../model/limited-tenant.ts";
import type { GangHolds, PlanGang } from "../model/plan-gang.ts";
import type { BoundMember, ClusterFacts, NodeCapacity, PlanQueue, UnboundPod } from "../model/snapshot.ts";

/** One fact of the state. Null, or a sum of 0: there is none. */
export type Fact =
  | { readonly kind: "gang"; readonly uid: string; readonly gang: PlanGang | null }
  | { readonly kind: "sum"; readonly scope: Scope; readonly used: number }
  | { readonly kind: "holds"; readonly uid: string; readonly holds: GangHolds | null }
  | { readonly kind: "queue"; readonly name: string; readonly queue: PlanQueue | null }
  | { readonly kind: "pool"; readonly name: string; readonly pool: PoolLimit | null }
  /** `name` is the tenant's `tenantKey`. */
  | { readonly kind: "tenant"; readonly name: string; readonly tenant: LimitedTenant | null }
  | { readonly kind: "cluster"; readonly name: string; readonly facts: ClusterFacts | null }
  | {
      readonly kind: "node";
      readonly cluster: string;
      readonly name: string;
      readonly node: NodeCapacity | null;
      readonly members: readonly BoundMember[];
    }
  | { readonly kind: "unbound"; readonly cluster: string; readonly name: string; readonly pod: UnboundPod | null }
  /** The place in the numbering of a cluster's observer up to which its capacity is known. Null: it was never seen. */
  | { readonly kind: "cursor"; readonly cluster: string; readonly at: Cursor | null };

export type Cursor = { readonly epoch: number; readonly sequence: number };

/** Names the entity that a fact is about. */
export function factKey(fact: Fact): string {
  switch (fact.kind) {
    case "gang":
      return `gang ${fact.uid}`;
    case "holds":
      return `holds ${fact.uid}`;
    case "sum":
      return `sum ${scopeKey(fact.scope)}`;
    case "queue":
    case "pool":
    case "tenant":
    case "cluster":
      return `${fact.kind} ${fact.name}`;
    case "node":
    case "unbound":
      return `${fact.kind} ${fact.cluster} ${fact.name}`;
    case "cursor":
      return `cursor ${fact.cluster}`;
  }
}

/** The fact about the same entity when there is none. */
export function noFact(fact: Fact): Fact {
  switch (fact.kind) {
    case "gang":
      return { ...fact, gang: null };
    case "holds":
      return { ...fact, holds: null };
    case "sum":
      return { ...fact, used: 0 };
    case "queue":
      return { ...fact, queue: null };
    case "pool":
      return { ...fact, pool: null };
    case "tenant":
      return { ...fact, tenant: null };
    case "cluster":
      return { ...fact, facts: null };
    case "node":
      return { ...fact, node: null, members: [] };
    case "unbound":
      return { ...fact, pod: null };
    case "cursor":
      return { ...fact, at: null };
  }
}

/** True if there is nothing of the fact's entity. */
export function isNothing(fact: Fact): boolean {
  switch (fact.kind) {
    case "gang":
      return fact.gang === null;
    case "holds":
      return fact.holds === null;
    case "sum":
      return fact.used === 0;
    case "queue":
      return fact.queue === null;
    case "pool":
      return fact.pool === null;
    case "tenant":
      return fact.tenant === null;
    case "cluster":
      return fact.facts === null;
    case "node":
      return fact.node === null && fact.members.length === 0;
    case "unbound":
      return fact.pod === null;
    case "cursor":
      return fact.at === null;
  }
}

/** The content of a fact as text. Equal facts have equal texts. */
export function factText(fact: Fact): string {
  switch (fact.kind) {
    case "gang":
      return fact.gang === null ? "" : gangText(fact.gang);
    case "holds":
      return canonicalJson(fact.holds);
    case "sum":
      return String(fact.used);
    case "queue":
      return canonicalJson(fact.queue);
    case "pool":
      return canonicalJson(fact.pool);
    case "tenant":
      return canonicalJson(fact.tenant);
    case "cluster":
      return canonicalJson(fact.facts);
    case "node":
      return canonicalJson([fact.node, fact.members]);
    case "unbound":
      return canonicalJson(fact.pod);
    case "cursor":
      return canonicalJson(fact.at);
  }
}

/** The ask's hash stands for the ask. */
function gangText({ ask: _ask, admissions, backoff, ...facts }: PlanGang): string {
  const { uid, namespace, name, project, queue, priority, createTimeMs, askHash, generation, lastAdmission } = facts;
  const named = [uid, namespace, name, project, queue, priority, createTimeMs, askHash, generation, lastAdmission];
  const { suspended, awaitsResult, waits, ends, waitsSinceMs, nomination, preemptions, preemptedIn, maxPreemptions } =
    facts;
  const { notBeforeMs, lastCluster } = backoff ?? {};
  const later = [suspended, awaitsResult, waits, ends, waitsSinceMs, notBeforeMs, lastCluster];
  const counted = [preemptions, maxPreemptions, ...(preemptedIn === undefined ? [] : [preemptedIn])];
  const nominated = nomination === undefined ? "" : canonicalJson(nomination);
  const { maxRuntimeMs, backfill } = facts;
  const bounded = maxRuntimeMs === undefined && backfill === undefined ? "" : `${maxRuntimeMs} ${backfill}`;
  const { setAside, growsNoMore, moves } = facts;
  const held = [setAside, growsNoMore, ...(moves === undefined ? [] : [{ moves }])].filter((one) => one !== undefined);
  const parts = [named, later, counted, bounded, ...held];
  return JSON.stringify(parts) + (admissions.length === 0 ? "" : canonicalJson(admissions)) + nominated;
}

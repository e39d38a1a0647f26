/** The structure of causes, as a store keeps it. Numbers that move come from the state when somebody asks. */
import { scopeKey } from "../../quota/scopes.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { PlannedAdmission, Refusal } from "../plan-types.ts";
import type { OverBudget } from "../preempt/budget.ts";
import type { Protected } from "../preempt/protection.ts";
import type { QuotaBlock } from "./quota-state.ts";
import { type AmountInLine, type Cause, type ClusterBlock, causeKey, type KeptFor, keyOf } from "./refused.ts";

/** A level of a quota that is in the way. */
export type QuotaCause = Pick<QuotaBlock, "pool" | "scope" | "reason"> & {
  /** The resource for which the gang needs the pool. */
  readonly resource: string;
  /**
   * The amount that the counters were asked for, and the one that they keep for the first of the pool's waiting line.
   * No state knows it. Omitted: the planner's state refused the gang.
   */
  readonly counters?: { readonly asked: number; readonly kept: number };
};

/** Everything that kept a gang from being admitted. `Cause` says what its members are. */
export type Lack = {
  readonly tried: "all" | "fewest";
  readonly quotas: readonly QuotaCause[];
  readonly clusters: { readonly all: readonly ClusterBlock[] };
  readonly stoppedByQuota: boolean;
  readonly budget?: OverBudget;
  readonly spared?: Protected;
  readonly byFinalShareAlone?: true;
  readonly keptFor?: KeptFor;
};

/** Why a gang waits. Every `Cause` is one. */
export type KeptCause =
  | Exclude<Cause, { readonly kind: "behindHead" | "lacks" }>
  | { readonly kind: "behindHead"; readonly head: Pick<PlanGang, "uid" | "namespace" | "name"> }
  | { readonly kind: "lacks"; readonly refusal: Lack; readonly inLine: readonly AmountInLine[] };

/** A cause with its key. Equal keys: nothing changed but numbers. */
export type KeyedCause = { readonly cause: KeptCause; readonly causeKey: number };

export function keyedCause(cause: Cause): KeyedCause {
  return { cause: keptCause(cause), causeKey: causeKey(cause) };
}

function keptCause(cause: Cause): KeptCause {
  switch (cause.kind) {
    case "behindHead": {
      const { uid, namespace, name } = cause.head;
      return { kind: "behindHead", head: { uid, namespace, name } };
    }
    case "lacks": {
      const { tried, quotas, clusters, stoppedByQuota, budget, spared, byFinalShareAlone, keptFor } = cause.refusal;
      const kept = quotas.map(({ pool, scope, reason, resource }) => ({ pool, scope, reason, resource }));
      const lacks = { tried, quotas: kept, clusters: { all: clusters.all }, stoppedByQuota };
      const refusal = {
        ...lacks,
        ...(budget === undefined ? {} : { budget }),
        ...(spared === undefined ? {} : { spared }),
        ...(byFinalShareAlone === undefined ? {} : { byFinalShareAlone }),
        ...(keptFor === undefined ? {} : { keptFor }),
      };
      return { kind: "lacks", refusal, inLine: cause.inLine };
    }
    default:
      return cause;
  }
}

/** The cause of a gang that the plan had room for, but whose tokens the counters did not grant. */
export function tokensCause(
  { flavors, allocations }: Pick<PlannedAdmission, "flavors" | "allocations">,
  of: { readonly quotas: Refusal["quotas"]; readonly inLine: boolean },
): KeyedCause {
  const amountOf = (pool: string) => allocations.find((allocation) => allocation.pool === pool)?.amount ?? 0;
  const quotas = of.quotas.map(({ flavor: pool, scope, reason, reserved }): QuotaCause => {
    const resource = Object.keys(flavors).find((name) => flavors[name] === pool) ?? "";
    const isKept = reason === "Reserved";
    const isFrozen = reason === "PoolFrozen" || reason === "QueueFrozen";
    const counters = { asked: amountOf(pool), kept: isKept ? reserved : 0 };
    return { pool, scope, reason: isKept || isFrozen ? reason : "QuotaExhausted", resource, counters };
  });
  const refusal: Lack = { tried: "all", quotas, clusters: { all: [] }, stoppedByQuota: true };
  const inLine = of.inLine ? allocations.map(({ pool, amount }) => ({ pool, amount })) : [];
  const texts = quotas.map(({ scope, reason, counters }) => `${reason} ${counters?.asked} ${scopeKey(scope)}`);
  return { cause: { kind: "lacks", refusal, inLine }, causeKey: keyOf(`tokens ${of.inLine} ${texts.join()}`) };
}

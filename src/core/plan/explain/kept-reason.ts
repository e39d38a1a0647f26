/** The structure of reasons, as a store keeps it. Numbers that move come from the state when somebody asks. */
import { partsOf } from "../../job/flavor-labels.ts";
import { scopeKey } from "../../quota/scopes.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { AmountInLine, PlannedAdmission, Refusal } from "../model/plan-types.ts";
import { type ClusterBlock, causeKey, keyOf, type ReservedFor, type WaitReason } from "../queues/refusals.ts";
import type { QuotaBlock } from "../usage/quota-state.ts";
import type { OverBudget } from "../victims/budget.ts";
import type { Protected } from "../victims/protection.ts";

/** A level of a quota that is in the way. */
export type QuotaReason = Pick<QuotaBlock, "pool" | "scope" | "reason" | "roles"> & {
  /** The resource for which the gang needs the pool. */
  readonly resource: string;
  /**
   * The amount that the counters were asked for, and the one that they keep for the first of the pool's waiting line.
   * No state knows it. Omitted: the planner's state refused the gang.
   */
  readonly counters?: { readonly asked: number; readonly kept: number };
};

/** Everything that kept a gang from being admitted. `WaitReason` says what its members are. */
export type KeptShortfall = {
  readonly tried: "all" | "fewest";
  readonly quotas: readonly QuotaReason[];
  readonly clusters: { readonly all: readonly ClusterBlock[] };
  readonly stoppedByQuota: boolean;
  readonly budget?: OverBudget;
  readonly spared?: Protected;
  readonly byFinalShareAlone?: true;
  readonly keptFor?: ReservedFor;
};

/** Why a gang waits. Every `WaitReason` is one. */
export type KeptReason =
  | Exclude<WaitReason, { readonly kind: "behindHead" | "lacks" }>
  | { readonly kind: "behindHead"; readonly head: Pick<PlanGang, "uid" | "namespace" | "name"> }
  | { readonly kind: "lacks"; readonly refusal: KeptShortfall; readonly inLine: readonly AmountInLine[] };

/** A reason with its key. Equal keys: nothing changed but numbers. */
export type KeyedReason = { readonly cause: KeptReason; readonly causeKey: number };

export function keyedReason(cause: WaitReason): KeyedReason {
  return { cause: keptReason(cause), causeKey: causeKey(cause) };
}

function keptReason(cause: WaitReason): KeptReason {
  switch (cause.kind) {
    case "behindHead": {
      const { uid, namespace, name } = cause.head;
      return { kind: "behindHead", head: { uid, namespace, name } };
    }
    case "lacks": {
      const { tried, quotas, clusters, stoppedByQuota, budget, spared, byFinalShareAlone, keptFor } = cause.refusal;
      const kept = quotas.map(({ pool, scope, reason, resource, roles }) => {
        return { pool, scope, reason, resource, ...(roles === undefined ? {} : { roles }) };
      });
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

/** The reason of a gang that the plan had capacity for, but whose tokens the counters did not grant. */
export function tokensReason(
  { flavors, allocations }: Pick<PlannedAdmission, "flavors" | "allocations">,
  of: { readonly quotas: Refusal["quotas"]; readonly inLine: boolean },
): KeyedReason {
  const amountOf = (pool: string) => allocations.find((allocation) => allocation.pool === pool)?.amount ?? 0;
  const quotas = of.quotas.map(({ flavor: pool, scope, reason, reserved }): QuotaReason => {
    const { resource } = partsOf(Object.keys(flavors).find((name) => flavors[name] === pool) ?? "");
    const isKept = reason === "Reserved";
    const isFrozen = reason === "PoolFrozen" || reason === "QueueFrozen";
    const counters = { asked: amountOf(pool), kept: isKept ? reserved : 0 };
    return { pool, scope, reason: isKept || isFrozen ? reason : "QuotaExhausted", resource, counters };
  });
  const refusal: KeptShortfall = { tried: "all", quotas, clusters: { all: [] }, stoppedByQuota: true };
  const inLine = of.inLine ? allocations.map(({ pool, amount }) => ({ pool, amount })) : [];
  const texts = quotas.map(({ scope, reason, counters }) => `${reason} ${counters?.asked} ${scopeKey(scope)}`);
  return { cause: { kind: "lacks", refusal, inLine }, causeKey: keyOf(`tokens ${of.inLine} ${texts.join()}`) };
}

/** A refusal with the numbers of its moment, and its reason. */
export type ReportedRefusal = KeyedReason & { readonly refusal: Refusal };

/** A refusal as a store keeps it. */
export type KeptRefusal = Refusal & {
  /** Omitted: a program of the version before has kept the refusal with the numbers of its moment. */
  readonly cause?: KeptReason & { readonly key: number };
};

/**
 * A refusal with its reason and without numbers. A program of the version before shows the message of the job's status
 * in place of an empty one.
 */
export function keptRefusal({ refusal, cause, causeKey: key }: ReportedRefusal): KeptRefusal {
  const message = cause.kind === "lacks" ? "" : refusal.message;
  return { ...refusal, message, clusters: [], quotas: [], cause: { ...cause, key } };
}

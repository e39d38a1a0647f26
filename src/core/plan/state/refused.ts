import type { Nomination } from "../../job/preemption.ts";
import type { TenantName } from "../../job/tenant-limits.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { OverBudget } from "../preempt/budget.ts";
import type { Protected } from "../preempt/protection.ts";
import type { QueueStop } from "../queue-stop.ts";
import { tenantKey } from "../running-jobs.ts";
import { hashText } from "./fact-hash.ts";
import type { QuotaBlock } from "./quota-state.ts";

/** Why one cluster cannot take a lane's gangs now. The numbers that move are added when somebody reads them. */
export type ClusterBlock = {
  readonly cluster: string;
  readonly reason:
    | "Retired"
    | "Cordoned"
    | "Unreachable"
    | "NotSelected"
    | "NoSuchFlavor"
    | "Draining"
    | "TooLarge"
    | "NoCapacity"
    | "CapacityUnknown";
  /** The flavors that were tried there, by resource. Empty: the cluster was refused before any was tried. */
  readonly choice: Readonly<Record<string, string>>;
};

/** The answers of the clusters. Equal keys: equal answers. */
export type ClusterBlocks = { readonly all: readonly ClusterBlock[]; readonly key: string };

/** Everything that kept the first gang of a lane from being admitted. */
export type LaneRefusal = {
  /** The members that were tried last: the fewest, if the gang accepts fewer than all. */
  readonly tried: "all" | "fewest";
  readonly quotas: readonly QuotaBlock[];
  readonly clusters: ClusterBlocks;
  /** True if quotas left no choice of flavors. */
  readonly stoppedByQuota: boolean;
  /** Others could give way for it, but its queue has used up its budget. Omitted: that is not in the way. */
  readonly budget?: OverBudget;
  /** Others would give way for it, but they are protected. Omitted: that is not in the way. */
  readonly spared?: Protected;
  /** True: it was preempted, and takes by its final share alone. Omitted: that is not in the way. */
  readonly byFinalShareAlone?: true;
  /** The gang without whose reservation it would be admitted now. Omitted: reservations make no difference. */
  readonly keptFor?: KeptFor;
};

/** A gang with a reservation in a cluster. */
export type KeptFor = Pick<PlanGang, "uid" | "namespace" | "name"> & { readonly cluster: string };

/** Why one gang waits. */
export type Cause =
  | { readonly kind: "unknownQueue" }
  | { readonly kind: "queueStopped"; readonly stop: QueueStop }
  /** This queue, its own or one above it, runs as many jobs as it may. */
  | { readonly kind: "queueFull"; readonly queue: string }
  /** Its namespace or its project runs as many jobs as it may. */
  | { readonly kind: "tenantFull"; readonly tenant: TenantName }
  | { readonly kind: "suspended" }
  | { readonly kind: "awaitsResult" }
  | { readonly kind: "backoff"; readonly untilMs: number }
  | { readonly kind: "draining" }
  /** It waits until the gangs that are preempted for it have ended. */
  | { readonly kind: "preempting"; readonly nomination: Nomination }
  /** It stands behind this gang, the head of a strict queue that was refused. */
  | { readonly kind: "behindHead"; readonly head: PlanGang }
  /** `inLine`: the pools in whose waiting lines it is, beside callers, and what they keep for it. Empty: none. */
  | { readonly kind: "lacks"; readonly refusal: LaneRefusal; readonly inLine: readonly AmountInLine[] };

/** An amount of a pool that is kept for a gang in the pool's waiting line. */
export type AmountInLine = { readonly pool: string; readonly amount: number };

/** A gang that waits, and its cause. */
export type RefusedGang = { readonly gang: PlanGang; readonly cause: Cause };

/** A number for a cause. Equal numbers: nothing changed but amounts. 0 is the number of no cause. */
export function causeKey(cause: Cause): number {
  return keyOf(causeText(cause));
}

/** The number for the text of a cause. */
export function keyOf(text: string): number {
  const { low, high } = hashText(text);
  return 1 + (low >>> 1) * 2 ** 20 + (high >>> 12);
}

function causeText(cause: Cause): string {
  switch (cause.kind) {
    case "lacks":
      return `${refusalKey(cause.refusal)} ${cause.inLine.map(({ pool }) => pool).join()}`;
    case "backoff":
      return `backoff ${cause.untilMs}`;
    case "queueStopped":
      return stopText(cause.stop);
    case "queueFull":
      return `queueFull ${cause.queue}`;
    case "tenantFull":
      return `tenantFull ${tenantKey(cause.tenant)}`;
    case "behindHead":
      return `behindHead ${cause.head.uid}`;
    case "preempting":
      return `preempting ${cause.nomination.generation}`;
    default:
      return cause.kind;
  }
}

function stopText({ queue, freeze }: QueueStop): string {
  return freeze === undefined ? `queueStopped ${queue}` : `queueFrozen ${queue} ${freeze.atMs}`;
}

function refusalKey(refusal: LaneRefusal): string {
  const { tried, quotas, clusters, stoppedByQuota, budget, spared, byFinalShareAlone, keptFor } = refusal;
  let key = `${tried} ${stoppedByQuota}`;
  if (budget !== undefined) key += ` ${budget.queue} ${budget.max} ${budget.untilMs}`;
  if (spared !== undefined) key += ` spared ${spared.by.join()}`;
  if (byFinalShareAlone === true) key += " finalShare";
  if (keptFor !== undefined) key += ` ${keptFor.uid}`;
  for (const { level, pool, reason } of quotas) key += `\n${level} ${pool} ${reason}`;
  return `${key}\n\n${clusters.key}`;
}

export function clusterBlocks(all: readonly ClusterBlock[]): ClusterBlocks {
  const places = all.map(({ cluster, reason, choice }) => `${cluster} ${reason} ${Object.values(choice).join()}`);
  const { low, high } = hashText(places.join("\n"));
  return { all, key: `${low} ${high}` };
}

import { hashText } from "../../../runtime/hash-text.ts";
import type { Nomination } from "../../job/preemption.ts";
import type { TenantName } from "../../job/tenant-limits.ts";
import { tenantKey } from "../model/limited-tenant.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { AmountInLine } from "../model/plan-types.ts";
import type { QueueStop } from "../model/queue-stop.ts";
import type { QuotaBlock } from "../usage/quota-state.ts";
import type { OverBudget } from "../victims/budget.ts";
import type { Protected } from "../victims/protection.ts";

/** Why one cluster cannot take a class's gangs now. The numbers that move are added when somebody reads them. */
export type ClusterBlock = {
  readonly cluster: string;
  readonly reason:
    | "Retired"
    | "Cordoned"
    | "Unreachable"
    | "Unusable"
    | "Returning"
    | "NotSelected"
    | "NoSuchFlavor"
    | "NoSuchLevel"
    | "Draining"
    | "TooLarge"
    | "NoCapacity"
    | "DomainFull"
    | "CapacityUnknown";
  /** The flavors that were tried there, by resource. Empty: the cluster was refused before any was tried. */
  readonly choice: Readonly<Record<string, string>>;
};

/** The answers of the clusters. Equal keys: equal answers. */
export type ClusterBlocks = { readonly all: readonly ClusterBlock[]; readonly key: string };

/** Everything that kept the first gang of a class from being admitted. */
export type ClassRefusal = {
  /** The members that were tried last: the fewest, if the gang accepts fewer than all. */
  readonly tried: "all" | "fewest";
  readonly quotas: readonly QuotaBlock[];
  readonly clusters: ClusterBlocks;
  /** True if quotas left no choice of flavors. */
  readonly stoppedByQuota: boolean;
  /** Others could be preempted for it, but its queue has used up its budget. Omitted: that is not in the way. */
  readonly budget?: OverBudget;
  /** Others would be preempted for it, but they are protected. Omitted: that is not in the way. */
  readonly spared?: Protected;
  /** True: it was preempted, and takes by its final share alone. Omitted: that is not in the way. */
  readonly byFinalShareAlone?: true;
  /** The gang without whose reservation it would be admitted now. Omitted: reservations make no difference. */
  readonly keptFor?: ReservedFor;
};

/** A gang with a reservation in a cluster. */
export type ReservedFor = Pick<PlanGang, "uid" | "namespace" | "name"> & { readonly cluster: string };

/** Why one gang waits. */
export type WaitReason =
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
  | { readonly kind: "lacks"; readonly refusal: ClassRefusal; readonly inLine: readonly AmountInLine[] };

/** A gang that waits, and its reason. */
export type RefusedGang = { readonly gang: PlanGang; readonly cause: WaitReason };

/** A number for a reason. Equal numbers: nothing changed but amounts. 0 is the number of no reason. */
export function causeKey(cause: WaitReason): number {
  return keyOf(reasonText(cause));
}

/** The number for the text of a reason. */
export function keyOf(text: string): number {
  const { low, high } = hashText(text);
  return 1 + (low >>> 1) * 2 ** 20 + (high >>> 12);
}

function reasonText(cause: WaitReason): string {
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

function refusalKey(refusal: ClassRefusal): string {
  const { tried, quotas, clusters, stoppedByQuota, budget, spared, byFinalShareAlone, keptFor } = refusal;
  let key = `${tried} ${stoppedByQuota}`;
  if (budget !== undefined) key += ` ${budget.queue} ${budget.max} ${budget.untilMs}`;
  if (spared !== undefined) key += ` spared ${spared.by.join()}`;
  if (byFinalShareAlone === true) key += " finalShare";
  if (keptFor !== undefined) key += ` ${keptFor.uid}`;
  for (const { level, pool, reason, roles } of quotas) {
    key += `\n${level} ${pool} ${reason}`;
    if (roles !== undefined) key += ` ${roles.join()}`;
  }
  return `${key}\n\n${clusters.key}`;
}

export function clusterBlocks(all: readonly ClusterBlock[]): ClusterBlocks {
  const places = all.map(({ cluster, reason, choice }) => `${cluster} ${reason} ${Object.values(choice).join()}`);
  const { low, high } = hashText(places.join("\n"));
  return { all, key: `${low} ${high}` };
}

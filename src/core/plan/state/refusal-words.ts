import { maxOf } from "../../../runtime/lists.ts";
import { drainingAdmission, liveAdmission } from "../../job/job.ts";
import type { Nomination } from "../../job/preemption.ts";
import type { TenantName } from "../../job/tenant-limits.ts";
import type { Scope } from "../../quota/counters.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { QuotaRefusal, Refusal } from "../plan-types.ts";
import { budgetWords } from "../preempt/budget.ts";
import { minRuntimeMs, protectedUntilMs } from "../preempt/min-runtime.ts";
import { FINAL_SHARE_WORDS, type Protected, protectedWords } from "../preempt/protection.ts";
import { isLeft } from "../preemption.ts";
import {
  KEPT_FOR_RESERVATION,
  keptForWords,
  PREEMPTING,
  preemptingWords,
  RESERVING,
  reservingWords,
  victimWords,
} from "../preemption-words.ts";
import { haltOf, isSameStop, stopReason, stopWords } from "../queue-stop.ts";
import { changed, lineWords, refuse, refuseFor } from "../refuse.ts";
import { fullWords, QUEUE_FULL, type RunningJobs, TENANT_FULL, tenantKey } from "../running-jobs.ts";
import { type AskShape, type SizedAsk, shapeOf, wholeUnitsOf } from "./ask-shape.ts";
import { ClusterWords } from "./cluster-words.ts";
import type { FleetParts } from "./fleet-parts.ts";
import { Holders, type OtherHolders } from "./holders.ts";
import type { KeptCause, Lack, QuotaCause } from "./kept-cause.ts";
import type { Account } from "./quota-levels.ts";
import type { KeptFor } from "./refused.ts";

/**
 * Says why gangs wait, in full: their causes decide the reasons, and the state as it is now has the numbers. A cause
 * may be older than the state. Remembers its answers, so make a new one when the state has moved.
 */
export class RefusalWords {
  readonly #parts: FleetParts;
  readonly #clusters: ClusterWords;
  readonly #holders: Holders;
  /** With the admissions of the round. */
  readonly #running: RunningJobs;
  /** The answers to lanes whose gangs all get the same one. */
  readonly #lanes = new Map<Lack, Refusal>();

  constructor(parts: FleetParts, others: OtherHolders) {
    this.#parts = parts;
    this.#clusters = new ClusterWords(parts);
    this.#holders = new Holders(parts, others);
    this.#running = parts.lines.countRunning();
    for (const { kind, jobUid } of others.admissions) {
      const entry = parts.lines.entries.get(jobUid);
      if (kind === "admit" && entry !== undefined) this.#running.add(entry.gang);
    }
  }

  /** A cause that holds no more keeps its reason, and the message says so. */
  refusalOf(gang: PlanGang, cause: KeptCause): Refusal {
    const refusal = this.#sayCause(gang, cause);
    return this.#hasEnded(gang, cause) ? changed(refusal) : refusal;
  }

  #sayCause(gang: PlanGang, cause: KeptCause): Refusal {
    switch (cause.kind) {
      case "unknownQueue":
        return refuse(gang, { reason: "UnknownQueue", message: `there is no queue ${gang.queue}` });
      case "queueStopped":
        return refuse(gang, { reason: stopReason(cause.stop), message: stopWords(gang.queue, cause.stop) });
      case "queueFull": {
        const limit = this.#parts.quota.queues.get(cause.queue)?.maxRunningJobs ?? 0;
        const message = fullWords(`queue ${cause.queue}`, { running: this.#running.of(cause.queue), limit });
        return refuse(gang, { reason: QUEUE_FULL, message });
      }
      case "tenantFull": {
        const key = tenantKey(cause.tenant);
        const limit = this.#parts.lines.tenants.limited.get(key)?.maxRunningJobs ?? 0;
        const message = fullWords(key, { running: this.#running.of(key), limit });
        return refuse(gang, { reason: TENANT_FULL, message });
      }
      case "suspended":
        if (gang.setAside !== undefined) return refuse(gang, { reason: "SetAside", message: gang.setAside });
        return refuse(gang, { reason: "Suspended", message: "it is suspended" });
      case "awaitsResult":
        return refuse(gang, {
          reason: "WaitingForCache",
          message: gang.awaitsResult ?? "it waits for another job's result",
        });
      case "backoff":
        return refuse(gang, {
          reason: "Backoff",
          message: backoffWords(gang, cause.untilMs),
          retryAtMs: cause.untilMs,
        });
      case "draining":
        return refuse(gang, { reason: "Draining", message: drainingWords(gang) });
      case "preempting": {
        const { nomination } = cause;
        if (nomination.reservation !== undefined) {
          const message = reservingWords(nomination.cluster, this.#leftOf(nomination), this.#startOf(nomination));
          return refuse(gang, { reason: RESERVING, message });
        }
        return refuse(gang, {
          reason: PREEMPTING,
          message: preemptingWords(nomination.cluster, this.#leftOf(nomination)),
        });
      }
      case "behindHead": {
        const { namespace, name, uid } = cause.head;
        const message = `waits behind ${namespace}/${name}, the head of the strict queue ${gang.queue}`;
        return { ...refuse(gang, { reason: "BehindHead", message }), head: uid };
      }
      case "lacks":
        return this.#lackOf(gang, cause);
    }
  }

  /** The victims whose pods may still run. */
  #leftOf({ victims }: Nomination): readonly string[] {
    return victims.flatMap((victim) => {
      const gang = this.#parts.lines.entries.get(victim.jobUid)?.gang;
      const held = gang?.admissions.find(({ number }) => number === victim.admission);
      if (gang === undefined || held?.tokensReleasedMs !== null || !isLeft(gang, victim)) return [];
      return [victimWords(`${gang.namespace}/${gang.name}`, held.members, victim.keeps)];
    });
  }

  /** When the gangs that a reservation waits for have ended at the latest. 0: none runs. Infinite: nobody knows. */
  #startOf({ victims }: Nomination): number {
    const ends = victims.map(({ jobUid, admission }) => {
      const gang = this.#parts.lines.entries.get(jobUid)?.gang;
      const held = gang?.admissions.find(({ number }) => number === admission);
      if (gang === undefined || held?.tokensReleasedMs !== null || held.state !== "live") return 0;
      return held.admitTimeMs + (gang.maxRuntimeMs ?? Number.POSITIVE_INFINITY);
    });
    return maxOf(ends, 0);
  }

  /** A gang that another one's reservation keeps out. The detail says what it would lack. */
  #keptFor(refusal: Refusal, { uid, namespace, name, cluster }: KeptFor): Refusal {
    const nomination = this.#parts.lines.entries.get(uid)?.gang.nomination;
    const isKept = nomination?.reservation !== undefined;
    const startMs = isKept ? this.#startOf(nomination) : Number.POSITIVE_INFINITY;
    const message = keptForWords(`${namespace}/${name}`, cluster, startMs);
    const kept = { ...refusal, reason: KEPT_FOR_RESERVATION, message };
    return isKept ? kept : changed(kept);
  }

  /** True if a gang waits no longer for something that only itself could end. */
  #hasEnded(gang: PlanGang, cause: KeptCause): boolean {
    switch (cause.kind) {
      case "unknownQueue":
        return this.#parts.quota.queues.has(gang.queue);
      case "queueStopped":
        return !isSameStop(haltOf(gang.queue, this.#parts.quota.queues), cause.stop);
      case "queueFull":
        return this.#running.fullAt(gang.queue) !== cause.queue;
      case "tenantFull":
        return !isSameTenant(this.#running.fullTenant(gang), cause.tenant);
      case "suspended":
        return !gang.suspended;
      case "awaitsResult":
        return gang.awaitsResult === null;
      case "backoff":
        return gang.backoff?.notBeforeMs !== cause.untilMs;
      case "draining":
        return drainingAdmission(gang) === null;
      case "preempting":
        return gang.nomination?.generation !== cause.nomination.generation;
      default:
        return false;
    }
  }

  #lackOf(gang: PlanGang, { refusal: lacks, inLine }: Extract<KeptCause, { kind: "lacks" }>): Refusal {
    if (inLine.length > 0) return this.#newLackOf(gang, lacks, lineWords(inLine.map(({ pool }) => pool)));
    const known = this.#lanes.get(lacks);
    if (known !== undefined) return { ...known, jobUid: gang.uid, generation: gang.generation };
    const made = this.#newLackOf(gang, lacks);
    // The admissions that have not left a cluster are the gang's own.
    if (!lacks.clusters.all.some(({ reason }) => reason === "Draining")) this.#lanes.set(lacks, made);
    return made;
  }

  #newLackOf(gang: PlanGang, lack: Lack, more = ""): Refusal {
    const { tried, quotas, clusters, stoppedByQuota, budget, spared, byFinalShareAlone, keptFor } = lack;
    const { all, fewest } = this.#shapeOf(gang);
    const sized = tried === "fewest" ? (fewest ?? all) : all;
    const made = refuseFor(gang, {
      quotas: quotas.map((block) => this.#quotaRefusal({ gang, sized }, block)),
      clusters: clusters.all.map((block) => this.#clusters.refusalOf({ gang, sized }, block)),
      stoppedByQuota,
    });
    if (keptFor !== undefined) return this.#keptFor(made, keptFor);
    const overBudget = budget === undefined ? "" : `; ${budgetWords(budget)}`;
    const byShare = byFinalShareAlone === true ? FINAL_SHARE_WORDS : "";
    const heldBack = overBudget + (spared === undefined ? "" : this.#sparedWords(gang, spared)) + byShare;
    const retryAtMs = budget?.untilMs ?? made.retryAtMs;
    const refusal = { ...made, message: made.message + more + heldBack, retryAtMs };
    const areUsable = !stoppedByQuota && clusters.all.some((block) => this.#clusters.isUsable({ gang, sized }, block));
    return areUsable || areOpen(quotas, made.quotas) ? changed(refusal) : refusal;
  }

  /** The time of the gang that is protected for longest, if it still runs. */
  #sparedWords({ queue }: PlanGang, spared: Protected): string {
    const { jobUid = "", admission } = spared.last ?? {};
    const gang = this.#parts.lines.entries.get(jobUid)?.gang;
    const live = gang === undefined ? null : liveAdmission(gang);
    const { branches } = this.#parts.quota;
    const [victim, taker] = [branches.leaf(gang?.queue ?? ""), branches.leaf(queue)];
    if (live?.number !== admission || victim === null || taker === null) return protectedWords(spared, null);
    const untilMs = protectedUntilMs(live?.admitTimeMs ?? null, minRuntimeMs(victim, taker, gang?.preemptions));
    return protectedWords(spared, untilMs);
  }

  #shapeOf(gang: PlanGang): AskShape {
    const known = this.#parts.lines.entries.get(gang.uid)?.shape;
    return known?.hash === gang.askHash ? known : shapeOf(gang.askHash, gang.ask);
  }

  #quotaRefusal({ gang, sized }: SizedGang, block: QuotaCause): QuotaRefusal {
    const { pool: flavor, scope, reason, resource, counters } = block;
    const { queue, project, namespace, priority } = gang;
    const at = { queue, flavor, scope, reason };
    const asked = counters?.asked ?? wholeUnitsOf(sized, resource);
    if (reason === "NoQuota") return { ...at, need: asked, used: 0, limit: 0, reserved: 0, heldBy: [] };
    const { quota } = this.#parts;
    const freeze = reason === "PoolFrozen" ? quota.pools.get(flavor)?.freeze : undefined;
    const { booked, ...usage } = this.#usageAt(quota.account(queue, project, namespace), scope, asked);
    const isFirst = quota.reserved?.jobUid === gang.uid;
    const kept = scope.kind === "pool" && !isFirst ? quota.reservedIn(flavor, priority) : 0;
    const amounts = { ...usage, reserved: counters?.kept ?? kept, ...(booked > 0 && { booked }) };
    return { ...at, ...amounts, heldBy: this.#holdersOf(block), ...(freeze === undefined ? {} : { freeze }) };
  }

  /** What a level uses, what a gang needs there once nominees have what they lack, and how much they lack: `booked`. */
  #usageAt(account: Account, scope: Scope, asked: number) {
    const { quota, booked } = this.#parts;
    const now = quota.usageAt(account, scope, asked);
    if (booked.length === 0) return { ...now, booked: 0 };
    const { mark } = quota;
    quota.chargeRise(booked, 1);
    const then = quota.usageAt(account, scope, asked);
    quota.undo(mark);
    return { ...now, need: then.need, booked: then.used - now.used };
  }

  #holdersOf({ scope, reason, counters }: QuotaCause): readonly string[] {
    if (reason === "PoolFrozen" || reason === "QueueFrozen") return [];
    if (reason !== "Reserved") return this.#holders.largest(scope);
    const { reserved } = this.#parts.quota;
    return reserved === null || counters !== undefined ? [] : [reserved.holder];
  }
}

function isSameTenant(one: TenantName | null, other: TenantName): boolean {
  return one !== null && tenantKey(one) === tenantKey(other);
}

/** A gang, and the number of its members that is asked about. */
type SizedGang = { readonly gang: PlanGang; readonly sized: SizedAsk };

/** True if each resource that quotas refused has a pool whose quotas have room for it now. */
function areOpen(causes: readonly QuotaCause[], now: readonly QuotaRefusal[]): boolean {
  const open = new Map<string, Map<string, boolean>>();
  for (const [at, { need, used, limit, reserved, booked = 0, reason }] of now.entries()) {
    const { resource = "", pool = "" } = causes[at] ?? {};
    const pools = open.get(resource) ?? new Map<string, boolean>();
    open.set(resource, pools);
    pools.set(pool, (pools.get(pool) ?? true) && reason !== "NoQuota" && need <= limit - used - reserved - booked);
  }
  return open.size > 0 && [...open.values()].every((pools) => [...pools.values()].includes(true));
}

function backoffWords({ backoff }: PlanGang, untilMs: number): string {
  const until = new Date(untilMs).toISOString();
  const why = backoff?.why === undefined ? "" : ` because ${backoff.why}`;
  const cluster = backoff?.lastCluster;
  const undone = cluster === undefined ? "its last admission" : `its admission to ${cluster}`;
  return `${undone} was undone${why}; it may be admitted again at ${until}`;
}

function drainingWords(gang: PlanGang): string {
  const draining = drainingAdmission(gang);
  if (draining === null) return "pods of an older admission still run";
  return `pods of its admission ${draining.number} still run on ${draining.cluster ?? "its service"}`;
}

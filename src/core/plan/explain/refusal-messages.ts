import { maxOf } from "../../../runtime/lists.ts";
import { drainingAdmission, liveAdmission } from "../../job/job.ts";
import type { Nomination } from "../../job/preemption.ts";
import type { TenantName } from "../../job/tenant-limits.ts";
import { countable } from "../../quota/allocations.ts";
import type { Scope } from "../../quota/counters.ts";
import type { Fleet } from "../fit/fleet.ts";
import { tenantKey } from "../model/limited-tenant.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { QuotaRefusal, Refusal } from "../model/plan-types.ts";
import { isLeft } from "../model/preemption.ts";
import {
  KEPT_FOR_RESERVATION,
  PREEMPTING,
  preemptingMessage,
  RESERVING,
  reservedForMessage,
  reservingMessage,
  victimMessage,
} from "../model/preemption-messages.ts";
import { haltOf, isSameStop, stopMessage, stopReason } from "../model/queue-stop.ts";
import { type AskShape, type SizedAsk, shapeOf, unitsOfRole, wholeUnitsOf } from "../queues/ask-shape.ts";
import type { ReservedFor } from "../queues/refusals.ts";
import { fullMessage, QUEUE_FULL, type RunningJobs, TENANT_FULL } from "../queues/running-jobs.ts";
import type { Account, QuotaRise } from "../usage/quota-levels.ts";
import { budgetMessage } from "../victims/budget.ts";
import { minRuntimeMs, protectedUntilMs } from "../victims/min-runtime.ts";
import { FINAL_SHARE_WORDS, type Protected, protectedMessage } from "../victims/protection.ts";
import { ClusterMessages } from "./cluster-messages.ts";
import { Holders, type OtherHolders } from "./holders.ts";
import type { KeptReason, KeptShortfall, QuotaReason } from "./kept-reason.ts";
import { changed, refuse, refuseFor, waitingLineMessage } from "./refuse.ts";

/**
 * Says why gangs wait, in full: their recorded reasons, with the numbers of the state as it is now. A reason may be
 * older than the state. Remembers its answers, so make a new one when the state has moved.
 */
export class RefusalMessages {
  readonly #fleet: Fleet;
  readonly #clusters: ClusterMessages;
  readonly #holders: Holders;
  /** With the admissions of the round. */
  readonly #running: RunningJobs;
  /** The answers to gang classes whose gangs all get the same one. */
  readonly #classes = new Map<KeptShortfall, Refusal>();

  /** How much more each level would use if nominees had what they lack. */
  readonly #pendingUse: QuotaRise;

  constructor(fleet: Fleet, { pendingUse = [], ...others }: OtherHolders & { readonly pendingUse?: QuotaRise }) {
    this.#fleet = fleet;
    this.#pendingUse = pendingUse;
    this.#clusters = new ClusterMessages(fleet);
    this.#holders = new Holders(fleet, others);
    this.#running = fleet.queues.countRunning();
    for (const { kind, jobUid } of others.admissions) {
      const gang = fleet.queues.gangs.get(jobUid);
      if (kind === "admit" && gang !== undefined) this.#running.add(gang.facts);
    }
  }

  /** A reason that holds no more stays, and the message says so. */
  refusalOf(gang: PlanGang, cause: KeptReason): Refusal {
    const refusal = this.#messageFor(gang, cause);
    return this.#hasEnded(gang, cause) ? changed(refusal) : refusal;
  }

  #messageFor(gang: PlanGang, cause: KeptReason): Refusal {
    switch (cause.kind) {
      case "unknownQueue":
        return refuse(gang, { reason: "UnknownQueue", message: `there is no queue ${gang.queue}` });
      case "queueStopped":
        return refuse(gang, { reason: stopReason(cause.stop), message: stopMessage(gang.queue, cause.stop) });
      case "queueFull": {
        const limit = this.#fleet.quota.queues.get(cause.queue)?.maxRunningJobs ?? 0;
        const message = fullMessage(`queue ${cause.queue}`, { running: this.#running.of(cause.queue), limit });
        return refuse(gang, { reason: QUEUE_FULL, message });
      }
      case "tenantFull": {
        const key = tenantKey(cause.tenant);
        const limit = this.#fleet.queues.tenants.limited.get(key)?.maxRunningJobs ?? 0;
        const message = fullMessage(key, { running: this.#running.of(key), limit });
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
          message: backoffMessage(gang, cause.untilMs),
          retryAtMs: cause.untilMs,
        });
      case "draining":
        return refuse(gang, { reason: "Draining", message: drainingMessage(gang) });
      case "preempting": {
        const { nomination } = cause;
        if (nomination.reservation !== undefined) {
          const message = reservingMessage(nomination.cluster, this.#leftOf(nomination), this.#startOf(nomination));
          return refuse(gang, { reason: RESERVING, message });
        }
        return refuse(gang, {
          reason: PREEMPTING,
          message: preemptingMessage(nomination.cluster, this.#leftOf(nomination)),
        });
      }
      case "behindHead": {
        const { namespace, name, uid } = cause.head;
        const message = `waits behind ${namespace}/${name}, the head of the strict queue ${gang.queue}`;
        return { ...refuse(gang, { reason: "BehindHead", message }), head: uid };
      }
      case "lacks":
        return this.#shortfallMessage(gang, cause);
    }
  }

  /** The victims whose pods may still run. */
  #leftOf({ victims }: Nomination): readonly string[] {
    return victims.flatMap((victim) => {
      const gang = this.#fleet.queues.gangs.get(victim.jobUid)?.facts;
      const held = gang?.admissions.find(({ number }) => number === victim.admission);
      if (gang === undefined || held?.tokensReleasedMs !== null || !isLeft(gang, victim)) return [];
      return [victimMessage(`${gang.namespace}/${gang.name}`, held.members, victim.keeps)];
    });
  }

  /** When the gangs that a reservation waits for have ended at the latest. 0: none runs. Infinite: nobody knows. */
  #startOf({ victims }: Nomination): number {
    const ends = victims.map(({ jobUid, admission }) => {
      const gang = this.#fleet.queues.gangs.get(jobUid)?.facts;
      const held = gang?.admissions.find(({ number }) => number === admission);
      if (gang === undefined || held?.tokensReleasedMs !== null || held.state !== "live") return 0;
      return held.admitTimeMs + (gang.maxRuntimeMs ?? Number.POSITIVE_INFINITY);
    });
    return maxOf(ends, 0);
  }

  /** A gang that another one's reservation keeps out. The detail says what it would lack. */
  #reservedFor(refusal: Refusal, { uid, namespace, name, cluster }: ReservedFor): Refusal {
    const nomination = this.#fleet.queues.gangs.get(uid)?.facts.nomination;
    const isKept = nomination?.reservation !== undefined;
    const startMs = isKept ? this.#startOf(nomination) : Number.POSITIVE_INFINITY;
    const message = reservedForMessage(`${namespace}/${name}`, cluster, startMs);
    const kept = { ...refusal, reason: KEPT_FOR_RESERVATION, message };
    return isKept ? kept : changed(kept);
  }

  /** True if a gang waits no longer for something that only itself could end. */
  #hasEnded(gang: PlanGang, cause: KeptReason): boolean {
    switch (cause.kind) {
      case "unknownQueue":
        return this.#fleet.quota.queues.has(gang.queue);
      case "queueStopped":
        return !isSameStop(haltOf(gang.queue, this.#fleet.quota.queues), cause.stop);
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

  #shortfallMessage(gang: PlanGang, { refusal: lacks, inLine }: Extract<KeptReason, { kind: "lacks" }>): Refusal {
    if (inLine.length > 0)
      return this.#newShortfallMessage(gang, lacks, waitingLineMessage(inLine.map(({ pool }) => pool)));
    const known = this.#classes.get(lacks);
    if (known !== undefined) return { ...known, jobUid: gang.uid, generation: gang.generation };
    const made = this.#newShortfallMessage(gang, lacks);
    // The admissions that have not left a cluster are the gang's own.
    if (!lacks.clusters.all.some(({ reason }) => reason === "Draining")) this.#classes.set(lacks, made);
    return made;
  }

  #newShortfallMessage(gang: PlanGang, lack: KeptShortfall, more = ""): Refusal {
    const {
      tried,
      quotas,
      clusters,
      stoppedByQuota,
      budget,
      spared: protection,
      byFinalShareAlone,
      keptFor: reservedFor,
    } = lack;
    const { all, fewest } = this.#shapeOf(gang);
    const sized = tried === "fewest" ? (fewest ?? all) : all;
    const made = refuseFor(gang, {
      quotas: quotas.map((block) => this.#quotaRefusal({ gang, sized }, block)),
      clusters: clusters.all.map((block) => this.#clusters.refusalOf({ gang, sized }, block)),
      stoppedByQuota,
    });
    if (reservedFor !== undefined) return this.#reservedFor(made, reservedFor);
    const overBudget = budget === undefined ? "" : `; ${budgetMessage(budget)}`;
    const byShare = byFinalShareAlone === true ? FINAL_SHARE_WORDS : "";
    const heldBack = overBudget + (protection === undefined ? "" : this.#protectionMessage(gang, protection)) + byShare;
    const retryAtMs = budget?.untilMs ?? made.retryAtMs;
    const refusal = { ...made, message: made.message + more + heldBack, retryAtMs };
    const areUsable = !stoppedByQuota && clusters.all.some((block) => this.#clusters.isUsable({ gang, sized }, block));
    return areUsable || areOpen(quotas, made.quotas) ? changed(refusal) : refusal;
  }

  /** The time of the gang that is protected for longest, if it still runs. */
  #protectionMessage({ queue }: PlanGang, protection: Protected): string {
    const { jobUid = "", admission } = protection.last ?? {};
    const gang = this.#fleet.queues.gangs.get(jobUid)?.facts;
    const live = gang === undefined ? null : liveAdmission(gang);
    const { branches } = this.#fleet.quota;
    const [victim, preemptor] = [branches.leaf(gang?.queue ?? ""), branches.leaf(queue)];
    if (live?.number !== admission || victim === null || preemptor === null) return protectedMessage(protection, null);
    const untilMs = protectedUntilMs(live?.admitTimeMs ?? null, minRuntimeMs(victim, preemptor, gang?.preemptions));
    return protectedMessage(protection, untilMs);
  }

  #shapeOf(gang: PlanGang): AskShape {
    const known = this.#fleet.queues.gangs.get(gang.uid)?.shape;
    return known?.hash === gang.askHash ? known : shapeOf(gang.askHash, gang.ask);
  }

  #quotaRefusal({ gang, sized }: SizedGang, block: QuotaReason): QuotaRefusal {
    const { pool: flavor, scope, reason, counters } = block;
    const { queue, project, namespace, priority } = gang;
    const at = { queue, flavor, scope, reason };
    const asked = counters?.asked ?? unitsAsked(sized, block);
    if (reason === "NoQuota") return { ...at, need: asked, used: 0, limit: 0, reserved: 0, heldBy: [] };
    const { quota } = this.#fleet;
    const freeze = reason === "PoolFrozen" ? quota.pools.get(flavor)?.freeze : undefined;
    const { booked, ...usage } = this.#usageAt(quota.account(queue, project, namespace), scope, asked);
    const isFirst = quota.reserved?.jobUid === gang.uid;
    const kept = scope.kind === "pool" && !isFirst ? quota.reservedIn(flavor, priority) : 0;
    const amounts = { ...usage, reserved: counters?.kept ?? kept, ...(booked > 0 && { booked }) };
    return { ...at, ...amounts, heldBy: this.#holdersOf(block), ...(freeze === undefined ? {} : { freeze }) };
  }

  /**
   * What a level uses, what a gang needs there once nominees have what they lack, and how much they lack: `pending`.
   */
  #usageAt(account: Account, scope: Scope, asked: number) {
    const { quota } = this.#fleet;
    const now = quota.usageAt(account, scope, asked);
    if (this.#pendingUse.length === 0) return { ...now, booked: 0 };
    const { mark } = quota;
    quota.chargeRise(this.#pendingUse, 1);
    const then = quota.usageAt(account, scope, asked);
    quota.undo(mark);
    return { ...now, need: then.need, booked: then.used - now.used };
  }

  #holdersOf({ scope, reason, counters }: QuotaReason): readonly string[] {
    if (reason === "PoolFrozen" || reason === "QueueFrozen") return [];
    if (reason !== "Reserved") return this.#holders.largest(scope);
    const { reserved } = this.#fleet.quota;
    return reserved === null || counters !== undefined ? [] : [reserved.holder];
  }
}

function isSameTenant(one: TenantName | null, other: TenantName): boolean {
  return one !== null && tenantKey(one) === tenantKey(other);
}

/** The units of a pool that members request, of all replica types or of those that would use it. */
function unitsAsked(sized: SizedAsk, { resource, roles }: QuotaReason): number {
  if (roles === undefined) return wholeUnitsOf(sized, resource);
  return countable(roles.reduce((sum, role) => sum + unitsOfRole(sized, role, resource), 0));
}

/** A gang, and the number of its members that is asked about. */
type SizedGang = { readonly gang: PlanGang; readonly sized: SizedAsk };

/** True if each resource that quotas refused to some replica types has a pool whose quotas have capacity for it now. */
function areOpen(causes: readonly QuotaReason[], now: readonly QuotaRefusal[]): boolean {
  const open = new Map<string, Map<string, boolean>>();
  for (const [at, { need, used, limit, reserved, booked = 0, reason }] of now.entries()) {
    const { resource = "", pool = "", roles = [] } = causes[at] ?? {};
    const key = [resource, ...roles].join();
    const pools = open.get(key) ?? new Map<string, boolean>();
    open.set(key, pools);
    pools.set(pool, (pools.get(pool) ?? true) && reason !== "NoQuota" && need <= limit - used - reserved - booked);
  }
  return open.size > 0 && [...open.values()].every((pools) => [...pools.values()].includes(true));
}

function backoffMessage({ backoff }: PlanGang, untilMs: number): string {
  const until = new Date(untilMs).toISOString();
  const why = backoff?.why === undefined ? "" : ` because ${backoff.why}`;
  const cluster = backoff?.lastCluster;
  const undone = cluster === undefined ? "its last admission" : `its admission to ${cluster}`;
  return `${undone} was undone${why}; it may be admitted again at ${until}`;
}

function drainingMessage(gang: PlanGang): string {
  const draining = drainingAdmission(gang);
  if (draining === null) return "pods of an older admission still run";
  return `pods of its admission ${draining.number} still run on ${draining.cluster ?? "its service"}`;
}

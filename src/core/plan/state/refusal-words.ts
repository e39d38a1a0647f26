import { drainingAdmission } from "../../job/job.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { QuotaRefusal, Refusal } from "../plan-types.ts";
import { lineWords, refuse, refuseFor } from "../refuse.ts";
import { type AskShape, shapeOf } from "./ask-shape.ts";
import { ClusterWords } from "./cluster-words.ts";
import type { FleetParts } from "./fleet-parts.ts";
import { Holders, type OtherHolders } from "./holders.ts";
import type { QuotaBlock } from "./quota-state.ts";
import type { Cause, LaneRefusal } from "./refused.ts";

/**
 * Says why gangs wait, in full: their causes decide the reasons, and the state as it is now has the numbers. A cause
 * may be older than the state. Remembers its answers, so make a new one when the state has moved.
 */
export class RefusalWords {
  readonly #parts: FleetParts;
  readonly #clusters: ClusterWords;
  readonly #holders: Holders;
  /** The answers to lanes whose gangs all get the same one. */
  readonly #lanes = new Map<LaneRefusal, Refusal>();

  constructor(parts: FleetParts, others: OtherHolders) {
    this.#parts = parts;
    this.#clusters = new ClusterWords(parts);
    this.#holders = new Holders(parts, others);
  }

  refusalOf(gang: PlanGang, cause: Cause): Refusal {
    switch (cause.kind) {
      case "unknownQueue":
        return refuse(gang, { reason: "UnknownQueue", message: `there is no queue ${gang.queue}` });
      case "suspended":
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
      case "behindHead": {
        const { namespace, name, uid } = cause.head;
        const message = `waits behind ${namespace}/${name}, the head of the strict queue ${gang.queue}`;
        return { ...refuse(gang, { reason: "BehindHead", message }), head: uid };
      }
      case "lacks":
        return this.#lackOf(gang, cause);
    }
  }

  #lackOf(gang: PlanGang, { refusal: lacks, inLine }: Extract<Cause, { kind: "lacks" }>): Refusal {
    if (inLine.length > 0) {
      const refusal = this.#newLackOf(gang, lacks);
      return { ...refusal, message: refusal.message + lineWords(inLine) };
    }
    const known = this.#lanes.get(lacks);
    if (known !== undefined) return { ...known, jobUid: gang.uid, generation: gang.generation };
    const made = this.#newLackOf(gang, lacks);
    // The admissions that have not left a cluster are the gang's own.
    if (!lacks.clusters.all.some(({ reason }) => reason === "Draining")) this.#lanes.set(lacks, made);
    return made;
  }

  #newLackOf(gang: PlanGang, { tried, quotas, clusters, stoppedByQuota }: LaneRefusal): Refusal {
    const { all, fewest } = this.#shapeOf(gang);
    const sized = tried === "fewest" ? (fewest ?? all) : all;
    return refuseFor(gang, {
      quotas: quotas.map((block) => this.#quotaRefusal(gang, block)),
      clusters: clusters.all.map((block) => this.#clusters.refusalOf({ gang, sized }, block)),
      stoppedByQuota,
    });
  }

  #shapeOf(gang: PlanGang): AskShape {
    const known = this.#parts.lines.entries.get(gang.uid)?.shape;
    return known?.hash === gang.askHash ? known : shapeOf(gang.askHash, gang.ask);
  }

  #quotaRefusal(gang: PlanGang, { pool: flavor, scope, reason, asked }: QuotaBlock): QuotaRefusal {
    const { queue, project, namespace, priority } = gang;
    const at = { queue, flavor, scope, reason };
    if (reason === "NoQuota") return { ...at, need: asked, used: 0, limit: 0, reserved: 0, heldBy: [] };
    const { quota } = this.#parts;
    const { need, used, limit } = quota.usageAt(quota.account(queue, project, namespace), scope, asked);
    const isFirst = quota.reserved?.jobUid === gang.uid;
    const reserved = scope.kind === "pool" && !isFirst ? quota.reservedIn(flavor, priority) : 0;
    return { ...at, need, used, limit, reserved, heldBy: this.#holdersOf(scope, reason) };
  }

  #holdersOf(scope: QuotaBlock["scope"], reason: QuotaBlock["reason"]): readonly string[] {
    if (reason !== "Reserved") return this.#holders.largest(scope);
    const { reserved } = this.#parts.quota;
    return reserved === null ? [] : [reserved.holder];
  }
}

function backoffWords({ backoff }: PlanGang, untilMs: number): string {
  const until = new Date(untilMs).toISOString();
  const why = backoff?.why === undefined ? "" : ` because ${backoff.why}`;
  const undone = backoff === null ? "its last admission" : `its admission to ${backoff.lastCluster}`;
  return `${undone} was undone${why}; it may be admitted again at ${until}`;
}

function drainingWords(gang: PlanGang): string {
  const draining = drainingAdmission(gang);
  if (draining === null) return "pods of an older admission still run";
  return `pods of its admission ${draining.number} still run on ${draining.cluster ?? "its service"}`;
}

/** Carries out a plan in batches: one call of the counters and one transaction for many gangs. */

import { chainOf, MissedAdmissions, planSteps } from "../core/plan/apply/missed-admissions.ts";
import { type ReportedRefusal, tokensReason } from "../core/plan/explain/kept-reason.ts";
import { refuseForTokens } from "../core/plan/explain/refuse.ts";
import type { AdmissionRecord, AdmitOutcome, PlannedAdmission, PlannedGang } from "../core/plan/model/plan-types.ts";
import type { AllocationRef, Caps } from "../core/quota/counters.ts";
import { invariant } from "../runtime/assert.ts";
import { append } from "../runtime/lists.ts";
import { wouldFailAlone } from "../runtime/unavailable-error.ts";
import type { BatchSize } from "./batch-size.ts";
import type { FleetDecision, PlannerPorts } from "./ports.ts";
import { type ReserveOutcome, reserveAll } from "./reserve.ts";
import type { GangTokenRequest, WaitingPlace } from "./waiting-place.ts";

export type RoundContext = PlannerPorts & {
  readonly plannerEpoch: number;
  readonly place: WaitingPlace;
  readonly batchSize: BatchSize;
};

/** After so many steps of one round that threw, the round takes the store to be away, and ends. */
export const FAILURES_MAX = 3;

/** Pools and queues alone limit a job, and its tokens do not lapse. */
const NO_CAPS: Caps = { project: null, namespace: null };

type RoundPlan = { readonly quotaEpoch: number; readonly decision: FleetDecision };

type RoundResults = {
  readonly recorded: PlannedAdmission[];
  /** Those that were not recorded and do not wait for tokens. */
  readonly missed: PlannedAdmission[];
  /** Of gangs that the plan had room for and the counters had not. */
  readonly refusals: ReportedRefusal[];
  readonly failures: unknown[];
};

/**
 * Carries out the steps of a plan in their order. A gang that fails holds up only those behind it in a strict queue;
 * its room stays reserved. While callers take tokens as well, every step is followed by a rest as long as it took, in
 * which they do not wait for it.
 */
export async function carryOut(context: RoundContext, round: RoundPlan, signal: AbortSignal): Promise<RoundResults> {
  const batches = new Batches(context, round);
  const { decision, quotaEpoch } = round;
  const { plan } = decision;
  await batches.attempt(() => context.place.begin(plan, quotaEpoch));
  let restMs = 0;
  for (const step of planSteps(plan, () => context.batchSize.max)) {
    if (restMs > 0) await context.clock.sleep(restMs, signal);
    if (signal.aborted || batches.isOver) break;
    const startMs = context.clock.monotonicMs();
    if (step.step === "admit") await batches.admit(step.planned);
    else await batches.attempt(() => context.place.take(batches.requestFor(step.planned)));
    restMs = context.batchSize.isBesideCallers ? context.clock.monotonicMs() - startMs : 0;
  }
  return batches.resultsOf(plan);
}

/** A gang whose tokens are granted. Null fence: it needs none. */
type GrantedGang = { readonly request: GangTokenRequest; readonly fence: bigint | null };

type MissedOutcome = AdmitOutcome | ReserveOutcome | "unknown";

/** The batches of one round, and the effects of those that were carried out on later ones. */
class Batches {
  readonly #results: Omit<RoundResults, "missed"> = { recorded: [], refusals: [], failures: [] };
  readonly #context: RoundContext;
  readonly #quotaEpoch: number;
  readonly #gangs: ReadonlyMap<string, PlannedGang>;
  readonly #missed = new MissedAdmissions();
  readonly #exhausted = new Set<PlannedAdmission>();
  /** The counter that each cluster has after the batches so far. */
  readonly #counters = new Map<string, number>();

  constructor(context: RoundContext, { quotaEpoch, decision }: RoundPlan) {
    this.#context = context;
    this.#quotaEpoch = quotaEpoch;
    this.#gangs = decision.gangs;
    for (const { cluster, admissionCounter } of decision.plan.admissions) {
      if (cluster !== null && !this.#counters.has(cluster)) this.#counters.set(cluster, admissionCounter);
    }
  }

  resultsOf({ admissions }: FleetDecision["plan"]): RoundResults {
    const settled = new Set([...this.#results.recorded, ...this.#exhausted]);
    return { ...this.#results, missed: admissions.filter((planned) => !settled.has(planned)) };
  }

  /** True: so much has failed that the round must end. */
  get isOver(): boolean {
    return this.#results.failures.length >= FAILURES_MAX;
  }

  /** Notes an error as a failure of the round, and returns null. */
  async attempt<T>(run: () => Promise<T>): Promise<T | null> {
    try {
      return await run();
    } catch (error) {
      this.#results.failures.push(error);
      return null;
    }
  }

  requestFor(planned: PlannedAdmission): GangTokenRequest {
    const gang = this.#gangOf(planned);
    const token = grantToken(planned, this.#context.plannerEpoch);
    return {
      planned,
      gang,
      epoch: this.#quotaEpoch,
      holder: { kind: "admission", jobUid: planned.jobUid, admission: planned.admission },
      allocations: toGrant(planned, gang).map((one) => ({ ...one, token, caps: NO_CAPS, leaseMs: null })),
      chain: chainOf(gang),
    };
  }

  /** Takes the tokens of gangs, and records those that got them. */
  async admit(planned: readonly PlannedAdmission[]): Promise<void> {
    const { quota, place, batchSize } = this.#context;
    const requests = planned.filter((one) => this.#isFree(one)).map((one) => this.requestFor(one));
    const asking = requests.filter(({ allocations }) => allocations.length > 0);
    const reserved = await this.attempt(() => reserveAll(quota, place, { epoch: this.#quotaEpoch, requests: asking }));
    const granted: GrantedGang[] = [];
    for (const request of requests) {
      if (!this.#isFree(request.planned)) continue;
      if (request.allocations.length === 0) {
        granted.push({ request, fence: null });
        continue;
      }
      const outcome = reserved?.get(request) ?? "unknown";
      if (outcome !== "unknown" && outcome.kind === "granted") granted.push({ request, fence: outcome.fence });
      else this.#miss(request.planned, outcome);
    }
    batchSize.note(granted.flatMap(({ fence }) => (fence === null ? [] : [fence])));
    await this.#giveBack(asking.filter((request) => reserved?.get(request)?.kind === "conflict"));
    await this.#record(granted);
  }

  /**
   * Records gangs in one transaction. If the store cannot record them, tries each half alone, so that a gang that no
   * transaction can record holds up no other.
   */
  async #record(granted: readonly GrantedGang[]): Promise<void> {
    const gangs = granted.filter(({ request }) => this.#isFree(request.planned));
    const outcomes = await this.#tryRecord(gangs);
    if (outcomes === "notRecorded") {
      const middle = Math.ceil(gangs.length / 2);
      await this.#record(gangs.slice(0, middle));
      return this.#record(gangs.slice(middle));
    }
    const left = granted.filter((gang) => !gangs.includes(gang)).map(({ request }) => request);
    await this.#giveBack([...left, ...this.#settle(gangs, outcomes)]);
  }

  /** Confirms the tokens of recorded gangs, and returns the requests whose tokens are to be given back. */
  #settle(gangs: readonly GrantedGang[], outcomes: readonly AdmitOutcome[] | "unknown"): readonly GangTokenRequest[] {
    const { quota, wakeJob } = this.#context;
    const recorded: AllocationRef[] = [];
    const left: GangTokenRequest[] = [];
    for (const [at, { request, fence }] of gangs.entries()) {
      const outcome = outcomes === "unknown" ? outcomes : (outcomes[at] ?? "unknown");
      if (outcome === "recorded") {
        this.#count(request.planned);
        wakeJob(request.planned.jobUid);
        if (fence !== null) append(recorded, refsOf(request, fence));
        continue;
      }
      this.#miss(request.planned, outcome);
      if (outcome !== "unknown") left.push(request);
    }
    if (recorded.length > 0) quota.confirm(this.#quotaEpoch, recorded);
    return left;
  }

  /**
   * `unknown`: the gangs may have been recorded. So their tokens stay granted until the ledger tells: to this planner,
   * which plans again, or to the reaper.
   */
  async #tryRecord(gangs: readonly GrantedGang[]): Promise<readonly AdmitOutcome[] | "unknown" | "notRecorded"> {
    const { store, clock, plannerEpoch } = this.#context;
    if (gangs.length === 0) return [];
    if (this.isOver) return "unknown";
    const records = gangs.map(({ request, fence }): AdmissionRecord => {
      const { planned, gang, allocations, chain } = request;
      return { planned, gang, allocations, fence, chain };
    });
    const clusters = new Set(gangs.map(({ request }) => request.planned.cluster));
    const counters = new Map([...this.#counters].filter(([cluster]) => clusters.has(cluster)));
    try {
      const quotaEpoch = this.#quotaEpoch;
      return await store.recordAdmissions({ records, counters, quotaEpoch, plannerEpoch, nowMs: clock.nowMs() });
    } catch (error) {
      if (gangs.length > 1 && !wouldFailAlone(error)) return "notRecorded";
      this.#results.failures.push(error);
      return "unknown";
    }
  }

  /** True unless a gang before it in its strict queue was missed. */
  #isFree(planned: PlannedAdmission): boolean {
    return !this.#missed.holdsUp(this.#gangOf(planned));
  }

  #count(planned: PlannedAdmission): void {
    const { cluster } = planned;
    this.#results.recorded.push(planned);
    if (cluster !== null) this.#counters.set(cluster, (this.#counters.get(cluster) ?? 0) + 1);
  }

  #miss(planned: PlannedAdmission, outcome: MissedOutcome): void {
    const gang = this.#gangOf(planned);
    this.#missed.add(gang);
    if (typeof outcome !== "object" || outcome.kind !== "exhausted") return;
    this.#exhausted.add(planned);
    if (planned.kind !== "admit") return;
    const refusal = refuseForTokens(gang, outcome);
    const of = { quotas: refusal.quotas, inLine: outcome.inLine };
    this.#results.refusals.push({ refusal, ...tokensReason(planned, of) });
  }

  #gangOf({ jobUid }: PlannedAdmission): PlannedGang {
    const gang = this.#gangs.get(jobUid);
    invariant(gang !== undefined, "a plan names the gangs of its admissions");
    return gang;
  }

  async #giveBack(requests: readonly GangTokenRequest[]): Promise<void> {
    const tokens = requests.flatMap(({ allocations }) => allocations);
    if (tokens.length > 0) await this.attempt(() => this.#context.quota.giveBack(this.#quotaEpoch, tokens));
  }
}

/** What the counters have to grant: the plan's allocations without the part that a nominee holds already. */
function toGrant(
  { kind, allocations }: PlannedAdmission,
  { holds = {} }: PlannedGang,
): PlannedAdmission["allocations"] {
  if (kind !== "admit") return allocations;
  return allocations.flatMap((one) => {
    const amount = one.amount - (holds[one.pool] ?? 0);
    return amount > 0 ? [{ ...one, amount }] : [];
  });
}

/**
 * Names a grant uniquely: by its job, its admission, its step and the planner's epoch. The first step is 1. A step of
 * growth is the gang's generation, since a gang may grow to the same size more than once.
 */
function grantToken(planned: PlannedAdmission, plannerEpoch: number): string {
  const step = planned.kind === "admit" ? 1 : planned.generation;
  return `job/${planned.jobUid}/admission/${planned.admission}/step/${step}/${plannerEpoch}`;
}

function refsOf({ allocations }: GangTokenRequest, fence: bigint): readonly AllocationRef[] {
  return allocations.map(({ pool, token }) => ({ pool, token, fence }));
}

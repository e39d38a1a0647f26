/**
 * One round of the planner, which turns a plan into recorded admissions. Gangs start as soon as tokens and nodes are
 * free, and a gang that fails to be recorded delays no gang but those behind it in a strict queue.
 */
import { MissedAdmissions, planSteps } from "../core/plan/missed-admissions.ts";
import { plan } from "../core/plan/plan.ts";
import type { PlanGang } from "../core/plan/plan-gang.ts";
import type { AdmitOutcome, Plan, PlannedAdmission, Refusal } from "../core/plan/plan-types.ts";
import { refuseForTokens } from "../core/plan/refuse.ts";
import type { PlanSnapshot } from "../core/plan/snapshot.ts";
import type { Allocation, AllocationRef, Caps } from "../core/quota/counters.ts";
import type { PlannerPorts } from "./ports.ts";
import { type ReserveOutcome, reserve } from "./reserve.ts";
import type { GangTokenRequest, WaitingPlace } from "./waiting-place.ts";

/** The results of one round. */
export type Round = {
  readonly admitted: number;
  readonly grown: number;
  readonly refused: number;
  /** Planned admissions that were not recorded, except those that wait for tokens. The next round plans them again. */
  readonly missed: number;
  /** When time alone may change the plan. */
  readonly replanAtMs: number | null;
};

type RoundContext = PlannerPorts & {
  readonly plannerEpoch: number;
  readonly place: WaitingPlace;
  /** The refusals that were last recorded, as JSON by job uid: a round does not write the same one again. */
  readonly recordedRefusals: Map<string, string>;
};

/** After so many admissions of one round that threw, the round takes the store to be away, and ends. */
const FAILURES_MAX = 3;

/** Pools and queues alone limit a job, and its tokens do not lapse. */
const NO_CAPS: Caps = { project: null, namespace: null };

/**
 * One round: settle releases, take a snapshot, plan, reserve and record each admission, record the refusals. Throws the
 * errors of the store or the counters; an admission that throws does so after the others had their turn.
 */
export async function runRound(context: RoundContext, signal: AbortSignal): Promise<Round> {
  const { quota } = context;
  const opened = await quota.open();
  await quota.catchUp(opened);
  const snapshot = await context.store.snapshot();
  if (snapshot.quotaEpoch > opened) quota.lost(opened, "the ledger's epoch has moved on");
  const quotaEpoch = await quota.open();
  const startedMs = context.clock.monotonicMs();
  const decided = plan(snapshot, { nowMs: context.clock.nowMs() });
  context.onPlanned?.({ planMs: context.clock.monotonicMs() - startedMs });
  const results = await carryOut(context, { snapshot, quotaEpoch, decided }, signal);
  const { recorded, refusals, exhausted, failures } = results;
  if (!signal.aborted && failures.length < FAILURES_MAX) {
    await recordRefusals(context, [...decided.refusals, ...refusals]).catch(
      (error: unknown) => void failures.push(error),
    );
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, "several steps of a planner's round failed");
  return {
    admitted: recorded.filter((planned) => planned.kind === "admit").length,
    grown: recorded.filter((planned) => planned.kind === "grow").length,
    refused: decided.refusals.length + refusals.length,
    missed: decided.admissions.length - recorded.length - exhausted,
    replanAtMs: decided.replanAtMs,
  };
}

/**
 * Names a grant uniquely: by its job, its admission, its step and the planner's epoch. The first step is 1. A step of
 * growth is the job's version in the snapshot, since a gang may grow to the same size more than once.
 */
function grantToken(planned: PlannedAdmission, plannerEpoch: number): string {
  const step = planned.kind === "admit" ? 1 : planned.jobVersion;
  return `job/${planned.jobUid}/admission/${planned.admission}/step/${step}/${plannerEpoch}`;
}

type RoundPlan = { readonly snapshot: PlanSnapshot; readonly quotaEpoch: number; readonly decided: Plan };

type RoundResults = {
  readonly recorded: PlannedAdmission[];
  /** Of gangs that the plan had room for and the counters had not. */
  readonly refusals: Refusal[];
  exhausted: number;
  readonly failures: unknown[];
};

/**
 * Carries out the steps of a plan in their order. One that fails holds up only those behind it in a strict queue; its
 * room stays reserved.
 */
async function carryOut(context: RoundContext, round: RoundPlan, signal: AbortSignal): Promise<RoundResults> {
  const { snapshot, quotaEpoch, decided } = round;
  const gangs = new Map([...snapshot.waiting, ...snapshot.admitted].map((gang) => [gang.uid, gang]));
  const requestFor = (planned: PlannedAdmission) =>
    tokenRequest(planned, { plannerEpoch: context.plannerEpoch, epoch: quotaEpoch, gang: gangs.get(planned.jobUid) });
  const missed = new MissedAdmissions(snapshot);
  const results: RoundResults = { recorded: [], refusals: [], exhausted: 0, failures: [] };
  const fails = (error: unknown) => void results.failures.push(error);
  const note = (planned: PlannedAdmission, outcome: StepOutcome | "heldUp" | undefined) => {
    if (outcome === "recorded") {
      results.recorded.push(planned);
      context.wakeJob(planned.jobUid);
      return;
    }
    missed.add(planned);
    if (typeof outcome !== "object") return;
    results.exhausted += 1;
    const gang = gangs.get(planned.jobUid);
    if (gang !== undefined && planned.kind === "admit") results.refusals.push(refuseForTokens(gang, outcome));
  };
  await context.place.begin(decided, quotaEpoch).catch(fails);
  for (const { planned, step } of planSteps(decided)) {
    if (signal.aborted || results.failures.length >= FAILURES_MAX) break;
    if (step === "takePlace") await context.place.take(requestFor(planned)).catch(fails);
    else if (missed.holdsUp(planned)) note(planned, "heldUp");
    else note(planned, (await admit(context, requestFor(missed.renumber(planned))).catch(fails)) ?? undefined);
  }
  return results;
}

type StepOutcome = AdmitOutcome | "notGranted" | Extract<ReserveOutcome, { readonly kind: "exhausted" }>;

async function admit(context: RoundContext, request: GangTokenRequest): Promise<StepOutcome> {
  const { clock, quota, place, plannerEpoch } = context;
  const { planned, allocations, epoch } = request;
  const reserved = allocations.length === 0 ? null : await reserve(quota, place, request);
  if (reserved?.kind === "exhausted") return reserved;
  if (reserved?.kind === "notGranted") return "notGranted";
  const fence = reserved?.fence ?? null;
  // If this throws, the admission may have been recorded. So the grant stays until the ledger tells: to this planner,
  // which plans again, or to the reaper.
  const record = { planned, allocations, fence, quotaEpoch: epoch, plannerEpoch, nowMs: clock.nowMs() };
  const outcome = await context.store.recordAdmission(record);
  if (fence === null) return outcome;
  if (outcome !== "recorded") await quota.giveBack(epoch, allocations);
  else quota.confirm(epoch, refsOf(allocations, fence));
  return outcome;
}

function tokenRequest(
  planned: PlannedAdmission,
  of: { readonly plannerEpoch: number; readonly epoch: number; readonly gang: PlanGang | undefined },
): GangTokenRequest {
  const token = grantToken(planned, of.plannerEpoch);
  return {
    planned,
    epoch: of.epoch,
    holder: { kind: "admission", jobUid: planned.jobUid, admission: planned.admission },
    allocations: planned.allocations.map((allocation) => ({ ...allocation, token, caps: NO_CAPS, leaseMs: null })),
    priority: of.gang?.priority ?? 0,
    sinceMs: of.gang?.createTimeMs ?? 0,
  };
}

function refsOf(allocations: readonly Allocation[], fence: bigint): readonly AllocationRef[] {
  return allocations.map(({ pool, token }) => ({ pool, token, fence }));
}

async function recordRefusals(context: RoundContext, refusals: readonly Refusal[]): Promise<void> {
  const { recordedRefusals } = context;
  const texts = new Map(refusals.map((refusal) => [refusal.jobUid, JSON.stringify(refusal)]));
  const changed = refusals.filter(({ jobUid }) => recordedRefusals.get(jobUid) !== texts.get(jobUid));
  if (changed.length > 0) {
    await context.store.recordRefusals(changed, context.plannerEpoch, context.clock.nowMs());
  }
  recordedRefusals.clear();
  for (const [jobUid, text] of texts) recordedRefusals.set(jobUid, text);
}

import type { Job } from "../core/job/job.ts";
import { plan } from "../core/plan/plan.ts";
import type { Plan, PlannedAdmission, Refusal } from "../core/plan/plan-types.ts";
import { refuseForTokens } from "../core/plan/refuse.ts";
import type { PlanSnapshot } from "../core/plan/snapshot.ts";
import type { AllocationLine, Caps, LineRef } from "../core/quota/counters.ts";
import type { PlannerLine, Wanted } from "./line.ts";
import type { AdmitOutcome, PlannerPorts } from "./ports.ts";
import { type Reserved, reserve } from "./reserve.ts";

/** What came of one round. */
export type Round = {
  readonly admitted: number;
  readonly grown: number;
  readonly refused: number;
  /** Planned admissions that did not come about, those aside that wait for tokens: the next round plans them again. */
  readonly missed: number;
  /** When time alone may change the plan. */
  readonly replanAtMs: number | null;
};

type Context = PlannerPorts & {
  readonly plannerEpoch: number;
  readonly line: PlannerLine;
  /** Refusals as they were last recorded, by job: the same one is not written again. */
  readonly told: Map<string, string>;
};

/** So many admissions of one round may throw before the store is taken to be away. */
const FAILURES_MAX = 3;

/** A job is limited by pools and queues alone, and its tokens do not lapse. */
const NO_CAPS: Caps = { project: null, namespace: null };

/**
 * One round: releases settled, snapshot, plan, then each admission reserved and recorded, then the refusals. Throws what the store or
 * the counters threw; an admission that throws does so after the others had their turn.
 */
export async function runRound(context: Context, signal: AbortSignal): Promise<Round> {
  const { quota } = context;
  const opened = await quota.open();
  await quota.catchUp(opened);
  const snapshot = await context.store.snapshot();
  if (snapshot.quotaEpoch > opened) quota.lost(opened, "the ledger's epoch has moved on");
  const quotaEpoch = await quota.open();
  const startedMs = context.clock.monotonicMs();
  const decided = plan(snapshot, context.clock.nowMs());
  context.onPlanned?.({ planMs: context.clock.monotonicMs() - startedMs });
  const { recorded, refusals, exhausted, failures } = await admitAll(
    context,
    { snapshot, quotaEpoch, decided },
    signal,
  );
  if (!signal.aborted && failures.length < FAILURES_MAX) {
    await tellRefusals(context, [...decided.refusals, ...refusals]).catch(
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
 * Names a grant so that no two are alike: its job, its admission, its step, and the planner's epoch. The first step is 1; a step of growth
 * is the version of the job that it was planned from, since a gang may come to the same size more than once.
 */
export function tokenOf(planned: PlannedAdmission, plannerEpoch: number): string {
  const step = planned.kind === "admit" ? 1 : planned.jobVersion;
  return `job/${planned.jobUid}/admission/${planned.admission}/step/${step}/${plannerEpoch}`;
}

type Turn = { readonly snapshot: PlanSnapshot; readonly quotaEpoch: number; readonly decided: Plan };

type Came = {
  readonly recorded: readonly PlannedAdmission[];
  /** Whom the plan had room for and the counters did not. */
  readonly refusals: readonly Refusal[];
  readonly exhausted: number;
  readonly failures: unknown[];
};

/**
 * Admits in the plan's order, and takes the place in the line in between for whom it is. One that fails holds up nobody but those behind it in
 * a strict queue; its room stays reserved.
 */
async function admitAll(context: Context, turn: Turn, signal: AbortSignal): Promise<Came> {
  const { snapshot, quotaEpoch, decided } = turn;
  const jobs = new Map([...snapshot.waiting, ...snapshot.admitted].map((job) => [job.uid, job]));
  const wanted = (planned: PlannedAdmission) =>
    wantedFor(planned, { plannerEpoch: context.plannerEpoch, epoch: quotaEpoch, job: jobs.get(planned.jobUid) });
  const missed = new Missed(snapshot);
  const came = {
    recorded: [] as PlannedAdmission[],
    refusals: [] as Refusal[],
    exhausted: 0,
    failures: [] as unknown[],
  };
  const fails = (error: unknown) => void came.failures.push(error);
  const note = (planned: PlannedAdmission, outcome: Admitted | "heldUp" | undefined) => {
    if (outcome === "recorded") {
      came.recorded.push(planned);
      context.wakeJob(planned.jobUid);
      return;
    }
    missed.add(planned);
    if (typeof outcome !== "object") return;
    came.exhausted += 1;
    const job = jobs.get(planned.jobUid);
    if (job !== undefined && planned.kind === "admit") came.refusals.push(refuseForTokens(job, outcome));
  };
  await context.line.begin(decided, quotaEpoch).catch(fails);
  for (const { planned, boards } of inOrder(decided)) {
    if (signal.aborted || came.failures.length >= FAILURES_MAX) break;
    if (!boards) await context.line.stand(wanted(planned)).catch(fails);
    else if (missed.holdsUp(planned)) note(planned, "heldUp");
    else note(planned, (await admit(context, wanted(missed.renumber(planned))).catch(fails)) ?? undefined);
  }
  return came;
}

/** The admissions of a plan, with the gang that stands in the line at its place among them. */
function inOrder({
  admissions,
  inLine,
}: Plan): readonly { readonly planned: PlannedAdmission; readonly boards: boolean }[] {
  const turns = admissions.map((planned) => ({ planned, boards: true }));
  return inLine === null ? turns : turns.toSpliced(inLine.after, 0, { planned: inLine.planned, boards: false });
}

/** The planned admissions of a round that did not come about, and what that means for later ones. */
class Missed {
  readonly #strictQueueOf: (jobUid: string) => string | null;
  readonly #strictQueues = new Set<string>();
  readonly #byCluster = new Map<string, number>();

  constructor(snapshot: PlanSnapshot) {
    this.#strictQueueOf = strictQueues(snapshot);
  }

  add(planned: PlannedAdmission): void {
    this.#byCluster.set(planned.cluster, (this.#byCluster.get(planned.cluster) ?? 0) + 1);
    const queue = this.#strictQueueOf(planned.jobUid);
    if (queue !== null) this.#strictQueues.add(queue);
  }

  /** True if a gang stands behind one of them in a strict queue. */
  holdsUp(planned: PlannedAdmission): boolean {
    return this.#strictQueues.has(this.#strictQueueOf(planned.jobUid) ?? "");
  }

  /** The plan counted on all of them: each would have raised its cluster's counter. */
  renumber(planned: PlannedAdmission): PlannedAdmission {
    const fewer = this.#byCluster.get(planned.cluster) ?? 0;
    return { ...planned, admissionCounter: planned.admissionCounter - fewer };
  }
}

type Admitted = AdmitOutcome | "notGranted" | Extract<Reserved, { readonly kind: "exhausted" }>;

async function admit(context: Context, wanted: Wanted): Promise<Admitted> {
  const { clock, quota, line, plannerEpoch } = context;
  const { planned, lines, epoch } = wanted;
  const reserved = lines.length === 0 ? null : await reserve(quota, line, wanted);
  if (reserved?.kind === "exhausted") return reserved;
  if (reserved?.kind === "notGranted") return "notGranted";
  const fence = reserved?.fence ?? null;
  // Where its answer is lost it may have been recorded: the grant stays as it is until the ledger says, here or to the reaper.
  const record = { planned, lines, fence, quotaEpoch: epoch, plannerEpoch, nowMs: clock.nowMs() };
  const outcome = await context.store.recordAdmission(record);
  if (fence === null) return outcome;
  if (outcome !== "recorded") await quota.giveBack(epoch, lines);
  else quota.confirm(epoch, refsOf(lines, fence));
  return outcome;
}

/** What is asked of the counters for a gang of the plan. */
function wantedFor(
  planned: PlannedAdmission,
  of: { readonly plannerEpoch: number; readonly epoch: number; readonly job: Job | undefined },
): Wanted {
  const token = tokenOf(planned, of.plannerEpoch);
  return {
    planned,
    epoch: of.epoch,
    holder: { kind: "admission", jobUid: planned.jobUid, admission: planned.admission },
    lines: planned.lines.map((line) => ({ ...line, token, caps: NO_CAPS, leaseMs: null })),
    priority: of.job?.spec.priority ?? 0,
    sinceMs: of.job?.createTimeMs ?? 0,
  };
}

function refsOf(lines: readonly AllocationLine[], fence: bigint): readonly LineRef[] {
  return lines.map(({ pool, token }) => ({ pool, token, fence }));
}

async function tellRefusals(context: Context, refusals: readonly Refusal[]): Promise<void> {
  const texts = new Map(refusals.map((refusal) => [refusal.jobUid, JSON.stringify(refusal)]));
  const news = refusals.filter((refusal) => context.told.get(refusal.jobUid) !== texts.get(refusal.jobUid));
  if (news.length > 0) {
    await context.store.recordRefusals(news, context.plannerEpoch, context.clock.nowMs());
  }
  context.told.clear();
  for (const [jobUid, text] of texts) context.told.set(jobUid, text);
}

function strictQueues(snapshot: PlanSnapshot): (jobUid: string) => string | null {
  const strict = new Set(
    snapshot.queues.filter((queue) => queue.strategy === "STRICT_FIFO").map((queue) => queue.name),
  );
  const queues = new Map(snapshot.waiting.map((job) => [job.uid, job.spec.runPolicy.schedulingPolicy.queue]));
  return (jobUid) => {
    const queue = queues.get(jobUid);
    return queue !== undefined && strict.has(queue) ? queue : null;
  };
}

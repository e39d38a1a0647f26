/**
 * One step of one job: decide, record, then act. It serves users whose jobs must survive a crash at any point: a
 * cluster is changed only after the decision is durable.
 */

import { type BucketLease, bucketOf } from "../core/job/bucket.ts";
import type { Job } from "../core/job/job.ts";
import { isTerminal, type SetAside } from "../core/job/status.ts";
import { hasFutureTimes } from "../core/reconcile/bound-times.ts";
import type { Decision, RecordOutcome } from "../core/reconcile/decision.ts";
import { setAside } from "../core/reconcile/hold-gang.ts";
import { sweep } from "../core/reconcile/reconcile.ts";
import { type Acted, carryOut, eventOf, hasFailed, isCreate } from "./carry-out.ts";
import { type DecisionContext, decideStep, givesBack } from "./decide-step.ts";
import type { JobMemory } from "./job-memory.ts";
import { learnRefusals } from "./learn-refusals.ts";
import { noteEvents, writeClusterEvents } from "./note-events.ts";
import type { WorkerPorts } from "./ports.ts";
import type { QuotaMemory } from "./quota-memory.ts";
import type { Suspects } from "./suspects.ts";

/** The settings, memory and leases that a step reads beside its ports. */
export type StepContext = DecisionContext & {
  readonly quotas: QuotaMemory;
  /** The lease under which jobs of a bucket may be recorded. Null: this worker does not hold the bucket. */
  readonly leaseOf: (bucket: number) => BucketLease | null;
  readonly onLeaseLost: (bucket: number) => void;
  readonly suspects: Suspects;
  /** Called before a step waits for a cluster. Steps of other clusters need not wait with it. */
  readonly onActing: (jobUid: string) => void;
  /** Called with a job that was set aside. */
  readonly onSetAside: (job: Job, setAside: SetAside) => void;
};

/**
 * How a step ended.
 * `settled`: nothing is left to do for this job until an event.
 * `again`: look again after `afterMs`, whatever the record says.
 * `unseen`: the job's clusters have not been listed yet, or a plugin cannot be called now.
 */
export type StepResult =
  | { readonly kind: "settled" | "waiting" | "notOurs" }
  | { readonly kind: "again"; readonly afterMs: number }
  | { readonly kind: "unseen" };

/** What is measured of a step. */
export type StepFacts = {
  readonly result: StepResult["kind"] | "failed";
  readonly tookMs: number;
  /** From the first wake, or the poll that found the job due, to the start of the step. */
  readonly lagMs: number;
};

/** How often a step tries again when others change the record, before it pauses. */
const STALE_MAX = 5;
const STALE_PAUSE_MS = 50;

type StepRequest = { readonly jobUid: string; readonly due: boolean };

/**
 * One step of one job: load, observe, claim, decide, record, act. `due`: its recorded time to look again has passed.
 */
export async function step(
  ports: WorkerPorts,
  context: StepContext,
  request: StepRequest,
  signal: AbortSignal,
): Promise<StepResult> {
  for (let tries = 0; tries < STALE_MAX && !signal.aborted; tries++) {
    const result = await attempt(ports, context, request, signal);
    if (result !== "stale") return result;
  }
  return { kind: "again", afterMs: STALE_PAUSE_MS };
}

async function attempt(
  ports: WorkerPorts,
  context: StepContext,
  { jobUid, due }: StepRequest,
  signal: AbortSignal,
): Promise<StepResult | "stale"> {
  const judged = await judgeSuspect(ports, context, jobUid, signal);
  if (judged !== null) return judged;
  const loaded = await ports.store.loadJob(jobUid);
  if (loaded === null) return sweepRemains(ports, context, jobUid, signal);
  const { job, bucket, placement } = loaded;
  // A machine that slept without knowing it has an old time until it asks. Newer ones would count as wrong.
  if (hasFutureTimes(job, ports.clock.nowMs())) await ports.member.look?.();
  const lease = context.leaseOf(bucket);
  if (lease === null) return { kind: "notOurs" };
  const decision = await decideStep(ports, context, { job, lease, placement }, signal);
  if (decision === null) return { kind: "unseen" };
  const decided = { job, decision, lease, due };
  const { traceStep } = ports;
  if (traceStep === undefined || !changesAnything(decision)) return apply(ports, context, decided, signal);
  return traceStep(job, () => apply(ports, context, decided, signal));
}

/** Sets a job aside if the watchdogs' notes blame it. Its templates are not read. Null: it is stepped as others are. */
async function judgeSuspect(
  ports: WorkerPorts,
  context: StepContext,
  jobUid: string,
  signal: AbortSignal,
): Promise<StepResult | "stale" | null> {
  const notes = context.suspects.notesOf(jobUid);
  if (notes.length === 0) return null;
  const loaded = await ports.store.loadBareJob(jobUid);
  if (loaded === null) return null;
  const { job, bucket } = loaded;
  const lease = context.leaseOf(bucket);
  if (lease === null) return { kind: "notOurs" };
  const decision = setAside(job, notes, ports.clock.nowMs());
  if (decision === null) return null;
  const result = await apply(ports, context, { job, decision, lease, due: false }, signal);
  const made = decision.record?.status.setAside;
  if (result === "stale" || result.kind === "notOurs" || made === undefined) return result;
  context.suspects.judged(jobUid);
  context.onSetAside(job, made);
  return result;
}

function changesAnything({ record, forget, actions }: Decision): boolean {
  return record !== null || forget || actions.length > 0;
}

type Decided = { readonly job: Job; readonly decision: Decision; readonly lease: BucketLease; readonly due: boolean };

/** Records a decision, and acts on it once it is durable. */
async function apply(
  ports: WorkerPorts,
  context: StepContext,
  decided: Decided,
  signal: AbortSignal,
): Promise<StepResult | "stale"> {
  const outcome = await record(ports, context, decided);
  if (outcome === "stale") return "stale";
  if (outcome === "leaseLost") {
    context.onLeaseLost(decided.lease.bucket);
    return { kind: "notOurs" };
  }
  const result = await act(ports, context, decided, signal);
  // An interrupted step is still to be done, so the recorded time stays.
  if (!signal.aborted) await moveRecheck(ports, context, decided);
  return result;
}

/** Makes a decision durable before any cluster is changed. A decision that changes nothing is not written. */
async function record(
  ports: WorkerPorts,
  { memory, failureLogs, placed }: StepContext,
  { job, decision, lease }: { readonly job: Job; readonly decision: Decision; readonly lease: BucketLease },
): Promise<RecordOutcome> {
  const { store, clock, wakePlanner } = ports;
  if (decision.record === null && !decision.forget) return "recorded";
  const outcome = await store.record(job, decision, lease, clock.nowMs());
  if (outcome !== "recorded") return outcome;
  if (decision.forget) {
    memory.forget(job.uid);
    placed.forget(job.uid);
    failureLogs?.forget(job.uid);
  } else memory.recorded(job.uid, decision.recheckAtMs);
  writeClusterEvents(ports, job, decision.record?.events ?? []);
  if (frees(job, decision)) wakePlanner();
  return outcome;
}

/** True if the record frees tokens or room, or puts the job back into its queue. */
function frees(job: Job, decision: Decision): boolean {
  const isMiss = decision.record?.status.cache?.state === "miss" && job.status.cache?.state !== "miss";
  const sentBack = decision.record?.status.phase === "WAITING" && job.status.phase !== "WAITING";
  return isMiss || sentBack || givesBack(job, decision);
}

/**
 * Changes the clusters, stores events about it, and remembers failures. Creates are held back for a while after a
 * failure.
 */
async function act(
  ports: WorkerPorts,
  context: StepContext,
  { job, decision }: { readonly job: Job; readonly decision: Decision },
  signal: AbortSignal,
): Promise<StepResult> {
  const { clock } = ports;
  const { memory } = context;
  const heldBack = memory.holdsBack(job.uid, clock.monotonicMs());
  const tried = heldBack ? decision.actions.filter((action) => !isCreate(action)) : decision.actions;
  const { wanted, held } = context.quotas.sort(tried, clock.monotonicMs());
  const actions = memory.expect(job.uid, wanted, clock.monotonicMs());
  if (actions.length > 0) context.onActing(job.uid);
  const acted = await carryOut(actAfterLogs(ports, context), actions, signal);
  if (acted.length > 0) ports.onActed?.(job, acted);
  context.placed.noteMade(job.uid, acted);
  const happened = new Set(acted.filter((one) => !hasFailed(one)).map(({ action }) => action));
  memory.expectNot(
    job.uid,
    actions.filter((action) => !happened.has(action)),
  );
  if (signal.aborted) return { kind: "waiting" };
  await noteEvents(ports, context.memory, { job, events: acted.flatMap((one) => eventOf(one) ?? []) });
  const learned = learnRefusals(context, job, { acted, held }, clock.monotonicMs());
  if (learned.kind === "refused") return { kind: "again", afterMs: 0 };
  if (learned.kind === "failed") {
    return tryAgain(memory, job.uid, { acted, waitMs: learned.waitMs, monotonicMs: clock.monotonicMs() });
  }
  if (!heldBack) memory.succeeded(job.uid);
  if (learned.kind === "held") return { kind: "again", afterMs: learned.waitMs };
  const settled = decision.record === null && decision.actions.length === 0 && decision.recheckAtMs === null;
  if (settled && isTerminal(job.status)) {
    memory.forget(job.uid);
    context.placed.forget(job.uid);
  }
  return { kind: settled ? "settled" : "waiting" };
}

/** Acts. A pod is deleted once the last lines of its failed containers are kept, or their time is over. */
function actAfterLogs({ clusters }: WorkerPorts, { failureLogs }: StepContext): WorkerPorts["clusters"]["act"] {
  if (failureLogs === null) return clusters.act;
  return async (action, signal) => {
    await failureLogs.before(action, signal);
    return clusters.act(action, signal);
  };
}

function tryAgain(
  memory: JobMemory,
  jobUid: string,
  of: { readonly acted: readonly Acted[]; readonly waitMs?: number; readonly monotonicMs: number },
): StepResult {
  const progress = of.acted.some(({ outcome }) => outcome.kind === "done");
  return { kind: "again", afterMs: Math.max(of.waitMs ?? 0, memory.failed(jobUid, of.monotonicMs, { progress })) };
}

/** Writes when to look again, unless the record says so already. */
async function moveRecheck(
  { store, clock }: WorkerPorts,
  { memory }: StepContext,
  { job, decision, lease, due }: Decided,
): Promise<void> {
  if (decision.record !== null || decision.forget) return;
  if (!due && !memory.mustWriteRecheck(job.uid, decision.recheckAtMs, clock.nowMs())) return;
  await store.recheckAt(job.uid, decision.recheckAtMs, lease, job.version);
  memory.recorded(job.uid, decision.recheckAtMs);
}

/** Deletes all objects that are seen of a job without a record, if its bucket is ours. */
async function sweepRemains(
  { clusters, clock }: WorkerPorts,
  { memory, leaseOf }: StepContext,
  jobUid: string,
  signal: AbortSignal,
): Promise<StepResult> {
  if (leaseOf(bucketOf(jobUid)) === null) return { kind: "notOurs" };
  const namespace = clusters.namespaceOf(jobUid);
  const observed = clusters.observe({ uid: jobUid, clusters: [] });
  if (namespace === null || observed === null) {
    memory.forget(jobUid);
    return { kind: "settled" };
  }
  const acted = await carryOut(clusters.act, sweep(observed, { uid: jobUid, namespace }), signal);
  if (acted.some(hasFailed)) return tryAgain(memory, jobUid, { acted, monotonicMs: clock.monotonicMs() });
  memory.forget(jobUid);
  return { kind: "settled" };
}

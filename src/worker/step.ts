import { bucketOf } from "../core/job/bucket.ts";
import type { Job } from "../core/job/job.ts";
import { isTerminal } from "../core/job/status.ts";
import type { Decision } from "../core/reconcile/decision.ts";
import type { ReconcileConfig } from "../core/reconcile/draft.ts";
import { reconcile, sweep } from "../core/reconcile/reconcile.ts";
import { type Acted, carryOut, eventOf, hasFailed, isCreate } from "./carry-out.ts";
import type { JobMemory } from "./job-memory.ts";
import type { BucketLease, RecordOutcome, WorkerPorts } from "./ports.ts";

/** What a step works with beside its ports. */
export type StepContext = {
  readonly config: ReconcileConfig;
  readonly memory: JobMemory;
  /** The lease under which a bucket's jobs may be recorded; null for a bucket that is not ours. */
  readonly leaseOf: (bucket: number) => BucketLease | null;
  readonly onLeaseLost: (bucket: number) => void;
};

/**
 * How a step ended.
 * `settled`: nothing is left to do for this job until something is heard of it.
 * `again`: look again after so long, besides what the record says; `unseen` where its clusters have not been listed yet.
 */
export type StepResult =
  | { readonly kind: "settled" | "waiting" | "notOurs" }
  | { readonly kind: "again"; readonly afterMs: number }
  | { readonly kind: "unseen" };

/** A record that others keep changing is left alone for a moment after so many tries. */
const STALE_MAX = 5;
const STALE_PAUSE_MS = 50;

type Look = { readonly jobUid: string; readonly due: boolean };

/** One step of one job: load, observe, decide, record, act. `due`: the recorded time to look again has come. */
export async function step(
  ports: WorkerPorts,
  context: StepContext,
  look: Look,
  signal: AbortSignal,
): Promise<StepResult> {
  for (let tries = 0; tries < STALE_MAX && !signal.aborted; tries++) {
    const result = await attempt(ports, context, look, signal);
    if (result !== "stale") return result;
  }
  return { kind: "again", afterMs: STALE_PAUSE_MS };
}

async function attempt(
  ports: WorkerPorts,
  context: StepContext,
  { jobUid, due }: Look,
  signal: AbortSignal,
): Promise<StepResult | "stale"> {
  const loaded = await ports.store.loadJob(jobUid);
  if (loaded === null) return sweepRemains(ports, context, jobUid, signal);
  const { job, bucket } = loaded;
  const lease = context.leaseOf(bucket);
  if (lease === null) return { kind: "notOurs" };
  const decision = await decide(ports, context, job, signal);
  if (decision === null) return { kind: "unseen" };
  const decided = { job, decision, lease, due };
  const { traceStep } = ports;
  if (traceStep === undefined || !changesAnything(decision)) return apply(ports, context, decided, signal);
  return traceStep(job, () => apply(ports, context, decided, signal));
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
  // What was cut short is still to be done: the record keeps saying so.
  if (!signal.aborted) await moveRecheck(ports, context, decided);
  return result;
}

/**
 * Decides by what was heard of the clusters. What gives tokens back, or says that nothing is left, is decided again by what the clusters
 * themselves say: a watch that lags may not have told of a pod yet, and the gang may board elsewhere then. Null where that cannot be known.
 */
async function decide(
  { clusters, clock }: WorkerPorts,
  { config }: StepContext,
  job: Job,
  signal: AbortSignal,
): Promise<Decision | null> {
  const where = { uid: job.uid, clusters: [...new Set(job.admissions.map(({ cluster }) => cluster))] };
  const heard = clusters.observe(where);
  if (heard === null) return null;
  const decision = reconcile(job, heard, clock.nowMs(), config);
  if (!givesBack(job, decision)) return decision;
  const seen = await clusters.look(where, signal);
  return seen === null ? null : reconcile(job, seen, clock.nowMs(), config);
}

/** Makes a decision durable before anything is touched; a decision that changes nothing is not written. */
async function record(
  { store, clock, wakePlanner }: WorkerPorts,
  { memory }: StepContext,
  { job, decision, lease }: { readonly job: Job; readonly decision: Decision; readonly lease: BucketLease },
): Promise<RecordOutcome> {
  if (decision.record === null && !decision.forget) return "recorded";
  const outcome = await store.record(job, decision, lease, clock.nowMs());
  if (outcome !== "recorded") return outcome;
  if (decision.forget) memory.forget(job.uid);
  else memory.recorded(job.uid, decision.recheckAtMs);
  if (frees(job, decision)) wakePlanner();
  return outcome;
}

/** True if the record frees anything that others may wait for, or sends the job back to the line. */
function frees(job: Job, decision: Decision): boolean {
  const sentBack = decision.record?.status.phase === "WAITING" && job.status.phase !== "WAITING";
  return sentBack || givesBack(job, decision);
}

/** True if the record gives tokens back, or notes that nothing is left of an admission. */
function givesBack(job: Job, decision: Decision): boolean {
  const was = new Map(job.admissions.map((admission) => [admission.number, admission]));
  return (decision.record?.admissions ?? []).some((admission) => {
    const before = was.get(admission.number);
    const released = admission.tokensReleasedMs !== null && before?.tokensReleasedMs === null;
    return released || (admission.goneMs !== null && before?.goneMs === null);
  });
}

/**
 * Changes the clusters, tells users what was done, and remembers failures. Creates are held back while a failure is
 * fresh.
 */
async function act(
  { clusters, clock, store }: WorkerPorts,
  { memory }: StepContext,
  { job, decision }: { readonly job: Job; readonly decision: Decision },
  signal: AbortSignal,
): Promise<StepResult> {
  const heldBack = memory.holdsBack(job.uid, clock.monotonicMs());
  const actions = heldBack ? decision.actions.filter((action) => !isCreate(action)) : decision.actions;
  const acted = await carryOut(clusters.act, actions, signal);
  if (signal.aborted) return { kind: "waiting" };
  const events = acted
    .flatMap((one) => eventOf(one) ?? [])
    .filter(
      ({ type, reason, message }) =>
        type === "Normal" || memory.mayNote(job.uid, `${reason} ${message}`, clock.monotonicMs()),
    );
  if (events.length > 0) await store.note(job, events, clock.nowMs());
  if (acted.some(hasFailed)) return tryAgain(memory, job.uid, { acted, monotonicMs: clock.monotonicMs() });
  if (!heldBack) memory.succeeded(job.uid);
  const settled = decision.record === null && decision.actions.length === 0 && decision.recheckAtMs === null;
  if (settled && isTerminal(job.status)) memory.forget(job.uid);
  return { kind: settled ? "settled" : "waiting" };
}

function tryAgain(
  memory: JobMemory,
  jobUid: string,
  { acted, monotonicMs }: { readonly acted: readonly Acted[]; readonly monotonicMs: number },
): StepResult {
  const progress = acted.some(({ outcome }) => outcome.kind === "done");
  return { kind: "again", afterMs: memory.failed(jobUid, monotonicMs, { progress }) };
}

/** Writes when to look again where the record does not say so already. */
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

/** Deletes whatever is seen of a job that has no record, if its bucket is ours. */
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

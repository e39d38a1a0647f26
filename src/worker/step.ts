import { bucketOf } from "../core/job/bucket.ts";
import { awaitsResult } from "../core/job/cached.ts";
import type { Job } from "../core/job/job.ts";
import { anchorName } from "../core/job/names.ts";
import { memberCount } from "../core/job/roles.ts";
import { isTerminal } from "../core/job/status.ts";
import { isService } from "../core/kinds/kind.ts";
import { podName } from "../core/kinds/pod-name.ts";
import { kindOf } from "../core/kinds/registry.ts";
import type { Decision, JobEvent, Observed } from "../core/reconcile/decision.ts";
import type { ReconcileConfig } from "../core/reconcile/draft.ts";
import { reconcileGuarded, sweep } from "../core/reconcile/reconcile.ts";
import { decideCached } from "./cached.ts";
import { type Acted, carryOut, eventOf, hasFailed, isCreate } from "./carry-out.ts";
import { claimAll } from "./claim.ts";
import type { JobMemory } from "./job-memory.ts";
import { learnRefusals } from "./learn-refusals.ts";
import type { BucketLease, JobPlace, RecordOutcome, WorkerPorts } from "./ports.ts";
import type { QuotaMemory } from "./quota-memory.ts";
import { decideService, type PluginCalls } from "./service.ts";

/** What a step works with beside its ports. */
export type StepContext = {
  readonly config: ReconcileConfig;
  readonly memory: JobMemory;
  readonly quotas: QuotaMemory;
  readonly calls: PluginCalls;
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

/** One step of one job: load, observe, claim, decide, record, act. `due`: the recorded time to look again has come. */
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
  const decision = await decideAny(ports, context, { job, lease }, signal);
  if (decision === null) return { kind: "unseen" };
  const decided = { job, decision, lease, due };
  const { traceStep } = ports;
  if (traceStep === undefined || !changesAnything(decision)) return apply(ports, context, decided, signal);
  return traceStep(job, () => apply(ports, context, decided, signal));
}

async function decideAny(
  ports: WorkerPorts,
  context: StepContext,
  { job, lease }: { readonly job: Job; readonly lease: BucketLease },
  signal: AbortSignal,
): Promise<Decision | null> {
  if (awaitsResult(job) && isClear(job)) return decideCached(ports, context, job, signal);
  if (isService(kindOf(job.spec.kind))) return decideService(ports, context, { job, lease }, signal);
  return decide(ports, context, job, signal);
}

/** True where nothing of an earlier admission is to be seen to before. */
function isClear({ admissions }: Job): boolean {
  return admissions.every(({ goneMs }) => goneMs !== null);
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
  ports: WorkerPorts,
  context: StepContext,
  job: Job,
  signal: AbortSignal,
): Promise<Decision | null> {
  const where = placeOf(job);
  const claimAndDecide = async (observed: Observed) => {
    const claimed = await claimAll({ clusters: ports.clusters, config: context.config }, job, observed, signal);
    await note(ports, context, { job, events: claimed.events });
    const refused = context.memory.refusedPod(job.uid);
    return reconcileGuarded(job, claimed.observed, ports.clock.nowMs(), context.config, refused);
  };
  const heard = ports.clusters.observe(where);
  if (heard === null) return null;
  const decision = await claimAndDecide(heard);
  if (!givesBack(job, decision)) return decision;
  const seen = await ports.clusters.look(where, signal);
  return seen === null ? null : claimAndDecide(seen);
}

function placeOf(job: Job): JobPlace {
  const clusters = [...new Set(job.admissions.map(({ cluster }) => cluster))];
  const live = job.admissions.find(({ state }) => state === "live");
  const pods = Object.entries(live?.members ?? {}).flatMap(([role, members]) =>
    Array.from({ length: members }, (_, index) => podName({ job, role, index })),
  );
  return { uid: job.uid, clusters, names: { namespace: job.namespace, pods } };
}

/** Tells of events in the cluster that they are about, where that is wanted. */
function tellCluster({ tellCluster: tell }: WorkerPorts, job: Job, events: readonly JobEvent[]): void {
  const admission = job.admissions.at(-1);
  if (tell === undefined || admission === undefined || admission.cluster === "" || events.length === 0) return;
  const anchor = anchorName(job.name, admission.number);
  tell({ cluster: admission.cluster, namespace: job.namespace, anchor, jobUid: job.uid, events });
}

/** Tells users what was done and what failed; the same complaint only now and then. */
async function note(
  ports: WorkerPorts,
  { memory }: StepContext,
  { job, events }: { readonly job: Job; readonly events: readonly JobEvent[] },
): Promise<void> {
  const { store, clock } = ports;
  const told = events.filter(
    ({ type, reason, message }) =>
      type === "Normal" || memory.mayNote(job.uid, `${reason} ${message}`, clock.monotonicMs()),
  );
  if (told.length === 0) return;
  await store.note(job, told, clock.nowMs());
  tellCluster(ports, job, told);
}

/** Makes a decision durable before anything is touched; a decision that changes nothing is not written. */
async function record(
  ports: WorkerPorts,
  { memory }: StepContext,
  { job, decision, lease }: { readonly job: Job; readonly decision: Decision; readonly lease: BucketLease },
): Promise<RecordOutcome> {
  const { store, clock, wakePlanner } = ports;
  if (decision.record === null && !decision.forget) return "recorded";
  const outcome = await store.record(job, decision, lease, clock.nowMs());
  if (outcome !== "recorded") return outcome;
  if (decision.forget) memory.forget(job.uid);
  else memory.recorded(job.uid, decision.recheckAtMs);
  tellCluster(ports, job, decision.record?.events ?? []);
  if (frees(job, decision)) wakePlanner();
  return outcome;
}

/** True if the record frees anything that others may wait for, or sends the job back to the line. */
function frees(job: Job, decision: Decision): boolean {
  const isMiss = decision.record?.status.cache?.state === "miss" && job.status.cache?.state !== "miss";
  const sentBack = decision.record?.status.phase === "WAITING" && job.status.phase !== "WAITING";
  return isMiss || sentBack || givesBack(job, decision);
}

/** True if the record gives tokens back, or notes that nothing is left of an admission. */
function givesBack(job: Job, decision: Decision): boolean {
  const was = new Map(job.admissions.map((admission) => [admission.number, admission]));
  return (decision.record?.admissions ?? []).some((admission) => {
    const before = was.get(admission.number);
    const released = admission.tokensReleasedMs !== null && before?.tokensReleasedMs === null;
    const fewer = before !== undefined && memberCount(admission.members) < memberCount(before.members);
    return released || fewer || (admission.goneMs !== null && before?.goneMs === null);
  });
}

/**
 * Changes the clusters, tells users what was done, and remembers failures. Creates are held back while a failure is
 * fresh.
 */
async function act(
  ports: WorkerPorts,
  context: StepContext,
  { job, decision }: { readonly job: Job; readonly decision: Decision },
  signal: AbortSignal,
): Promise<StepResult> {
  const { clusters, clock } = ports;
  const { memory } = context;
  const heldBack = memory.holdsBack(job.uid, clock.monotonicMs());
  const tried = heldBack ? decision.actions.filter((action) => !isCreate(action)) : decision.actions;
  const wanted = tried.filter((action) => context.quotas.mayAsk(action, clock.monotonicMs()));
  const actions = memory.expect(job.uid, wanted, clock.monotonicMs());
  const acted = await carryOut(clusters.act, actions, signal);
  if (acted.length > 0) ports.onActed?.(job, acted);
  const happened = new Set(acted.filter((one) => !hasFailed(one)).map(({ action }) => action));
  memory.expectNot(
    job.uid,
    actions.filter((action) => !happened.has(action)),
  );
  if (signal.aborted) return { kind: "waiting" };
  await note(ports, context, { job, events: acted.flatMap((one) => eventOf(one) ?? []) });
  const learned = learnRefusals(
    context,
    job,
    { acted, held: tried.filter((action) => !wanted.includes(action)) },
    clock.monotonicMs(),
  );
  if (learned.kind === "refused") return { kind: "again", afterMs: 0 };
  if (learned.kind === "failed") {
    return tryAgain(memory, job.uid, { acted, waitMs: learned.waitMs, monotonicMs: clock.monotonicMs() });
  }
  if (!heldBack) memory.succeeded(job.uid);
  if (learned.kind === "held") return { kind: "again", afterMs: learned.waitMs };
  const settled = decision.record === null && decision.actions.length === 0 && decision.recheckAtMs === null;
  if (settled && isTerminal(job.status)) memory.forget(job.uid);
  return { kind: settled ? "settled" : "waiting" };
}

function tryAgain(
  memory: JobMemory,
  jobUid: string,
  of: { readonly acted: readonly Acted[]; readonly waitMs?: number; readonly monotonicMs: number },
): StepResult {
  const progress = of.acted.some(({ outcome }) => outcome.kind === "done");
  return { kind: "again", afterMs: Math.max(of.waitMs ?? 0, memory.failed(jobUid, of.monotonicMs, { progress })) };
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

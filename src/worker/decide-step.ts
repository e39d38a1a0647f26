import type { Section } from "../core/blame/watch-sections.ts";
import { holdsForFewer } from "../core/job/admission-changes.ts";
import type { BucketLease } from "../core/job/bucket.ts";
import { awaitsResult, type Job, liveAdmission } from "../core/job/job.ts";
import type { Placement } from "../core/job/placement/placement.ts";
import { isSetAside } from "../core/job/set-aside.ts";
import { isService } from "../core/kinds/kind.ts";
import { podName } from "../core/kinds/pod-name.ts";
import { kindOfJob, OWN_ENTRY, type Registry } from "../core/kinds/registry.ts";
import type { Decision } from "../core/reconcile/decision.ts";
import type { ReconcileConfig } from "../core/reconcile/decision-draft.ts";
import type { JobToObserve, Observed } from "../core/reconcile/observed.ts";
import { applyCacheLookup, lookUpCache } from "../core/reconcile/plugins/cached-result.ts";
import { failedRuns } from "../core/reconcile/problems/failed-runs.ts";
import { reconcileGuarded } from "../core/reconcile/reconcile.ts";
import type { ArrivedPods } from "./arrived-pods.ts";
import { claimAll } from "./claim.ts";
import type { FailureLogs } from "./failure-logs.ts";
import type { JobMemory } from "./job-memory.ts";
import { noteEvents } from "./note-events.ts";
import { decidePluginJob, type PluginCalls } from "./plugin-calls.ts";
import type { WorkerPorts } from "./ports.ts";
import type { SeenTimes } from "./seen-times.ts";
import type { SlowPlugins } from "./slow-plugins.ts";
import { timedSection } from "./timed-section.ts";

/** The settings, the memory and the plugin calls of a worker, which its decisions read. */
export type DecisionContext = {
  readonly config: ReconcileConfig;
  readonly memory: JobMemory;
  readonly seen: SeenTimes;
  readonly placed: ArrivedPods;
  readonly calls: PluginCalls;
  readonly slow: SlowPlugins;
  /** Null: no lines of failed containers are kept. */
  readonly failureLogs: FailureLogs | null;
  /** Called with a job whose code has run for so long without a pause. */
  readonly onRan: (jobUid: string, tookMs: number) => void;
};

/** A job, the lease of its bucket, and the planned nodes of its live admission, if it has some. */
type JobToStep = { readonly job: Job; readonly lease: BucketLease; readonly placement: Placement | null };

/** Decides the next step of a job of any kind. Null: it cannot be decided now; try again later. */
export async function decideStep(
  ports: WorkerPorts,
  context: DecisionContext,
  { job, lease, placement }: JobToStep,
  signal: AbortSignal,
): Promise<Decision | null> {
  const plugin = pluginOf(job, context.config.kinds);
  if (plugin !== null && !isSetAside(job) && context.slow.waits(plugin, ports.clock.monotonicMs())) return null;
  if (awaitsResult(job) && isClear(job)) return decideCached(ports, context, job, signal);
  if (isService(context.config.kinds.kindOf(job.spec.kind)))
    return decidePluginJob(ports, context, { job, lease }, signal);
  return decideGang(ports, context, { job, placement }, signal);
}

/** The plugin that brings a job's kind. Null: Gangway does. */
export function pluginOf({ spec }: Job, kinds: Registry): string | null {
  const entry = kinds.entryOf(spec.kind);
  return entry === undefined || entry === OWN_ENTRY ? null : entry.id;
}

/** The code that a step runs for a job. That of a job that is set aside is Gangway's own. */
function sectionOf(job: Job, kinds: Registry): Section {
  const plugin = isSetAside(job) ? null : pluginOf(job, kinds);
  return { jobUid: job.uid, of: plugin === null ? "step" : "plugin", name: plugin ?? "" };
}

/** True if nothing is left of earlier admissions, so that no clean-up is due. */
function isClear({ admissions }: Job): boolean {
  return admissions.every(({ goneMs }) => goneMs !== null);
}

/**
 * Decides whether a waiting job reuses the result of another job. A plugin may forbid that for its kind. If the plugin
 * cannot be loaded, the job runs, and its first call shows why.
 */
async function decideCached(
  { clock, store }: Pick<WorkerPorts, "clock" | "store">,
  { config, calls }: Pick<DecisionContext, "config" | "calls">,
  job: Job,
  signal: AbortSignal,
): Promise<Decision | null> {
  const { kind } = job.spec;
  const properties = isService(config.kinds.kindOf(kind)) ? await calls.propertiesOf(kind, signal) : {};
  if (signal.aborted) return null;
  const others = properties === null || properties.disableCaching === true ? [] : await store.findAlike(job);
  return applyCacheLookup(job, lookUpCache(job, others), { nowMs: clock.nowMs(), config });
}

/**
 * Decides from the objects that the watches have reported. A decision that releases tokens, or says that nothing is
 * left, is made again from a fresh list of the clusters: a watch that lags may not have reported a pod yet, and the
 * gang may be admitted elsewhere afterwards. Null if the state of a cluster cannot be known.
 */
async function decideGang(
  ports: WorkerPorts,
  context: DecisionContext,
  { job, placement }: Pick<JobToStep, "job" | "placement">,
  signal: AbortSignal,
): Promise<Decision | null> {
  const where = whereToLook(job, context.config.kinds);
  const claimAndDecide = async (observed: Observed) => {
    const claimed = await claimAll({ clusters: ports.clusters, config: context.config }, job, observed, signal);
    await noteEvents(ports, context.memory, { job, events: claimed.events });
    const refused = context.memory.refusedCreate(job.uid);
    const nowMs = ports.clock.nowMs();
    const seen = context.seen.bound(claimed.observed, job, nowMs);
    keepFailureLogs(context, job, { seen, nowMs }, signal);
    context.placed.see(job, seen, placement);
    const decide = () => reconcileGuarded(job, seen, nowMs, context.config, { refused, placement });
    return timedSection(ports, context, sectionOf(job, context.config.kinds), decide);
  };
  const watched = ports.clusters.observe(where);
  if (watched === null) return null;
  const decision = await claimAndDecide(watched);
  if (!givesBack(job, decision)) return decision;
  const listed = await ports.clusters.listJob(where, signal);
  return listed === null ? null : claimAndDecide(withLost(listed, watched));
}

/** Begins to read the last lines of containers that have failed. A decision does not wait for them. */
function keepFailureLogs(
  { failureLogs, config }: DecisionContext,
  job: Job,
  { seen, nowMs }: { readonly seen: Observed; readonly nowMs: number },
  signal: AbortSignal,
): void {
  failureLogs?.see(job, () => failedRuns({ job, kind: kindOfJob(config.kinds, job), nowMs, config }, seen), signal);
}

/** A list shows no pods that are gone. How these ended is known from the watches alone. */
function withLost(listed: Observed, watched: Observed): Observed {
  return listed.map((one) => {
    const lost = watched.find(({ cluster }) => cluster === one.cluster)?.lost;
    return lost === undefined ? one : { ...one, lost };
  });
}

/**
 * Only clusters that may hold something of the job must have been listed. The others may have been removed since, and
 * would never be.
 */
function whereToLook(job: Job, kinds: Registry): JobToObserve {
  const kind = kinds.kindOf(job.spec.kind);
  const left = job.admissions.filter(({ goneMs, tokensReleasedMs }) => goneMs === null || tokensReleasedMs === null);
  const clusters = [...new Set(left.flatMap(({ cluster }) => cluster ?? []))];
  const live = liveAdmission(job);
  const pods = Object.entries(live?.members ?? {}).flatMap(([role, members]) =>
    Array.from({ length: members }, (_, index) => podName({ job, kind, role, index })),
  );
  const { uid, namespace } = job;
  const { queue } = job.spec.runPolicy.schedulingPolicy;
  return { uid, of: { namespace, queue }, clusters, names: { namespace, pods } };
}

/** True if the record releases tokens, or notes that nothing is left of an admission. */
export function givesBack(job: Job, decision: Decision): boolean {
  const was = new Map(job.admissions.map((admission) => [admission.number, admission]));
  return (decision.record?.admissions ?? []).some((admission) => {
    const before = was.get(admission.number);
    const released = admission.tokensReleasedMs !== null && before?.tokensReleasedMs === null;
    return released || holdsForFewer(admission, before) || (admission.goneMs !== null && before?.goneMs === null);
  });
}

import type { Admission } from "../job/status.ts";
import { isTerminal } from "../job/status.ts";
import { GANG_SCHEDULERS } from "../pods/pod-group.ts";
import type { PodView } from "../pods/pod-view.ts";
import { anchoredMaps, belongsTo } from "./anchored.ts";
import type { Action, ObjectView, ObservedCluster } from "./decision.ts";
import { changeAdmission, type Draft, type Inputs, OUTSTANDING_MS } from "./draft.ts";
import { awaitGrace, readingOf } from "./judge.ts";

/** What may stay of an admission that is not live. */
type Keep = {
  readonly pod: (pod: PodView) => boolean;
  /** Whether services and anchor stay although no pod is seen: pods may be there that the record knows and the cache does not. */
  readonly others: boolean;
  /** Whether the PodGroup stays: no scheduler needs it once the gang is over, whatever the policy. */
  readonly group: boolean;
};

const NOTHING: Keep = { pod: () => false, others: false, group: false };

/** Everything of one admission that is seen in one cluster. */
type Remains = {
  readonly cluster: string;
  readonly number: number;
  readonly pods: readonly PodView[];
  readonly services: readonly ObjectView[];
  /** Config maps that the kind made. */
  readonly configMaps: readonly ObjectView[];
  readonly anchor: ObjectView | null;
  readonly groups: readonly ObjectView[];
  /** Of the groups; empty where the cluster has no gang scheduler. */
  readonly groupVersion: string;
};

/**
 * Deletes what no live admission owns: all of undone admissions and of ones that the record does not name, of the ended one what the
 * clean-pod policy says.
 */
export function cleanUp(draft: Draft, inputs: Inputs): void {
  for (const seen of inputs.observed) {
    for (const remains of remainsIn(seen, inputs.job.uid)) cleanRemains(draft, inputs, remains);
  }
}

/** Notes which admissions have given back their tokens' pods and of which nothing is left. */
export function settleAll(draft: Draft, inputs: Inputs): void {
  for (const admission of draft.admissions) {
    if (admission.state !== "live") settle(draft, inputs, admission);
  }
}

function cleanRemains(draft: Draft, inputs: Inputs, remains: Remains): void {
  const of = draft.admissions.find(({ number, cluster }) => number === remains.number && cluster === remains.cluster);
  if (of?.state === "live") return;
  const keep = of?.state === "ended" ? keepOf(draft, inputs, of) : NOTHING;
  const kept = remains.pods.filter((pod) => pod.phase === "Pending" && !pod.deleting && keep.pod(pod));
  awaitGrace(
    draft,
    kept.map((pod) => readingOf(pod, inputs)),
  );
  const actions = deletions(remains, keep, inputs.job.namespace);
  draft.actions.push(...actions);
  const waits = actions.length > 0 || remains.pods.some(({ deleting }) => deleting);
  if (waits) draft.recheckAtMs.push(inputs.nowMs + OUTSTANDING_MS);
}

/** Everything of the job that is seen in a cluster, by admission. */
export function remainsIn(seen: ObservedCluster, jobUid: string): readonly Remains[] {
  const pods = seen.pods.filter((pod) => pod.jobUid === jobUid);
  const { groups = [], scheduler } = seen.gang ?? {};
  const groupVersion = scheduler === undefined ? "" : GANG_SCHEDULERS[scheduler].apiVersion;
  const numbers = new Set([...pods, ...seen.services, ...seen.configMaps, ...groups].map(({ admission }) => admission));
  return [...numbers]
    .sort((a, b) => a - b)
    .map((number) => {
      const { anchor, parts: configMaps } = anchoredMaps(seen, number);
      return {
        cluster: seen.cluster,
        number,
        anchor,
        configMaps,
        pods: pods.filter((pod) => pod.admission === number && belongsTo(pod, anchor)),
        services: seen.services.filter((service) => service.admission === number && belongsTo(service, anchor)),
        groups: groups.filter((group) => group.admission === number && belongsTo(group, anchor)),
        groupVersion,
      };
    });
}

/** Deletes pods and the PodGroup, then services and config maps, then the anchor; what is being deleted already is left to Kubernetes. */
function deletions(remains: Remains, keep: Keep, namespace: string): readonly Action[] {
  const at = { cluster: remains.cluster, namespace };
  const gone =
    (kind: "deletePod" | "deleteService" | "deleteConfigMap" | "deleteAnchor") => (object: PodView | ObjectView) => {
      return { ...at, kind, name: object.name, uid: object.uid };
    };
  const { groupVersion: apiVersion } = remains;
  const groups = remains.groups
    .filter(({ deleting }) => !deleting && !keep.group)
    .map(({ name, uid }): Action => ({ ...at, kind: "deletePodGroup", name, uid, apiVersion }));
  const pods = remains.pods.filter((pod) => !pod.deleting && !keep.pod(pod)).map(gone("deletePod"));
  const doomed = [...pods, ...groups];
  const podStays = remains.pods.some((pod) => keep.pod(pod));
  if (podStays || keep.others) return doomed;
  const services = remains.services.filter(({ deleting }) => !deleting).map(gone("deleteService"));
  const configMaps = remains.configMaps.filter(({ deleting }) => !deleting).map(gone("deleteConfigMap"));
  const anchor = remains.anchor === null || remains.anchor.deleting ? [] : [gone("deleteAnchor")(remains.anchor)];
  return [...doomed, ...services, ...configMaps, ...anchor];
}

/** Deletes everything that is seen of a job whose record is gone. */
export function removeAll(
  seen: ObservedCluster,
  job: { readonly uid: string; readonly namespace: string },
): readonly Action[] {
  return remainsIn(seen, job.uid).flatMap((remains) => deletions(remains, NOTHING, job.namespace));
}

/**
 * What stays of an ended admission. A deleted job keeps nothing; a cancelled one no pod that still runs; else the clean-pod policy decides.
 * Policy Running deletes pods that are Running or Pending, no others; a pod that is stuck before its start never ends, so none keeps it. Where the tokens are released, no pod may run on: a late call made it.
 */
function keepOf(draft: Draft, inputs: Inputs, admission: Admission): Keep {
  const policy = inputs.job.spec.runPolicy.cleanPodPolicy;
  if (draft.deleteTimeMs !== null || policy === "All") return NOTHING;
  const cancelled = draft.status.phase === "CANCELLED";
  const counts = Object.values(draft.status.replicaStatuses);
  return {
    pod: (pod) => {
      if (pod.phase === "Succeeded" || pod.phase === "Failed") return true;
      if (cancelled || admission.tokensReleasedMs !== null) return false;
      if (isStuck(pod, inputs)) return false;
      return policy === "None" || pod.phase === "Unknown";
    },
    group: draft.stopped && !LIMITS.includes(draft.status.failure?.code ?? ""),
    others: (policy === "None" && !cancelled) || counts.some(({ succeeded, failed }) => succeeded + failed > 0),
  };
}

function isStuck(pod: PodView, inputs: Inputs): boolean {
  if (pod.phase !== "Pending") return false;
  const reading = readingOf(pod, inputs);
  return reading.kind === "failed" && reading.failure.cleanup;
}

/** A gang that has hit a limit is over for its scheduler in the same pass; one whose replicas have spoken in the next, as with Kubeflow. */
const LIMITS: readonly string[] = ["DeadlineExceeded", "BackoffLimitExceeded", "SystemBackoffLimitExceeded"];

/** Notes that an admission's pods hold nothing any more, and that nothing of it is left. */
function settle(draft: Draft, inputs: Inputs, admission: Admission): void {
  const seen = inputs.observed.find(({ cluster }) => cluster === admission.cluster);
  if (seen === undefined) return;
  const settledAtMs = (admission.belowMinSinceMs ?? Number.NEGATIVE_INFINITY) + OUTSTANDING_MS;
  const remains = remainsIn(seen, inputs.job.uid).find(({ number }) => number === admission.number);
  const released = releaseTimeMs(draft, inputs, { admission, settledAtMs, remains });
  const empty = remains === undefined || countOf(remains) === 0;
  const gone = released === null || !empty ? null : (admission.goneMs ?? inputs.nowMs);
  if (released === admission.tokensReleasedMs && gone === admission.goneMs) return;
  if (released !== admission.tokensReleasedMs) {
    const message = `Admission ${admission.number} on ${admission.cluster} has released its tokens.`;
    draft.events.push({ type: "Normal", reason: "TokensReleased", message });
  }
  if (draft.deleteTimeMs !== null) draft.recheckAtMs.push(inputs.nowMs);
  changeAdmission(draft, { ...admission, tokensReleasedMs: released, goneMs: gone });
}

function countOf({ pods, services, configMaps, groups, anchor }: Remains): number {
  return pods.length + services.length + configMaps.length + groups.length + (anchor === null ? 0 : 1);
}

/**
 * When the tokens were released, now if nothing holds them any more: every pod that is seen has ended, and none can be there unseen.
 * Never in the record that stops the admission, so that a terminal status is durable first.
 */
function releaseTimeMs(
  draft: Draft,
  { nowMs }: Inputs,
  of: { readonly admission: Admission; readonly settledAtMs: number; readonly remains: Remains | undefined },
): number | null {
  if (of.admission.tokensReleasedMs !== null) return of.admission.tokensReleasedMs;
  if (draft.stopped) return null;
  const { pods = [], anchor = null } = of.remains ?? {};
  if (!pods.every(({ phase }) => phase === "Succeeded" || phase === "Failed")) return null;
  // The gang may board elsewhere then: while the anchor is there, a late call could still make a pod that stays.
  if (of.admission.state === "undone" && anchor !== null) return null;
  if (nowMs >= of.settledAtMs) return nowMs;
  draft.recheckAtMs.push(of.settledAtMs);
  return null;
}

/** Ends a job's time to live: once it is over and clean-up has nothing left to do, the job is deleted as if its owner had. */
export function expire(draft: Draft, { job, nowMs }: Inputs): void {
  const ttlSeconds = job.spec.runPolicy.ttlSecondsAfterFinished;
  const completedMs = draft.status.completionTimeMs;
  if (ttlSeconds === null || completedMs === null || draft.deleteTimeMs !== null) return;
  if (draft.stopped || !isTerminal(draft.status)) return;
  const atMs = completedMs + ttlSeconds * 1000;
  if (nowMs < atMs) {
    draft.recheckAtMs.push(atMs);
  } else if (draft.actions.length === 0) {
    draft.deleteTimeMs = nowMs;
    draft.events.push({
      type: "Normal",
      reason: "TTLExpired",
      message: `${job.spec.kind} ${job.name} has outlived its time to live.`,
    });
    draft.recheckAtMs.push(nowMs);
  }
}

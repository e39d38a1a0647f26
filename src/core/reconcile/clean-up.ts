/**
 * Deletes what no live admission owns, and decides when tokens are released. It serves users whose clean-pod policy and
 * time to live must be honoured, and whose freed tokens others wait for.
 */
import { append } from "../../runtime/lists.ts";
import { cleanPodPolicyOf } from "../job/clean-pod-policy.ts";
import { LABEL } from "../job/labels.ts";
import type { Admission } from "../job/status.ts";
import { isTerminal } from "../job/status.ts";
import { hasEnded, type PodView } from "../pods/read/pod-view.ts";
import type { Action } from "./decision.ts";
import { changeAdmission, type Draft, type Inputs, OUTSTANDING_MS } from "./decision-draft.ts";
import { MAX_RUNTIME_EXCEEDED } from "./finish-job.ts";
import { awaitGrace, readingOf } from "./judge-pods.ts";
import { type Remains, remainsIn, remainsOf } from "./objects/remains.ts";
import type { ObjectView, ObservedCluster } from "./observed.ts";
import { problemNow, recordProblems } from "./problems/show-problems.ts";
import { abandonOverdue } from "./undo/lost-cluster.ts";

/** Which objects of an admission that is not live are kept. */
type Keep = {
  readonly pod: (pod: PodView) => boolean;
  /**
   * Whether services and anchor stay although no pod is seen: the record may know pods that the watches have not shown
   * yet.
   */
  readonly others: boolean;
  /** Whether services stay whose pod is not seen. A service goes with its pod. */
  readonly services: boolean;
  /** Whether the PodGroup stays. No scheduler needs it once the gang has ended, under any policy. */
  readonly group: boolean;
};

const NOTHING: Keep = { pod: () => false, others: false, services: false, group: false };

/**
 * Deletes objects that no live admission owns. Of an ended admission the clean-pod policy decides which are kept. All
 * objects of undone admissions, and of admissions that the record does not name, are deleted.
 */
export function cleanUp(draft: Draft, inputs: Inputs): void {
  for (const seen of inputs.observed) {
    for (const remains of remainsOf(seen, inputs)) cleanRemains(draft, inputs, remains);
  }
}

/** Notes which admissions no longer use their tokens, and of which admissions nothing is left. */
export function settleAll(draft: Draft, inputs: Inputs): void {
  for (const admission of draft.admissions) {
    if (admission.state !== "live") settle(draft, inputs, admission);
  }
}

function cleanRemains(draft: Draft, inputs: Inputs, remains: Remains): void {
  const of = remains.isRecorded ? draft.admissions.find(({ number }) => number === remains.number) : undefined;
  if (of?.state === "live") return;
  const keep = of?.state === "ended" ? keepOf(draft, inputs, of) : NOTHING;
  const kept = remains.pods.filter((pod) => pod.phase === "Pending" && !pod.deleting && keep.pod(pod));
  awaitGrace(
    draft,
    kept.map((pod) => readingOf(pod, inputs)),
  );
  const actions = deletions(remains, keep, inputs.job.namespace);
  if (of !== undefined) showLeftovers(draft, inputs, remains.pods);
  append(draft.actions, actions);
  const waits = actions.length > 0 || remains.pods.some(({ deleting }) => deleting);
  if (waits) draft.recheckAtMs.push(inputs.nowMs + OUTSTANDING_MS);
}

/** Why pods of an admission that is over do not go, for users who ask what the job still holds. */
function showLeftovers(draft: Draft, inputs: Inputs, pods: readonly PodView[]): void {
  if (draft.admissions.some(({ state }) => state === "live")) return;
  const replicaTypes = Object.keys(inputs.job.spec.replicaSpecs);
  const each = pods.flatMap((pod) => {
    const replicaType = replicaTypes.find((role) => role.toLowerCase() === pod.role);
    const problem = pod.deleting && replicaType !== undefined ? problemNow(draft, pod, inputs.nowMs) : null;
    return problem === null
      ? []
      : [{ replicaType: replicaType ?? "", reason: problem.reason, message: problem.message }];
  });
  recordProblems(draft, inputs, each);
}

/**
 * Deletes pods and the PodGroup, then services and config maps, then the anchor. Objects that are being deleted already
 * are left to Kubernetes.
 */
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
  const stays = remains.pods.some((pod) => keep.pod(pod)) || keep.others;
  const ended = stays ? servicesOfDeletedPods(remains, keep) : remains.services;
  const services = ended.filter(({ deleting }) => !deleting).map(gone("deleteService"));
  if (stays) return [...doomed, ...services];
  const configMaps = remains.configMaps.filter(({ deleting }) => !deleting).map(gone("deleteConfigMap"));
  const anchor = remains.anchor === null || remains.anchor.deleting ? [] : [gone("deleteAnchor")(remains.anchor)];
  return [...doomed, ...services, ...configMaps, ...anchor];
}

/** The services whose pods go, or are gone. The name of a replica's service is that of its pod. */
function servicesOfDeletedPods({ pods, services }: Remains, keep: Keep): readonly ObjectView[] {
  const stays = new Map(pods.map((pod) => [pod.name, keep.pod(pod) && !pod.deleting]));
  return services.filter(({ name, labels }) => {
    return labels[LABEL.replicaIndex] !== undefined && !(stays.get(name) ?? keep.services);
  });
}

/** Deletes all objects that are seen of a job whose record is gone. */
export function removeAll(
  seen: ObservedCluster,
  job: { readonly uid: string; readonly namespace: string },
): readonly Action[] {
  return remainsIn(seen, { uid: job.uid, admissions: [] }).flatMap((remains) =>
    deletions(remains, NOTHING, job.namespace),
  );
}

/**
 * Which objects of an ended admission are kept. A deleted job keeps nothing. A cancelled job, and one whose maximum run
 * time is over, keep no pod that still runs. Otherwise the clean-pod policy decides: Running deletes only pods that are
 * Running or Pending. No policy keeps a pod that is stuck before its start, since it would never end. Once the tokens
 * are released no pod may run: a pod that still runs was created by a late call.
 */
function keepOf(draft: Draft, inputs: Inputs, admission: Admission): Keep {
  const policy = cleanPodPolicyOf({ spec: inputs.job.spec, status: draft.status });
  if (draft.deleteTimeMs !== null || policy === "All") return NOTHING;
  const { phase, failure } = draft.status;
  const cancelled = phase === "CANCELLED" || failure?.code === MAX_RUNTIME_EXCEEDED;
  const counts = Object.values(draft.status.replicaStatuses);
  return {
    pod: (pod) => {
      if (hasEnded(pod)) return true;
      if (cancelled || admission.tokensReleasedMs !== null) return false;
      if (isStuck(pod, inputs)) return false;
      return policy === "None" || pod.phase === "Unknown";
    },
    // A limit deletes the PodGroup in the pass that ends the gang, the pods' own end in the next one, as with Kubeflow.
    group: draft.stopped && failure?.limit !== true,
    services: policy === "None" && !cancelled,
    others: (policy === "None" && !cancelled) || counts.some(({ succeeded, failed }) => succeeded + failed > 0),
  };
}

function isStuck(pod: PodView, inputs: Inputs): boolean {
  if (pod.phase !== "Pending") return false;
  const reading = readingOf(pod, inputs);
  return reading.kind === "failed" && reading.failure.cleanup;
}

/** Notes that no pod of an admission uses its tokens any more, and that none of its objects is left. */
function settle(draft: Draft, inputs: Inputs, admission: Admission): void {
  const seen = inputs.observed.find(({ cluster }) => cluster === admission.cluster);
  if (seen === undefined) return;
  const settledAtMs = (admission.belowMinSinceMs ?? Number.NEGATIVE_INFINITY) + OUTSTANDING_MS;
  const remains = remainsOf(seen, inputs).find((one) => one.isRecorded && one.number === admission.number);
  // Nothing of a lost cluster is known, and only a gang that left it gives its tokens back.
  if (seen.loss !== undefined && admission.abandonedMs === undefined) {
    abandonOverdue(draft, inputs, admission);
    return;
  }
  const released = releaseTimeMs(draft, inputs, { admission, settledAtMs, remains });
  const empty = isEmpty(seen, { admission, remains });
  const gone = released === null || !empty ? null : (admission.goneMs ?? inputs.nowMs);
  if (released === admission.tokensReleasedMs && gone === admission.goneMs) return;
  if (released !== admission.tokensReleasedMs) {
    const message = `Admission ${admission.number} on ${seen.cluster} has released its tokens.`;
    draft.events.push({ type: "Normal", reason: "TokensReleased", message });
  }
  if (draft.deleteTimeMs !== null) draft.recheckAtMs.push(inputs.nowMs);
  changeAdmission(draft, { ...admission, tokensReleasedMs: released, goneMs: gone });
}

/** True if nothing of an admission is left. What a lost cluster has is not known, so that stays as it is recorded. */
function isEmpty(
  { loss }: ObservedCluster,
  { admission, remains }: { readonly admission: Admission; readonly remains: Remains | undefined },
): boolean {
  if (loss !== undefined) return admission.goneMs !== null;
  return remains === undefined || countOf(remains) === 0;
}

function countOf({ pods, services, configMaps, groups, anchor }: Remains): number {
  return pods.length + services.length + configMaps.length + groups.length + (anchor === null ? 0 : 1);
}

/**
 * When the tokens were released; now, if every pod that is seen has ended and no unseen pod can exist. Tokens are never
 * released in the record that stops the admission, so that its terminal status is durable first.
 */
function releaseTimeMs(
  draft: Draft,
  { nowMs }: Inputs,
  of: { readonly admission: Admission; readonly settledAtMs: number; readonly remains: Remains | undefined },
): number | null {
  if (of.admission.tokensReleasedMs !== null) return of.admission.tokensReleasedMs;
  if (draft.stopped) return null;
  const { pods = [], anchor = null } = of.remains ?? {};
  if (!pods.every(hasEnded)) return null;
  // The gang may be admitted elsewhere then. While the anchor exists, a late call could still create a pod that stays.
  if (of.admission.state === "undone" && anchor !== null) return null;
  if (nowMs >= of.settledAtMs) return nowMs;
  draft.recheckAtMs.push(of.settledAtMs);
  return null;
}

/**
 * Deletes a job whose time to live is over, as its owner would, once clean-up has nothing left to do.
 */
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
      message: `${job.spec.kind} ${job.name} is deleted: its time to live of ${ttlSeconds} s after its end is over.`,
    });
    draft.recheckAtMs.push(nowMs);
  }
}

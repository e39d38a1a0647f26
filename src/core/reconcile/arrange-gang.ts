/**
 * Puts the observed pods of a live admission into the slots of its gang. It serves users whose replicas must keep their
 * index, name and attempt across restarts.
 */
import { compareText } from "../../runtime/compare-text.ts";
import type { Job } from "../job/job.ts";
import { LABEL } from "../job/labels.ts";
import { keptMembers, replicaKey, rolesOf } from "../job/roles.ts";
import type { Admission, Attempts, MemberEnd, ReplicaKey } from "../job/status.ts";
import type { Kind } from "../kinds/kind.ts";
import { podName } from "../kinds/pod-name.ts";
import { partOf } from "../kinds/work.ts";
import { delaysPods, type GangScheduler, gangSchedulerOf } from "../pods/build/pod-group.ts";
import type { PodView } from "../pods/read/pod-view.ts";
import type { Inputs } from "./decision-draft.ts";
import { anchoredMaps, belongsTo } from "./objects/anchored-objects.ts";
import { ofAdmission } from "./objects/object-fences.ts";
import type { ConfigMapView, ObjectView, ObservedCluster, PodGroupView } from "./observed.ts";

/**
 * No gang is this large. A pod with a higher index has a made-up label, and a slice for each lower index would cost
 * memory.
 */
const INDEX_MAX = 100_000;

/** The place of one replica in a live gang, and the pods that are seen in it. */
export type Slot = {
  readonly key: ReplicaKey;
  readonly role: string;
  readonly index: number;
  readonly name: string;
  /** The attempt that the record names. */
  readonly attempt: number;
  /** Of kinds with rules: the part of the work that the member does. Others: its index. */
  readonly part: number;
  /**
   * How the member has ended under this admission by the record, or how its part of the work has. Null: it has not. Its
   * pod may be gone.
   */
  readonly ended: MemberEnd | null;
  /** The pod of that attempt, also if it was just removed and its end is known. Null: none is seen. */
  readonly pod: PodView | null;
  /** Pods of earlier attempts. */
  readonly stale: readonly PodView[];
  /** True if any pod, ours or foreign, has the name, so that no pod can be created. */
  readonly taken: boolean;
  /** True if a foreign pod has the name. */
  readonly foreign: boolean;
};

/** A live admission's pods, each in its place. */
export type Arrangement = {
  readonly anchor: ObjectView | null;
  readonly slots: readonly Slot[];
  /** Pods of ours without a place in the gang: indexes that are not members, duplicates, unknown replica types. */
  readonly strays: readonly PodView[];
  readonly services: readonly ObjectView[];
  /** Config maps that the kind made. */
  readonly configMaps: readonly ConfigMapView[];
  readonly gang: ArrangedGroup;
};

/** How the admission's pods are grouped for a gang scheduler of the cluster. */
type ArrangedGroup = {
  /**
   * The gang scheduler that the admission was started with: that of its anchor, or the cluster's own before there is an
   * anchor. Null: none.
   */
  readonly scheduler: GangScheduler | null;
  /** True if the cluster still has that scheduler, so that the PodGroup is observed and maintained. */
  readonly isKept: boolean;
  readonly group: PodGroupView | null;
};

/** Puts the pods of a live admission into their places, with the attempts that the record names. */
export function arrangeGang(
  { job, kind, observed }: Pick<Inputs, "job" | "kind" | "observed">,
  admission: Admission,
): Arrangement {
  const seen = observed.find((one) => one.cluster === admission.cluster);
  const cluster = seen && ofAdmission(seen, admission);
  const { anchor, parts: configMaps } = anchoredMaps(cluster, admission.number);
  const areOurs = (pods: readonly PodView[]) =>
    pods.filter((pod) => isOurs(pod, job, admission) && belongsTo(pod, anchor));
  const ours = areOurs(cluster?.pods ?? []);
  const lost = areOurs(cluster?.lost ?? []);
  const byName = Map.groupBy(seen?.pods ?? [], ({ name }) => name);
  const slots = rolesOf(job.spec).flatMap((role) => roleSlots({ job, kind, admission, role, byName, ours, lost }));
  const placed = new Set(slots.flatMap(({ pod, stale }) => [pod, ...stale]));
  const services = (cluster?.services ?? []).filter(
    (service) => service.admission === admission.number && belongsTo(service, anchor),
  );
  const gang = arrangeGroup(admission, anchor, cluster);
  // The gang may have grown since the back-up that its record is from.
  const isKnown = seen?.unadopted !== true;
  const strays = isKnown ? ours.filter((pod) => !placed.has(pod) && !isAhead(pod, slots)) : [];
  return { anchor, slots, strays, services, configMaps, gang };
}

function arrangeGroup(
  { number }: Admission,
  anchor: ObjectView | null,
  cluster: ObservedCluster | undefined,
): ArrangedGroup {
  const here = cluster?.gang;
  const scheduler = anchor === null ? (here?.scheduler ?? null) : gangSchedulerOf(anchor.labels[LABEL.gangScheduler]);
  const isKept = scheduler !== null && scheduler === here?.scheduler;
  const groups = isKept ? here.groups : [];
  return { scheduler, isKept, group: groups.find((one) => one.admission === number && belongsTo(one, anchor)) ?? null };
}

/** True while the gang's scheduler asks not to create its pods yet. */
export function isDelayed({ gang }: Arrangement): boolean {
  return gang.isKept && gang.scheduler !== null && delaysPods(gang.scheduler, gang.group);
}

type RolePods = {
  readonly job: Job;
  readonly kind: Kind;
  readonly admission: Admission;
  readonly role: string;
  /** Every pod that is seen, ours or foreign. */
  readonly byName: ReadonlyMap<string, readonly PodView[]>;
  readonly ours: readonly PodView[];
  readonly lost: readonly PodView[];
};

function roleSlots({ job, kind, admission, role, byName, ours, lost }: RolePods): readonly Slot[] {
  const members = keptMembers(job, admission)[role] ?? 0;
  const slices = podSlices(
    ours.filter((pod) => pod.role === role.toLowerCase()),
    members,
  );
  return slices
    .slice(0, members)
    .map((pods, index) => slotOf({ job, kind, admission, role, index, pods, byName, lost }));
}

/**
 * Sorts the pods of one replica type by index into at least `replicas` slices, and more if a pod has a higher index.
 * Pods without a usable index are left out. Source: Kubeflow's GetPodSlices.
 */
export function podSlices(pods: readonly PodView[], replicas: number): readonly (readonly PodView[])[] {
  const slices: PodView[][] = Array.from({ length: replicas }, () => []);
  for (const pod of pods) {
    if (pod.index === null || pod.index > INDEX_MAX) continue;
    while (slices.length <= pod.index) slices.push([]);
    slices[pod.index]?.push(pod);
  }
  return slices;
}

function isOurs(pod: PodView, job: Job, admission: Admission): boolean {
  return pod.jobUid === job.uid && pod.admission === admission.number && !pod.released;
}

type SlotPods = {
  readonly job: Job;
  readonly kind: Kind;
  readonly admission: Admission;
  readonly role: string;
  readonly index: number;
  readonly pods: readonly PodView[];
  readonly byName: ReadonlyMap<string, readonly PodView[]>;
  readonly lost: readonly PodView[];
};

function slotOf({ job, kind, admission, role, index, pods, byName, lost }: SlotPods): Slot {
  const key = replicaKey(role, index);
  const part = partOf({ job, kind }, role, index);
  const attempt = attemptOf(job.status.attempts, key);
  const name = podName({ job, kind, role, index });
  const [pod = null] = [
    ...pods.filter((one) => one.attempt === attempt).sort(olderFirst),
    ...lost.filter((one) => one.name === name && one.attempt === attempt),
  ];
  const holders = byName.get(name) ?? [];
  return {
    key,
    role,
    index,
    name,
    attempt,
    part,
    ended: admission.ended?.[key] ?? job.status.ends?.[replicaKey(role, part)] ?? null,
    pod,
    stale: pods.filter((one) => one.attempt < attempt),
    taken: holders.length > 0 || pods.length > 0,
    foreign: holders.some((one) => one.jobUid !== job.uid),
  };
}

/** The attempt of a replica that the record names; 1 if it names none. */
export function attemptOf(attempts: Attempts, key: ReplicaKey): number {
  return attempts.byReplica[key] ?? 1;
}

/**
 * True for a pod of a later attempt than the record names. It means that the record at hand is old, so the pod is left
 * alone.
 */
function isAhead(pod: PodView, slots: readonly Slot[]): boolean {
  const slot = slots.find((one) => one.role.toLowerCase() === pod.role && one.index === pod.index);
  return slot !== undefined && pod.attempt > slot.attempt;
}

function olderFirst(a: PodView, b: PodView): number {
  return Number(a.deleting) - Number(b.deleting) || a.createTimeMs - b.createTimeMs || compareText(a.uid, b.uid);
}

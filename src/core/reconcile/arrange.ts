import type { Job } from "../job/job.ts";
import { LABEL } from "../job/labels.ts";
import { keptMembers, replicaKey, rolesOf } from "../job/roles.ts";
import type { Admission, Attempts, ReplicaKey } from "../job/status.ts";
import { podName } from "../kinds/pod-name.ts";
import { delaysPods, type GangScheduler, gangSchedulerOf } from "../pods/pod-group.ts";
import type { PodView } from "../pods/pod-view.ts";
import { anchoredMaps, belongsTo } from "./anchored.ts";
import type { ConfigMapView, ObjectView, Observed, ObservedCluster, PodGroupView } from "./decision.ts";
import { podSlices } from "./slices.ts";

/** The place of one replica in a live gang, and who is seen in it. */
export type Slot = {
  readonly key: ReplicaKey;
  readonly role: string;
  readonly index: number;
  readonly name: string;
  /** The attempt that the record names. */
  readonly attempt: number;
  /** The pod of that attempt, also one that the platform has just taken away; null where none is seen. */
  readonly pod: PodView | null;
  /** Pods of attempts that the record has left behind. */
  readonly stale: readonly PodView[];
  /** True if any pod, ours or not, is seen under the name: nothing can be created. */
  readonly taken: boolean;
  /** True if a pod that is not ours holds the name. */
  readonly foreign: boolean;
};

/** A live admission's pods, each in its place. */
export type Arrangement = {
  readonly anchor: ObjectView | null;
  readonly slots: readonly Slot[];
  /** Ours, but in no place of the gang: indexes that are not members, duplicates, unknown replica types. */
  readonly strays: readonly PodView[];
  readonly services: readonly ObjectView[];
  /** Config maps that the kind made. */
  readonly configMaps: readonly ConfigMapView[];
  readonly gang: ArrangedGang;
};

/** How the admission's pods are grouped for a gang scheduler of the cluster. */
export type ArrangedGang = {
  /** The one that the admission keeps to: its anchor's, or the cluster's own where there is no anchor yet; null: none. */
  readonly scheduler: GangScheduler | null;
  /** Whether that is still the cluster's, so that the group is seen and kept. */
  readonly isKept: boolean;
  readonly group: PodGroupView | null;
};

/** Puts the pods of a live admission into their places, with the attempts that the record names. */
export function arrange(job: Job, admission: Admission, observed: Observed): Arrangement {
  const cluster = observed.find((one) => one.cluster === admission.cluster);
  const { anchor, parts: configMaps } = anchoredMaps(cluster, admission.number);
  const seen = cluster?.pods ?? [];
  const areOurs = (pods: readonly PodView[]) =>
    pods.filter((pod) => isOurs(pod, job, admission) && belongsTo(pod, anchor));
  const ours = areOurs(seen);
  const lost = areOurs(cluster?.lost ?? []);
  const byName = Map.groupBy(seen, ({ name }) => name);
  const slots = rolesOf(job.spec).flatMap((role) => roleSlots({ job, admission, role, byName, ours, lost }));
  const placed = new Set(slots.flatMap(({ pod, stale }) => [pod, ...stale]));
  const services = (cluster?.services ?? []).filter(
    (service) => service.admission === admission.number && belongsTo(service, anchor),
  );
  const gang = arrangeGang(admission, anchor, cluster);
  const strays = ours.filter((pod) => !placed.has(pod) && !isAhead(pod, slots));
  return { anchor, slots, strays, services, configMaps, gang };
}

function arrangeGang(
  { number }: Admission,
  anchor: ObjectView | null,
  cluster: ObservedCluster | undefined,
): ArrangedGang {
  const here = cluster?.gang;
  const scheduler = anchor === null ? (here?.scheduler ?? null) : gangSchedulerOf(anchor.labels[LABEL.gangScheduler]);
  const isKept = scheduler !== null && scheduler === here?.scheduler;
  const groups = isKept ? here.groups : [];
  return { scheduler, isKept, group: groups.find((one) => one.admission === number && belongsTo(one, anchor)) ?? null };
}

/** True while the gang's scheduler wants no pods of it yet. */
export function isDelayed({ gang }: Arrangement): boolean {
  return gang.isKept && gang.scheduler !== null && delaysPods(gang.scheduler, gang.group);
}

type Role = {
  readonly job: Job;
  readonly admission: Admission;
  readonly role: string;
  /** Every pod that is seen, ours or not. */
  readonly byName: ReadonlyMap<string, readonly PodView[]>;
  readonly ours: readonly PodView[];
  readonly lost: readonly PodView[];
};

function roleSlots({ job, admission, role, byName, ours, lost }: Role): readonly Slot[] {
  const members = keptMembers(job.spec, admission.members)[role] ?? 0;
  const slices = podSlices(
    ours.filter((pod) => pod.role === role.toLowerCase()),
    members,
  );
  return slices.slice(0, members).map((pods, index) => slotOf({ job, role, index, pods, byName, lost }));
}

function isOurs(pod: PodView, job: Job, admission: Admission): boolean {
  return pod.jobUid === job.uid && pod.admission === admission.number;
}

type Place = {
  readonly job: Job;
  readonly role: string;
  readonly index: number;
  readonly pods: readonly PodView[];
  readonly byName: ReadonlyMap<string, readonly PodView[]>;
  readonly lost: readonly PodView[];
};

function slotOf({ job, role, index, pods, byName, lost }: Place): Slot {
  const key = replicaKey(role, index);
  const attempt = attemptOf(job.status.attempts, key);
  const name = podName({ job, role, index });
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
    pod,
    stale: pods.filter((one) => one.attempt < attempt),
    taken: holders.length > 0 || pods.length > 0,
    foreign: holders.some((one) => one.jobUid !== job.uid),
  };
}

/** The attempt of a replica that the record names; 1 where it names none. */
export function attemptOf(attempts: Attempts, key: ReplicaKey): number {
  return attempts.byReplica[key] ?? 1;
}

/** A pod of an attempt that the record does not know yet means that the record at hand is old: nothing is done to it. */
function isAhead(pod: PodView, slots: readonly Slot[]): boolean {
  const slot = slots.find((one) => one.role.toLowerCase() === pod.role && one.index === pod.index);
  return slot !== undefined && pod.attempt > slot.attempt;
}

function olderFirst(a: PodView, b: PodView): number {
  return Number(a.deleting) - Number(b.deleting) || a.createTimeMs - b.createTimeMs || (a.uid < b.uid ? -1 : 1);
}

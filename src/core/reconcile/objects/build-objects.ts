import { isJsonObject, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import type { JsonMeter } from "../../../runtime/json-bytes.ts";
import { ofRole, podNodeLabels } from "../../job/flavor-labels.ts";
import { asksInterruptible, specNow, staysInterruptible } from "../../job/interruptible.ts";
import type { Job } from "../../job/job.ts";
import { anchorName } from "../../job/names.ts";
import type { PlannedPlaces } from "../../job/placement/placement.ts";
import { replicaKey } from "../../job/roles.ts";
import type { GangAdmission } from "../../job/status.ts";
import { defaultContainerOf, servicePortsOf } from "../../kinds/containers.ts";
import type { Gang, Kind, Replica } from "../../kinds/kind.ts";
import { partOf } from "../../kinds/work.ts";
import { buildAnchor } from "../../pods/build/build-anchor.ts";
import type { BuildConfig } from "../../pods/build/build-config.ts";
import type { Ownership } from "../../pods/build/build-labels.ts";
import { buildPart } from "../../pods/build/build-part.ts";
import { buildPod, measuredPod, type PodReplica, unfilledPod } from "../../pods/build/build-pod.ts";
import { buildGangService, buildService } from "../../pods/build/build-service.ts";
import { buildPodGroup, type GangScheduler, joinPodGroup } from "../../pods/build/pod-group.ts";
import { podRequests } from "../../pods/resources.ts";
import { podVariables } from "../../pods/variables.ts";
import type { Slot } from "../arrange-gang.ts";
import type { Action } from "../decision.ts";
import { toldMembers } from "../partial-gang.ts";

/** The admission of a job whose objects are built. */
export type BuildTarget = {
  readonly job: Job;
  readonly kind: Kind;
  readonly admission: Pick<
    GangAdmission,
    "number" | "cluster" | "fence" | "members" | "flavorLabels" | "partial" | "told" | "ended"
  >;
  readonly build: BuildConfig;
  /** The gang scheduler that the admission was started with. Null: none. */
  readonly scheduler: GangScheduler | null;
  /** The labels of the node that the pod of a part is bound to. Null: none that is known. Omitted: no pod is seen. */
  readonly nodeLabels?: (role: string, part: number) => Readonly<Record<string, string>> | null;
  /** Where its pods are planned. A gang scheduler chooses the nodes itself. Omitted: they are planned nowhere. */
  readonly places?: PlannedPlaces;
};

/** The member and the attempt that a pod is for. */
export type PodSlot = Pick<Slot, "role" | "index" | "name" | "attempt">;

export function createAnchor(target: BuildTarget): Action {
  return {
    ...whereabouts(target),
    kind: "createAnchor",
    manifest: buildAnchor(ownershipOf(target), target.scheduler),
  };
}

/** The manifest of the admission's PodGroup. */
export function podGroupManifest(target: BuildTarget, scheduler: GangScheduler): JsonObject {
  const { job, admission } = target;
  return buildPodGroup(ownershipOf(target), { ...admission, scheduler, spec: job.spec });
}

export function createPodGroup(target: BuildTarget, manifest: JsonObject): Action {
  return { ...owned(target), kind: "createPodGroup", manifest };
}

/** The pod of one attempt of a member. */
export function createPod(target: BuildTarget, replica: PodReplica): Action {
  return {
    ...owned(target),
    kind: "createPod",
    manifest: joined(target, replica, buildPod(ownershipOf(target), replica)),
  };
}

/**
 * The manifest of the pod of one attempt of a member, without the variables that every pod gets. Placeholders stay:
 * filled in, they can make a small template a pod of hundreds of megabytes. Everything that a cluster can refuse is in
 * it.
 */
export function judgedManifest(target: BuildTarget, slot: PodSlot): JsonObject {
  const replica = { ...podReplica(target, slot), variables: {} };
  return joined(target, replica, unfilledPod(ownershipOf(target), replica));
}

/** The bytes of that pod as JSON, computed without building it. No pod is larger than this says. */
export function podBytes(target: BuildTarget, replica: PodReplica, meter: JsonMeter): number {
  return meter.bytesOf(joined(target, replica, measuredPod(ownershipOf(target), replica, meter)));
}

/** The service of a replica. Null for kinds without a port. */
export function createService(target: BuildTarget, slot: PodSlot): Action | null {
  const { kind, job } = target;
  if (kind.defaultPort === null) return null;
  const { name, role, index } = slot;
  const replica = { name, role, index, ports: servicePortsOf(job.spec, role, kind) };
  return { ...owned(target), kind: "createService", manifest: buildService(ownershipOf(target), replica) };
}

/** The service of the whole gang. Null for kinds without one. */
export function createGangService(target: BuildTarget): PartAction | null {
  const service = target.kind.service?.(gangOf(target)) ?? null;
  if (service === null) return null;
  return { ...owned(target), kind: "createService", manifest: buildGangService(ownershipOf(target), service) };
}

/** The parts: objects that the kind needs beside pods and services. */
export function createParts(target: BuildTarget): readonly PartAction[] {
  const parts = target.kind.objects(gangOf(target));
  return parts.map((part) => ({
    ...owned(target),
    kind: "createPart",
    manifest: buildPart(ownershipOf(target), part, target.job.version),
  }));
}

export type PartAction = Extract<Action, { readonly anchor: string }>;

function joined({ scheduler, job }: BuildTarget, { role }: PodReplica, pod: JsonObject): JsonObject {
  return scheduler === null ? pod : joinPodGroup(pod, { scheduler, group: job.name, role });
}

/** The facts of the pod of a member's attempt, with the parts that its kind adds. */
export function podReplica(target: BuildTarget, slot: PodSlot): PodReplica {
  const { job, kind, admission } = target;
  const spec = specNow(job).replicaSpecs[slot.role];
  const template = spec?.template ?? {};
  const made = kind.clusterSpec(replicaOf(target, slot));
  const container = stringAt(defaultContainerOf(objectAt(template, "spec"), kind), "name") ?? "";
  return {
    name: slot.name,
    role: slot.role,
    index: slot.index,
    attempt: slot.attempt,
    isMaster: kind.isMaster(toldMembers(job, admission), slot.role, slot.index),
    template: isJsonObject(template) ? template : {},
    restartPolicy: spec?.restartPolicy ?? kind.defaults.restartPolicy,
    restartScope: job.spec.runPolicy.restartScope,
    interruptible: interruptibleOf(job, slot.role),
    place: placeOf(target, slot),
    nodeLabels: podNodeLabels(podRequests(objectAt(template, "spec")), ofRole(admission.flavorLabels, slot.role)),
    identity: made,
    env: made.env,
    defaultEnv: made.defaultEnv ?? {},
    initContainers: made.initContainers,
    volumes: made.volumes ?? [],
    volumeMounts: made.volumeMounts ?? {},
    command: made.command ?? {},
    serviceAccount: made.serviceAccount ?? null,
    placing: made.placing ?? {},
    variables: podVariables({
      job,
      admission: admission.number,
      fence: admission.fence,
      attempt: slot.attempt,
      role: slot.role,
      index: slot.index,
      podName: slot.name,
    }),
    annotations: job.annotations,
    inputs: job.spec.inputs ?? {},
    port: kind.defaultPort === null ? null : { container, ...kind.defaultPort },
  };
}

/** A member's attempt, as its kind is asked about it. */
function replicaOf(target: BuildTarget, { role, index: member, attempt }: PodSlot): Replica {
  const { attempts } = target.job.status;
  const index = partOf(target, role, member);
  const failures = attempts.failures?.[replicaKey(role, index)] ?? 0;
  const restarts = attempts.restarts?.all ?? 0;
  const nodeLabelsOf = (part: number) => target.nodeLabels?.(role, part) ?? null;
  return { ...gangOf(target), role, index, attempt, failures, restarts, nodeLabelsOf };
}

/**
 * The planned place of a pod. A pod that is not interruptible any more needs other nodes than those that were planned,
 * so its template alone decides.
 */
function placeOf({ scheduler, places, job }: BuildTarget, { role, index }: PodSlot): PodReplica["place"] {
  if (scheduler !== null || interruptibleOf(job, role) === false) return null;
  return places?.(role, index) ?? null;
}

/** Whether pods of a replica type are interruptible now. Null for one that never was interruptible. */
function interruptibleOf({ spec, status }: Job, role: string): boolean | null {
  return asksInterruptible(spec, role) ? staysInterruptible(spec.runPolicy, status.attempts) : null;
}

/** The gang of an admission, as its kind is asked about it. */
export function gangOf({ job, admission, build }: Omit<BuildTarget, "scheduler">): Gang {
  return {
    jobName: job.name,
    jobUid: job.uid,
    namespace: job.namespace,
    admission: admission.number,
    spec: job.spec,
    members: toldMembers(job, admission),
    clusterDomain: build.clusterDomain,
    initImage: build.initImage,
    kubectlImage: build.kubectlImage,
  };
}

function ownershipOf({ job, kind, admission, build }: Omit<BuildTarget, "scheduler">): Ownership {
  const { number, fence } = admission;
  return { job, operatorName: kind.operatorName, admission: number, fence, config: build };
}

function whereabouts({ job, admission }: BuildTarget) {
  return { cluster: admission.cluster, namespace: job.namespace };
}

function owned(target: BuildTarget) {
  return { ...whereabouts(target), anchor: anchorName(target.job.name, target.admission.number) };
}

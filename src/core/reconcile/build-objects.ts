import { isJsonObject, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { isInterruptible, specNow } from "../job/interruptible.ts";
import type { Job } from "../job/job.ts";
import { anchorName } from "../job/names.ts";
import type { Admission } from "../job/status.ts";
import type { Gang, Kind } from "../kinds/kind.ts";
import { defaultContainerOf, portOf } from "../kinds/port.ts";
import { buildAnchor } from "../pods/build-anchor.ts";
import type { BuildConfig } from "../pods/build-config.ts";
import type { Ownership } from "../pods/build-labels.ts";
import { buildPart } from "../pods/build-part.ts";
import { buildPod } from "../pods/build-pod.ts";
import { buildService } from "../pods/build-service.ts";
import { buildPodGroup, type GangScheduler, joinPodGroup } from "../pods/pod-group.ts";
import { podVariables } from "../pods/variables.ts";
import type { Slot } from "./arrange.ts";
import type { Action } from "./decision.ts";

/** Whose objects are made: one admission of a job. */
export type Boarding = {
  readonly job: Job;
  readonly kind: Kind;
  readonly admission: Admission;
  readonly build: BuildConfig;
  /** The gang scheduler that the admission keeps to; null: none. */
  readonly scheduler: GangScheduler | null;
};

export function createAnchor(boarding: Boarding): Action {
  return {
    ...whereabouts(boarding),
    kind: "createAnchor",
    manifest: buildAnchor(ownershipOf(boarding), boarding.scheduler),
  };
}

/** The manifest of the admission's PodGroup. */
export function podGroupManifest(boarding: Boarding, scheduler: GangScheduler): JsonObject {
  const { job, admission } = boarding;
  return buildPodGroup(ownershipOf(boarding), { scheduler, spec: job.spec, members: admission.members });
}

export function createPodGroup(boarding: Boarding, manifest: JsonObject): Action {
  return { ...owned(boarding), kind: "createPodGroup", manifest };
}

/** The pod of the attempt that the slot names. */
export function createPod(boarding: Boarding, slot: Slot): Action {
  return { ...owned(boarding), kind: "createPod", manifest: podManifest(boarding, slot) };
}

/** The service of a replica; null for kinds without a port. */
export function createService(boarding: Boarding, slot: Slot): Action | null {
  const { kind, job } = boarding;
  if (kind.defaultPort === null) return null;
  const port = portOf(job.spec, slot.role, kind);
  const replica = { name: slot.name, role: slot.role, index: slot.index, portName: kind.defaultPort.name, port };
  return { ...owned(boarding), kind: "createService", manifest: buildService(ownershipOf(boarding), replica) };
}

/** What the kind wants beside pods and services. */
export function createParts(boarding: Boarding): readonly PartAction[] {
  const parts = boarding.kind.objects(gangOf(boarding));
  return parts.map((part) => ({
    ...owned(boarding),
    kind: "createPart",
    manifest: buildPart(ownershipOf(boarding), part, boarding.job.version),
  }));
}

export type PartAction = Extract<Action, { readonly anchor: string }>;

function podManifest(boarding: Boarding, slot: Slot): JsonObject {
  const pod = plainPodManifest(boarding, slot);
  const { scheduler, job } = boarding;
  return scheduler === null ? pod : joinPodGroup(pod, { scheduler, group: job.name, role: slot.role });
}

function plainPodManifest(boarding: Boarding, slot: Slot): JsonObject {
  const { job, kind, admission } = boarding;
  const spec = specNow(job).replicaSpecs[slot.role];
  const template = spec?.template ?? {};
  const made = kind.clusterSpec({ ...gangOf(boarding), role: slot.role, index: slot.index });
  const container = stringAt(defaultContainerOf(objectAt(template, "spec"), kind), "name") ?? "";
  return buildPod(ownershipOf(boarding), {
    name: slot.name,
    role: slot.role,
    index: slot.index,
    attempt: slot.attempt,
    isMaster: kind.isMaster(admission.members, slot.role, slot.index),
    template: isJsonObject(template) ? template : {},
    restartPolicy: spec?.restartPolicy ?? kind.defaults.restartPolicy,
    restartScope: job.spec.runPolicy.restartScope,
    interruptible: interruptibleOf(job),
    nodeLabels: admission.nodeLabels,
    env: made.env,
    initContainers: made.initContainers,
    volumes: made.volumes ?? [],
    volumeMounts: made.volumeMounts ?? {},
    command: made.command ?? {},
    serviceAccount: made.serviceAccount ?? null,
    variables: podVariables({
      job,
      admission: admission.number,
      attempt: slot.attempt,
      role: slot.role,
      index: slot.index,
      podName: slot.name,
    }),
    annotations: job.annotations,
    inputs: job.spec.inputs ?? {},
    port: kind.defaultPort === null ? null : { container, ...kind.defaultPort },
  });
}

/** Null for a job that never was interruptible. */
function interruptibleOf({ spec, status }: Job): boolean | null {
  return spec.runPolicy.interruptible === true ? isInterruptible(spec.runPolicy, status.attempts) : null;
}

function gangOf({ job, admission, build }: Boarding): Gang {
  return {
    jobName: job.name,
    jobUid: job.uid,
    namespace: job.namespace,
    admission: admission.number,
    spec: job.spec,
    members: admission.members,
    clusterDomain: build.clusterDomain,
    initImage: build.initImage,
    kubectlImage: build.kubectlImage,
  };
}

function ownershipOf({ job, kind, admission, build }: Omit<Boarding, "scheduler">): Ownership {
  return { job, operatorName: kind.operatorName, admission: admission.number, config: build };
}

function whereabouts({ job, admission }: Boarding) {
  return { cluster: admission.cluster, namespace: job.namespace };
}

function owned(boarding: Boarding) {
  return { ...whereabouts(boarding), anchor: anchorName(boarding.job.name, boarding.admission.number) };
}

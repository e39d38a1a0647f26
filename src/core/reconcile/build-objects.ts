import { isJsonObject, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { Job } from "../job/job.ts";
import { anchorName } from "../job/names.ts";
import type { Admission } from "../job/status.ts";
import type { Kind, Replica } from "../kinds/kind.ts";
import { defaultContainerOf, portOf } from "../kinds/port.ts";
import { buildAnchor } from "../pods/build-anchor.ts";
import type { BuildConfig } from "../pods/build-config.ts";
import type { Ownership } from "../pods/build-labels.ts";
import { buildPod } from "../pods/build-pod.ts";
import { buildService } from "../pods/build-service.ts";
import type { Slot } from "./arrange.ts";
import type { Action } from "./decision.ts";

/** Whose objects are made: one admission of a job. */
export type Boarding = {
  readonly job: Job;
  readonly kind: Kind;
  readonly admission: Admission;
  readonly build: BuildConfig;
};

export function createAnchor(boarding: Boarding): Action {
  return { ...whereabouts(boarding), kind: "createAnchor", manifest: buildAnchor(ownershipOf(boarding)) };
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
  const replica = { role: slot.role, index: slot.index, portName: kind.defaultPort.name, port };
  return { ...owned(boarding), kind: "createService", manifest: buildService(ownershipOf(boarding), replica) };
}

function podManifest({ job, kind, admission, build }: Boarding, slot: Slot): JsonObject {
  const spec = job.spec.replicaSpecs[slot.role];
  const template = spec?.template ?? {};
  const replica: Replica = {
    jobName: job.name,
    namespace: job.namespace,
    spec: job.spec,
    members: admission.members,
    role: slot.role,
    index: slot.index,
    clusterDomain: build.clusterDomain,
    initImage: build.initImage,
  };
  const { env, initContainers } = kind.clusterSpec(replica);
  const container = stringAt(defaultContainerOf(objectAt(template, "spec"), kind), "name") ?? "";
  return buildPod(ownershipOf({ job, kind, admission, build }), {
    role: slot.role,
    index: slot.index,
    attempt: slot.attempt,
    isMaster: kind.isMaster(admission.members, slot.role, slot.index),
    template: isJsonObject(template) ? template : {},
    restartPolicy: spec?.restartPolicy ?? kind.defaults.restartPolicy,
    restartScope: job.spec.runPolicy.restartScope,
    nodeLabels: admission.nodeLabels,
    env,
    initContainers,
    port: kind.defaultPort === null ? null : { container, ...kind.defaultPort },
  });
}

function ownershipOf({ job, kind, admission, build }: Boarding): Ownership {
  return { job, operatorName: kind.operatorName, admission: admission.number, config: build };
}

function whereabouts({ job, admission }: Boarding) {
  return { cluster: admission.cluster, namespace: job.namespace };
}

function owned(boarding: Boarding) {
  return { ...whereabouts(boarding), anchor: anchorName(boarding.job.name, boarding.admission.number) };
}

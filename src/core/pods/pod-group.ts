import { canonicalJson, type Json, type JsonObject, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { rolesOf } from "../job/roles.ts";
import type { JobSpec, ReplicaSpec } from "../job/spec.ts";
import { admissionLabels, type Ownership } from "./build-labels.ts";
import { minResources } from "./min-resources.ts";

/** A scheduler of a cluster that places the pods of a group together. Gangway admits the gang; this one binds it. */
export type GangScheduler = "volcano" | "scheduler-plugins";

/** Where each keeps its groups, and how pods name it. Source: Kubeflow's `PodGroupControlInterface` and the schedulers' own charts. */
export const GANG_SCHEDULERS = {
  volcano: { apiVersion: "scheduling.volcano.sh/v1beta1", schedulerName: "volcano" },
  "scheduler-plugins": { apiVersion: "scheduling.x-k8s.io/v1alpha1", schedulerName: "scheduler-plugins-scheduler" },
} as const satisfies Readonly<Record<GangScheduler, { readonly apiVersion: string; readonly schedulerName: string }>>;

/** The annotation of a group that holds the spec that was asked for: what an API server makes of it is not compared. */
export const ASKED_ANNOTATION = "gangway.dev/asked";

/** The gang scheduler of that name; null for `none`, an empty name and any other. */
export function gangSchedulerOf(name: string | undefined): GangScheduler | null {
  return name === "volcano" || name === "scheduler-plugins" ? name : null;
}

/**
 * The manifest of an admission's PodGroup, named as the job. Volcano is told queue and priority class, scheduler-plugins the start timeout,
 * as with Kubeflow.
 */
export function buildPodGroup(
  ownership: Ownership,
  of: { readonly scheduler: GangScheduler; readonly spec: JobSpec; readonly members: Readonly<Record<string, number>> },
): JsonObject {
  const spec = groupSpec(of);
  return {
    apiVersion: GANG_SCHEDULERS[of.scheduler].apiVersion,
    kind: "PodGroup",
    metadata: {
      name: ownership.job.name,
      namespace: ownership.job.namespace,
      labels: admissionLabels(ownership),
      annotations: { [ASKED_ANNOTATION]: canonicalJson(spec) },
    },
    spec,
  };
}

function groupSpec({ scheduler, spec, members }: Parameters<typeof buildPodGroup>[1]): JsonObject {
  const policy = spec.runPolicy.schedulingPolicy;
  const replicas = rolesOf(spec).map((role) => {
    const replica = spec.replicaSpecs[role] as ReplicaSpec;
    return { role, replicas: members[role] ?? 0, template: replica.template };
  });
  const minMember = Math.min(
    policy.minAvailable,
    replicas.reduce((sum, role) => sum + role.replicas, 0),
  );
  const asked: JsonObject = { minMember, minResources: policy.minResources ?? minResources(minMember, replicas) };
  if (scheduler === "volcano") {
    return {
      ...asked,
      queue: policy.queue,
      ...(policy.priorityClass ? { priorityClassName: policy.priorityClass } : {}),
    };
  }
  const { scheduleTimeoutSeconds } = policy;
  return scheduleTimeoutSeconds > 0 ? { ...asked, scheduleTimeoutSeconds } : asked;
}

/** The pod as a member of its job's group; a scheduler that the template names stays. */
export function joinPodGroup(
  pod: JsonObject,
  { scheduler, group, role }: { readonly scheduler: GangScheduler; readonly group: string; readonly role: string },
): JsonObject {
  const metadata = objectAt(pod, "metadata");
  const spec = objectAt(pod, "spec");
  const schedulerName = stringAt(spec, "schedulerName") || GANG_SCHEDULERS[scheduler].schedulerName;
  const marks: Record<string, Json> =
    scheduler === "volcano"
      ? {
          annotations: {
            ...stringMapAt(metadata, "annotations"),
            "scheduling.k8s.io/group-name": group,
            "volcano.sh/task-spec": role.toLowerCase(),
          },
        }
      : { labels: { ...stringMapAt(metadata, "labels"), "scheduling.x-k8s.io/pod-group": group } };
  return { ...pod, metadata: { ...metadata, ...marks }, spec: { ...spec, schedulerName } };
}

/** True if a template names a scheduler that does not know the group. */
export function namesOtherScheduler(spec: JobSpec, scheduler: GangScheduler): boolean {
  return Object.values(spec.replicaSpecs).some(({ template }) => {
    const named = stringAt(objectAt(template, "spec"), "schedulerName") ?? "";
    return named !== "" && named !== GANG_SCHEDULERS[scheduler].schedulerName;
  });
}

/** True while a group's scheduler wants no pods yet. Source: Kubeflow's `DelayPodCreationDueToPodGroup`. */
export function delaysPods(scheduler: GangScheduler, group: { readonly phase: string } | null): boolean {
  return scheduler === "volcano" && (group === null || group.phase === "" || group.phase === "Pending");
}

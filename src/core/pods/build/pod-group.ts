import { canonicalJson, type Json, type JsonObject, objectAt, stringAt, stringMapAt } from "../../../runtime/json.ts";
import { memberCount, membersByEnd, rolesOf } from "../../job/roles.ts";
import type { JobSpec, ReplicaSpec } from "../../job/spec.ts";
import type { Admission } from "../../job/status.ts";
import { admissionLabels, type Ownership } from "./build-labels.ts";
import { minResources } from "./min-resources.ts";

/** A scheduler that places the pods of a group together. Gangway admits the gang; this scheduler binds its pods. */
export type GangScheduler = "volcano" | "scheduler-plugins";

/** The gang scheduler of a cluster, as it is stored and shown. */
export type GangSchedulerName = GangScheduler | "none";

/**
 * The API of each scheduler's groups, and how pods refer to them. Source: Kubeflow's `PodGroupControlInterface` and the
 * schedulers' own charts.
 */
export const GANG_SCHEDULERS = {
  volcano: { apiVersion: "scheduling.volcano.sh/v1beta1", schedulerName: "volcano" },
  "scheduler-plugins": { apiVersion: "scheduling.x-k8s.io/v1alpha1", schedulerName: "scheduler-plugins-scheduler" },
} as const satisfies Readonly<Record<GangScheduler, { readonly apiVersion: string; readonly schedulerName: string }>>;

/**
 * The annotation that holds the requested spec of a group. Gangway compares this, not the spec that the API server
 * returns.
 */
export const REQUESTED_SPEC_ANNOTATION = "gangway.dev/asked";

/** The gang scheduler of that name. Null for `none`, an empty name and unknown names. */
export function gangSchedulerOf(name: string | undefined): GangScheduler | null {
  return name === "volcano" || name === "scheduler-plugins" ? name : null;
}

/** An admission whose pods are grouped. */
type GroupedGang = Pick<Admission, "members" | "ended"> & {
  readonly scheduler: GangScheduler;
  readonly spec: JobSpec;
};

/**
 * The manifest of an admission's PodGroup, with the name of the job. Sets queue and priority class for Volcano, and for
 * scheduler-plugins the start timeout if somebody asked for one, as Kubeflow does.
 *
 * Members that have ended need no room any more, and others may have it. So the group asks for the pods of the others
 * alone. Else a scheduler would not place a pod that is restarted until there is room for all.
 */
export function buildPodGroup(ownership: Ownership, of: GroupedGang): JsonObject {
  const spec = groupSpec(of);
  return {
    apiVersion: GANG_SCHEDULERS[of.scheduler].apiVersion,
    kind: "PodGroup",
    metadata: {
      name: ownership.job.name,
      namespace: ownership.job.namespace,
      labels: admissionLabels(ownership),
      annotations: { [REQUESTED_SPEC_ANNOTATION]: canonicalJson(spec) },
    },
    spec,
  };
}

function groupSpec(of: GroupedGang): JsonObject {
  const { scheduler, spec } = of;
  const policy = spec.runPolicy.schedulingPolicy;
  const { left, succeeded } = membersByEnd(of);
  const replicas = rolesOf(spec).map((role) => {
    const replica = spec.replicaSpecs[role] as ReplicaSpec;
    return { role, replicas: left[role] ?? 0, template: replica.template };
  });
  const minMember = Math.max(1, Math.min(policy.minAvailable - succeeded, memberCount(left)));
  // Resources that the job names are those of a whole gang.
  const named = of.ended === undefined ? policy.minResources : undefined;
  const base: JsonObject = { minMember, minResources: named ?? minResources(minMember, replicas) };
  if (scheduler === "volcano") {
    return {
      ...base,
      queue: policy.queue,
      ...(policy.priorityClass ? { priorityClassName: policy.priorityClass } : {}),
    };
  }
  const { scheduleTimeoutSeconds, isTimeoutDefault = false } = policy;
  return scheduleTimeoutSeconds > 0 && !isTimeoutDefault ? { ...base, scheduleTimeoutSeconds } : base;
}

/** Adds a pod to the group of its job. Keeps a scheduler that the template names. */
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

/** True if a template names a scheduler that does not support the group. */
export function namesOtherScheduler(spec: JobSpec, scheduler: GangScheduler): boolean {
  return Object.values(spec.replicaSpecs).some(({ template }) => {
    const named = stringAt(objectAt(template, "spec"), "schedulerName") ?? "";
    return named !== "" && named !== GANG_SCHEDULERS[scheduler].schedulerName;
  });
}

/** True while the scheduler of a group does not want pods yet. Source: Kubeflow's `DelayPodCreationDueToPodGroup`. */
export function delaysPods(scheduler: GangScheduler, group: { readonly phase: string } | null): boolean {
  return scheduler === "volcano" && (group === null || group.phase === "" || group.phase === "Pending");
}

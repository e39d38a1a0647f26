/** The fields of a JobSet that decide how it runs and when it ends. */
import {
  arrayAt,
  type Json,
  type JsonObject,
  numberAt,
  objectAt,
  stringAt,
  stringMapAt,
} from "../../../runtime/json.ts";
import type { JobSpec } from "../../job/spec.ts";
import { type BatchSpec, batchSpecOf } from "../batch/batch-spec.ts";
import type { Work } from "../kind-rules.ts";

export const DEPENDENCY_STATES = ["Ready", "Complete"] as const;
/** Why a child job has failed, as rules of a failure policy name it. */
export const FAILURE_REASONS = [
  "BackoffLimitExceeded",
  "DeadlineExceeded",
  "FailedIndexes",
  "MaxFailedIndexesExceeded",
  "PodFailurePolicy",
] as const;
/** What a rule of a failure policy does. The first one is done where no rule matches. */
export const SET_ACTIONS = ["RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "FailJobSet"] as const;

const GROUP_NAME = "default";

/** A group of child jobs. */
export type ChildGroup = {
  /** The replica type of its pods. */
  readonly name: string;
  /** The name under which its child jobs are counted together with those of other groups. */
  readonly groupName: string;
  /** The number of child jobs. */
  readonly jobs: number;
  /** The pods of a child job that run at once, and its parts of the work. */
  readonly pods: number;
  readonly parts: number;
  readonly batch: BatchSpec;
  readonly activeDeadlineSeconds: number | null;
  readonly dependsOn: readonly { readonly name: string; readonly status: (typeof DEPENDENCY_STATES)[number] }[];
  /** Annotations of the child job's template. */
  readonly annotations: Readonly<Record<string, string>>;
};

/** A rule of the failure policy. Empty lists match everything. */
type FailureRule = {
  readonly action: (typeof SET_ACTIONS)[number];
  readonly reasons: readonly string[];
  readonly patterns: readonly string[];
  readonly groups: readonly string[];
};

/** A JobSet with its defaults. Source: the defaulting webhook of JobSet. */
export type JobSetSpec = {
  readonly groups: readonly ChildGroup[];
  /** Null: pods have no DNS names. Empty: the name of the JobSet. */
  readonly subdomain: string | null;
  readonly publishNotReadyAddresses: boolean;
  readonly success: { readonly operator: "All" | "Any"; readonly groups: readonly string[] };
  /** Null: the first child job that fails ends the JobSet. */
  readonly failure: { readonly maxRestarts: number; readonly rules: readonly FailureRule[] } | null;
  readonly inOrder: boolean;
  readonly coordinator: { readonly group: string; readonly job: number; readonly pod: number } | null;
};

/** Reads the fields of a JobSet, which `validate` has taken, or may refuse: it never throws. */
export function jobSetOf({ kindSpec, replicaSpecs }: Pick<JobSpec, "kindSpec" | "replicaSpecs">): JobSetSpec {
  const network = objectAt(kindSpec, "network");
  const success = objectAt(kindSpec, "successPolicy");
  const failure = objectAt(kindSpec, "failurePolicy");
  return {
    groups: arrayAt(kindSpec, "replicatedJobs").map((group) => {
      return groupOf(group, replicaSpecs[stringAt(group, "name") ?? ""]?.restartPolicy);
    }),
    subdomain: network["enableDNSHostnames"] === false ? null : (stringAt(network, "subdomain") ?? ""),
    publishNotReadyAddresses: network["publishNotReadyAddresses"] !== false,
    success: {
      operator: stringAt(success, "operator") === "Any" ? "Any" : "All",
      groups: textsAt(success, "targetReplicatedJobs"),
    },
    failure:
      kindSpec["failurePolicy"] === undefined
        ? null
        : { maxRestarts: numberAt(failure, "maxRestarts") ?? 0, rules: arrayAt(failure, "rules").map(ruleOf) },
    inOrder: stringAt(objectAt(kindSpec, "startupPolicy"), "startupPolicyOrder") === "InOrder",
    coordinator: coordinatorOf(objectAt(kindSpec, "coordinator")),
  };
}

/** The group that has a replica type, read without the others: each member asks for its own. */
export function childGroupOf(
  { kindSpec, replicaSpecs }: Pick<JobSpec, "kindSpec" | "replicaSpecs">,
  role: string,
): ChildGroup | undefined {
  const group = arrayAt(kindSpec, "replicatedJobs").find((one) => stringAt(one, "name") === role);
  return group === undefined ? undefined : groupOf(group, replicaSpecs[role]?.restartPolicy);
}

function groupOf(group: Json, restartPolicy: string | undefined): ChildGroup {
  const template = objectAt(group, "template");
  const fields = childFields(group);
  const { pods, parts } = countsOf(fields);
  return {
    name: stringAt(group, "name") ?? "",
    groupName: stringAt(group, "groupName") ?? GROUP_NAME,
    jobs: numberAt(group, "replicas") ?? 1,
    pods,
    parts,
    batch: batchSpecOf(fields, { members: pods, restartPolicy }),
    activeDeadlineSeconds: numberAt(fields, "activeDeadlineSeconds") ?? null,
    dependsOn: arrayAt(group, "dependsOn").map((one) => ({
      name: stringAt(one, "name") ?? "",
      status: stringAt(one, "status") === "Complete" ? "Complete" : "Ready",
    })),
    annotations: stringMapAt(objectAt(template, "metadata"), "annotations"),
  };
}

/** The fields of a child job: those of a batch Job, whose pods have indexes unless it says otherwise. */
export function childFields(group: Json): JsonObject {
  return { completionMode: "Indexed", ...objectAt(objectAt(group, "template"), "spec") };
}

/** How many pods of a child job run at once, and how many parts its work has. */
export function countsOf(fields: JsonObject): { readonly pods: number; readonly parts: number } {
  const parallelism = numberAt(fields, "parallelism");
  const completions = numberAt(fields, "completions") ?? (parallelism === undefined ? 1 : undefined);
  const pods = Math.min(parallelism ?? 1, completions ?? Number.POSITIVE_INFINITY);
  return { pods, parts: Math.max(completions ?? pods, pods) };
}

function ruleOf(rule: Json): FailureRule {
  return {
    action: SET_ACTIONS.find((action) => action === stringAt(rule, "action")) ?? SET_ACTIONS[0],
    reasons: textsAt(rule, "onJobFailureReasons"),
    patterns: textsAt(rule, "onJobFailureMessagePatterns"),
    groups: textsAt(rule, "targetReplicatedJobs"),
  };
}

function coordinatorOf(coordinator: JsonObject): JobSetSpec["coordinator"] {
  const group = stringAt(coordinator, "replicatedJob");
  if (group === undefined) return null;
  return { group, job: numberAt(coordinator, "jobIndex") ?? 0, pod: numberAt(coordinator, "podIndex") ?? 0 };
}

function textsAt(object: Json, member: string): readonly string[] {
  return arrayAt(object, member).filter((one) => typeof one === "string");
}

/** How the work of a replica type is divided among its child jobs. */
export function workOfGroup(group: Pick<ChildGroup, "jobs" | "pods" | "parts"> | undefined): Work {
  return { groups: group?.jobs ?? 0, members: group?.pods ?? 0, parts: group?.parts ?? 0 };
}

/** The JSON Schema of the fields of a JobSet. Source: `JobSetSpec` of `jobset.x-k8s.io/v1alpha2`. */
import type { JsonObject } from "../../../runtime/json.ts";
import { BATCH_FIELDS } from "../batch/batch-schema.ts";
import { integerSchema } from "../kind-spec.ts";
import { DEPENDENCY_STATES, FAILURE_REASONS, SET_ACTIONS } from "./jobset-spec.ts";

const NAME: JsonObject = { type: "string", minLength: 1 };
const NAMES: JsonObject = { type: "array", items: NAME };

function closed(title: string, properties: JsonObject, required: readonly string[] = []): JsonObject {
  return {
    title,
    type: "object",
    additionalProperties: false,
    properties,
    ...(required.length === 0 ? {} : { required }),
  };
}

/** The fields of a child job that are those of a batch Job, beside its number of pods. */
export const CHILD_FIELDS: JsonObject = {
  ...BATCH_FIELDS,
  completionMode: { ...(BATCH_FIELDS["completionMode"] as JsonObject), default: "Indexed" },
  parallelism: integerSchema("How many pods of a child job run at once.", { minimum: 1 }),
  activeDeadlineSeconds: integerSchema("After how many seconds a child job fails. Counts from its start.", {
    minimum: 1,
  }),
};

export const METADATA: JsonObject = closed("metadata", {
  name: { type: "string" },
  labels: { type: "object" },
  annotations: { type: "object" },
});

const GROUP: JsonObject = closed(
  "replicatedJobs",
  {
    name: { ...NAME, description: "The name of the replica type that has its pods." },
    groupName: { ...NAME, default: "default", description: "Child jobs of one group name are counted together." },
    replicas: { ...integerSchema("The number of child jobs.", { minimum: 0 }), default: 1 },
    dependsOn: {
      type: "array",
      description: "Groups that must be in a state before this one starts.",
      items: closed("dependsOn", { name: NAME, status: { type: "string", enum: [...DEPENDENCY_STATES] } }, [
        "name",
        "status",
      ]),
    },
    template: closed("template", { metadata: METADATA, spec: closed("spec", CHILD_FIELDS) }),
  },
  ["name"],
);

const RULE: JsonObject = closed(
  "rules",
  {
    name: NAME,
    action: { type: "string", enum: [...SET_ACTIONS] },
    onJobFailureReasons: {
      type: "array",
      items: { type: "string", enum: [...FAILURE_REASONS] },
      description: "Why the child job has failed. Omitted: any reason.",
    },
    onJobFailureMessagePatterns: {
      type: "array",
      items: NAME,
      description:
        "Regular expressions of RE2, one of which the message of the child job matches. Omitted: any message.",
    },
    targetReplicatedJobs: { ...NAMES, description: "Groups of the child job. Omitted: all." },
  },
  ["action"],
);

export const JOBSET_FIELDS: JsonObject = {
  replicatedJobs: { type: "array", minItems: 1, items: GROUP, description: "Groups of child jobs, in their order." },
  network: closed("network", {
    enableDNSHostnames: { type: "boolean", default: true },
    subdomain: { ...NAME, description: "The name of the service. Omitted: that of the JobSet." },
    publishNotReadyAddresses: { type: "boolean", default: true },
  }),
  successPolicy: closed("successPolicy", {
    operator: { type: "string", enum: ["All", "Any"], default: "All" },
    targetReplicatedJobs: { ...NAMES, description: "Groups whose child jobs must complete. Omitted: all." },
  }),
  failurePolicy: closed("failurePolicy", {
    maxRestarts: { ...integerSchema("How often the JobSet restarts as a whole.", { minimum: 0 }), default: 0 },
    restartStrategy: {
      type: "string",
      enum: ["Recreate", "BlockingRecreate"],
      description: "Gangway always waits until all pods of the attempt before are gone.",
    },
    rules: { type: "array", items: RULE, description: "The first rule that a failed child job meets decides." },
  }),
  startupPolicy: closed("startupPolicy", {
    startupPolicyOrder: { type: "string", enum: ["AnyOrder", "InOrder"], default: "AnyOrder" },
  }),
  volumeClaimPolicies: {
    type: "array",
    description: "Volumes that pods share. They are made with the job, and go with it unless they are retained.",
    items: closed("volumeClaimPolicies", {
      templates: {
        type: "array",
        minItems: 1,
        items: closed("templates", { metadata: METADATA, spec: { type: "object" } }, ["metadata", "spec"]),
      },
      retentionPolicy: closed("retentionPolicy", {
        whenDeleted: { type: "string", enum: ["Delete", "Retain"], default: "Delete" },
      }),
    }),
  },
  coordinator: closed("coordinator", {
    replicatedJob: NAME,
    jobIndex: integerSchema("The child job.", { minimum: 0 }),
    podIndex: integerSchema("The pod in it.", { minimum: 0 }),
  }),
};

import type { JsonObject } from "../../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import { replicaName } from "../../job/names.ts";
import type { FieldError, SentSpec } from "../../job/request/sent.ts";
import type { JobSpec } from "../../job/spec.ts";
import type { EnvVar, Replica, RoleBounds } from "../kind.ts";
import { integerSchema, METRICS } from "../kind-spec.ts";

/** JSON Schema of a PyTorchJob's `elasticPolicy`. Source: Kubeflow's ElasticPolicy. */
export const ELASTIC_POLICY: JsonObject = {
  title: "elasticPolicy",
  type: "object",
  additionalProperties: false,
  description: "Makes the workers elastic: torchrun lets them join and leave between minReplicas and maxReplicas.",
  properties: {
    minReplicas: integerSchema("Fewest workers. Omitted: maxReplicas, else the number of workers in the spec.", {
      minimum: 1,
    }),
    maxReplicas: integerSchema("Most workers. Omitted: minReplicas, else the number of workers in the spec.", {
      minimum: 1,
    }),
    rdzvBackend: {
      type: "string",
      enum: ["c10d", "etcd", "etcd-v2"],
      default: "c10d",
      description: "The rendezvous backend.",
    },
    rdzvPort: integerSchema("The port of the rendezvous. Omitted: the port of worker 0.", {
      minimum: 1,
      maximum: 65_535,
    }),
    rdzvHost: { type: "string", minLength: 1, description: "The host of the rendezvous. Omitted: worker 0." },
    rdzvId: { type: "string", description: "The name of the rendezvous." },
    rdzvConf: {
      type: "array",
      description: "Further settings of the rendezvous.",
      items: {
        title: "rdzvConf",
        type: "object",
        additionalProperties: false,
        required: ["key"],
        properties: { key: { type: "string", minLength: 1 }, value: { type: "string" } },
      },
    },
    standalone: {
      type: "boolean",
      default: false,
      description: "True: the job runs on one node, with its own rendezvous.",
    },
    nProcPerNode: integerSchema("The older name of nprocPerNode.", { minimum: 1 }),
    maxRestarts: integerSchema("How often torchrun restarts its workers.", { minimum: 0 }),
    metrics: METRICS,
  },
};

/** True if the job has an elastic policy, even an empty one. */
export function isElastic(kindSpec: JsonObject): boolean {
  return isJsonObject(kindSpec["elasticPolicy"]);
}

/** Processes per node by the older name. Undefined if it is not set. */
export function elasticProcesses(kindSpec: JsonObject): number | undefined {
  return numberAt(objectAt(kindSpec, "elasticPolicy"), "nProcPerNode");
}

/** The contradictions in an elastic policy. */
export function elasticErrors(sent: SentSpec): readonly FieldError[] {
  const { replicaSpecs, kindSpec = {} } = sent;
  if (!isElastic(kindSpec)) return [];
  const path = "spec.kindSpec.elasticPolicy";
  const errors: FieldError[] = [...boundsErrors(sent)];
  if (!Object.keys(replicaSpecs).some((role) => role.toLowerCase() === "worker")) {
    errors.push({ path, message: "needs the replica type Worker" });
  }
  if (elasticProcesses(kindSpec) !== undefined && (kindSpec["nprocPerNode"] ?? null) !== null) {
    errors.push({ path: `${path}.nProcPerNode`, message: "must not be set together with nprocPerNode" });
  }
  return errors;
}

/** Errors if the bounds of an elastic policy exclude each other, or the number of workers in the spec. */
export function boundsErrors({ replicaSpecs, kindSpec = {} }: SentSpec): readonly FieldError[] {
  const policy = objectAt(kindSpec, "elasticPolicy");
  const least = numberAt(policy, "minReplicas") ?? Number.NEGATIVE_INFINITY;
  const most = numberAt(policy, "maxReplicas") ?? Number.POSITIVE_INFINITY;
  if (most < least) {
    return [{ path: "spec.kindSpec.elasticPolicy.maxReplicas", message: `must be at least minReplicas, ${least}` }];
  }
  return Object.entries(replicaSpecs).flatMap(([role, { replicas = 1 }]) => {
    if (role.toLowerCase() !== "worker") return [];
    const path = `spec.replicaSpecs.${role}.replicas`;
    if (replicas < least) return [{ path, message: `must be at least minReplicas, ${least}` }];
    return replicas > most ? [{ path, message: `must be at most maxReplicas, ${most}` }] : [];
  });
}

/** The bounds of the number of workers. None without an elastic policy. */
export function elasticWorkers({ kindSpec, replicaSpecs }: JobSpec): readonly RoleBounds[] {
  if (!isElastic(kindSpec)) return [];
  const { least, most } = boundsOf(kindSpec, replicaSpecs["Worker"]?.replicas ?? 0);
  return [{ name: "Worker", min: least, max: most }];
}

/** Warns that torchrun is told the number of workers alone, although the master is a node too, as with Kubeflow. */
export function masterWarning({ replicaSpecs, kindSpec = {} }: SentSpec): readonly FieldError[] {
  const replicasOf = (name: string) =>
    Object.entries(replicaSpecs).find(([role]) => role.toLowerCase() === name)?.[1].replicas ?? 1;
  const has = (name: string) => Object.keys(replicaSpecs).some((role) => role.toLowerCase() === name);
  const [masters, workers] = [has("master") ? replicasOf("master") : 0, has("worker") ? replicasOf("worker") : 0];
  if (!isElastic(kindSpec) || masters < 1) return [];
  const { least, most } = boundsOf(kindSpec, workers);
  const message =
    `tells torchrun PET_NNODES=${least}:${most}, the number of workers, but the gang has ${masters + workers} nodes ` +
    "with its master; use workers alone";
  return [{ path: "spec.kindSpec.elasticPolicy", message }];
}

/** Both bounds of an elastic policy. An omitted bound equals the other one, or the number of workers. */
function boundsOf(kindSpec: JsonObject, workers: number): { readonly least: number; readonly most: number } {
  const policy = objectAt(kindSpec, "elasticPolicy");
  const least = numberAt(policy, "minReplicas") ?? numberAt(policy, "maxReplicas") ?? workers;
  return { least, most: numberAt(policy, "maxReplicas") ?? least };
}

/** The rendezvous variables of torchrun. Source: Kubeflow's ElasticEnvVarGenerator. */
export function elasticEnv(replica: Replica, workerPort: number): EnvVar[] {
  const policy = objectAt(replica.spec.kindSpec, "elasticPolicy");
  const { least, most } = boundsOf(replica.spec.kindSpec, replica.spec.replicaSpecs["Worker"]?.replicas ?? 0);
  const host = stringAt(policy, "rdzvHost") ?? replicaName(replica.jobName, "Worker", 0);
  const conf = arrayAt(policy, "rdzvConf").map(
    (one) => `${stringAt(one, "key") ?? ""}=${stringAt(one, "value") ?? ""}`,
  );
  const env: readonly { readonly name: string; readonly value: string | undefined }[] = [
    { name: "PET_RDZV_ENDPOINT", value: `${host}:${numberAt(policy, "rdzvPort") ?? workerPort}` },
    { name: "PET_RDZV_BACKEND", value: stringAt(policy, "rdzvBackend") ?? "c10d" },
    { name: "PET_NNODES", value: `${least}:${most}` },
    { name: "PET_MAX_RESTARTS", value: numberAt(policy, "maxRestarts")?.toString() },
    { name: "PET_RDZV_ID", value: stringAt(policy, "rdzvId") },
    { name: "PET_RDZV_CONF", value: conf.length === 0 ? undefined : conf.join(",") },
    { name: "PET_STANDALONE", value: policy["standalone"] === true ? "" : undefined },
  ];
  return env.flatMap(({ name, value }) => (value === undefined ? [] : [{ name, value }]));
}

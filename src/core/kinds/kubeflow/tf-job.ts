import type { JsonObject } from "../../../runtime/json.ts";
import { replicaName } from "../../job/names.ts";
import type { FieldError, SentSpec } from "../../job/request/sent.ts";
import { memberCount, rolesOf } from "../../job/roles.ts";
import { portOf } from "../containers.ts";
import { exampleManifest } from "../example.ts";
import type { ClusterSpec, Kind, Replica, RoleBounds, RoleState, Verdict } from "../kind.ts";
import { kindSpecSchema } from "../kind-spec.ts";
import { allSucceeded, everyoneVerdict, leaderVerdict } from "../verdicts.ts";
import { boundedRoleName } from "./role-name.ts";

const ROLES: readonly RoleBounds[] = [
  { name: "Chief", min: 0, max: 1 },
  { name: "Master", min: 0, max: 1 },
  { name: "Evaluator", min: 0, max: 1 },
  { name: "PS", min: 0, max: null, neverEnds: true },
  { name: "Worker", min: 0, max: null },
];
const PORT = { name: "tfjob-port", number: 2222 };
const CONTAINER = "tensorflow";
const CHIEFS = ["Chief", "Master"];
const ALL_WORKERS = "AllWorkers";

/** Kubeflow's TFJob: the environment is TF_CONFIG. The chief or master leads; without them, the workers lead. */
export const tfJob: Kind = {
  name: "TFJob",
  description:
    "Distributed TensorFlow: chief, master, parameter servers, workers and evaluator find each other by TF_CONFIG. " +
    "Succeeds with the chief or master; without them, with worker 0 or all workers.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "tfReplicaSpecs",
  operatorName: "tfjob-controller",
  defaultContainer: CONTAINER,
  containerRequired: true,
  defaultPort: PORT,
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "Never", restartScope: "REPLICA", backoffLimit: null },
  kindSpecSchema: kindSpecSchema("TFJob", {
    successPolicy: {
      type: "string",
      enum: ["", ALL_WORKERS],
      default: "",
      description: "Without chief and master: succeed with worker 0 (empty), or with all workers (AllWorkers).",
    },
    enableDynamicWorker: {
      type: "boolean",
      default: false,
      description:
        "The number of workers may change while the job runs. TF_CONFIG names the worker and the parameter servers.",
    },
  }),
  validate: () => [],
  warn: dynamicWarning,
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "TFJob",
    replicaSpecsField: "tfReplicaSpecs",
    container: CONTAINER,
    image: "kubeflow/tf-mnist-with-summaries:latest",
    replicas: { Chief: 1, PS: 1, Worker: 2 },
  }),
  clusterSpec,
  objects: () => [],
  isMaster: (members, role, index) =>
    hasChief(Object.keys(members).filter((name) => (members[name] ?? 0) > 0))
      ? CHIEFS.includes(role)
      : role === "Worker" && index === 0,
  elasticRoles: ({ kindSpec }) =>
    kindSpec["enableDynamicWorker"] === true ? [{ name: "Worker", min: 0, max: null }] : [],
  verdict,
};

/** Dynamic workers are told of themselves and the parameter servers alone, so TensorFlow finds no chief. */
function dynamicWarning({ kindSpec = {}, replicaSpecs }: SentSpec): readonly FieldError[] {
  const chief = Object.keys(replicaSpecs).find((role) => CHIEFS.includes(boundedRoleName(ROLES)(role)));
  if (kindSpec["enableDynamicWorker"] !== true || chief === undefined) return [];
  const name = chief.toLowerCase();
  const message =
    `beside ${chief}, TF_CONFIG of the workers names no ${name}, and that of the ${name} names nobody, ` +
    "as with Kubeflow: TensorFlow cannot train in such a cluster; leave out one of the two";
  return [{ path: "spec.kindSpec.enableDynamicWorker", message }];
}

function hasChief(roles: readonly string[]): boolean {
  return roles.some((role) => CHIEFS.includes(role));
}

/**
 * Decides the state of a TFJob, as Kubeflow's UpdateJobStatus does. Failures of dynamic workers do not fail the job.
 * The exception: if dynamic workers lead, the job fails once all of them have ended without its success.
 */
function verdict(states: readonly RoleState[], kindSpec: JsonObject): Verdict {
  const roles = states.map((state) => state.role);
  const dynamic = kindSpec["enableDynamicWorker"] === true;
  const leads = hasChief(roles) ? CHIEFS : ["Worker"];
  if (!roles.some((role) => leads.includes(role))) return everyoneVerdict(states);
  const judged = states.map((state) => (dynamic && state.role === "Worker" ? forgiven(state, leads) : state));
  return leaderVerdict(judged, {
    leads: ({ role }) => leads.includes(role),
    done: (state) =>
      allSucceeded(state) ||
      (state.role === "Worker" && state.firstExitedZero && kindSpec["successPolicy"] !== ALL_WORKERS),
  });
}

/** The state of dynamic workers. Their failures count only if the workers lead and none of them can still run. */
function forgiven(state: RoleState, leads: readonly string[]): RoleState {
  const isIgnored = state.succeeded + state.failedForGood < state.members || !leads.includes(state.role);
  return isIgnored ? { ...state, failedForGood: 0 } : state;
}

/** TF_CONFIG for the default container. A gang of one member trains locally and gets none. */
function clusterSpec(replica: Replica): ClusterSpec {
  if (memberCount(replica.members) === 1) return { env: {}, initContainers: [] };
  const task = { type: replica.role.toLowerCase(), index: replica.index };
  const config =
    replica.spec.kindSpec["enableDynamicWorker"] === true
      ? { cluster: sparseCluster(replica), task }
      : { cluster: wholeCluster(replica), task, environment: "cloud" };
  return { env: { [CONTAINER]: [{ name: "TF_CONFIG", value: JSON.stringify(config) }] }, initContainers: [] };
}

function wholeCluster(replica: Replica): JsonObject {
  const roles = rolesOf(replica.spec).filter((role) => (replica.members[role] ?? 0) > 0);
  return Object.fromEntries(roles.map((role) => [role.toLowerCase(), addresses(replica, role)]));
}

/**
 * The part of the cluster that a dynamic replica knows. A worker knows itself and the parameter servers; a parameter
 * server knows only itself. So other workers may come and go.
 */
function sparseCluster(replica: Replica): JsonObject {
  const own = address(replica, replica.role, replica.index);
  if (replica.role === "PS") return { worker: {}, ps: [own] };
  if (replica.role !== "Worker") return { worker: {}, ps: [] };
  return { worker: { [replica.index]: own }, ps: addresses(replica, "PS") };
}

function addresses(replica: Replica, role: string): readonly string[] {
  return Array.from({ length: replica.members[role] ?? 0 }, (_, index) => address(replica, role, index));
}

function address(replica: Replica, role: string, index: number): string {
  const domain = replica.clusterDomain === "" ? "" : `.${replica.clusterDomain}`;
  const host = `${replicaName(replica.jobName, role, index)}.${replica.namespace}.svc${domain}`;
  return `${host}:${portOf(replica.spec, role, tfJob)}`;
}

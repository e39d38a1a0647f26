/**
 * What the policies of a runtime for torch, JAX and XGBoost tell the nodes of a trainer. Numbers are decided when the
 * job is submitted, and names when a pod is made: the same job may run again under another name. Sources: the plugins
 * of Trainer of these names.
 */
import { type Json, type JsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import { childPodName } from "../jobset/child-jobs.ts";
import type { ClusterSpec, EnvVar, Replica } from "../kind.ts";
import { cpusOf, gpusOf } from "./node-resources.ts";
import { containerOf, type RuntimeGroup, withContainer, withPort } from "./runtime-template.ts";
import { isTorchTune, torchTuneCommand } from "./torch-tune.ts";
import type { TrainJobSpec } from "./train-job-spec.ts";
import { NODE } from "./training-runtime.ts";

/** The member of a kind spec with what the nodes are told. */
export const POLICY_FIELD = "policy";
export const POLICIES = ["torch", "jax", "xgboost"] as const;
type PolicyName = (typeof POLICIES)[number];

const TRAINER_PORT = 29_500;
const INDEX = { fieldRef: { fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']" } };
/** The number of processes that torch counts itself. */
const AUTO = 0;
/** The placeholder for the name of a job in a command. */
const JOB_NAME = "{{.JobName}}";

/** Variables that a TrainJob may not set, by policy. */
export const RESERVED_ENV: Readonly<Record<string, readonly string[]>> = {
  torch: ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"],
  xgboost: ["DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"],
  mpi: [
    "OMPI_MCA_orte_default_hostfile",
    "OMPI_MCA_plm_rsh_args",
    "OMPI_MCA_orte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_set_default_slots",
  ],
};

/** The trainer of a TrainJob, with its runtime's policies. */
export type PolicyContext = {
  readonly trainJob: TrainJobSpec;
  readonly policies: JsonObject;
  readonly numNodes: number;
  /** The command of the runtime's nodes, which that of the TrainJob replaces. */
  readonly runtimeCommand: readonly string[];
};

export function hasPolicy(policies: JsonObject, name: string): boolean {
  return (policies[name] ?? null) !== null;
}

/** The group of the trainer's nodes with the port of the policy, and what its nodes are told. Null: nothing. */
export function withPolicy(
  group: RuntimeGroup,
  of: PolicyContext,
): { readonly group: RuntimeGroup; readonly field: JsonObject | null } {
  const { policies, trainJob, numNodes } = of;
  const name = POLICIES.find((one) => hasPolicy(policies, one));
  const container = containerOf(group, NODE);
  if (trainJob.trainer === null || name === undefined || container === undefined) return { group, field: null };
  const tunes = name === "torch" && isTorchTune(trainJob);
  const processes = name === "torch" ? torchProcesses(container, of) : Math.max(1, gpusOf(container));
  const told = withContainer(group, NODE, (one) => {
    return withPort(tunes ? withTuneCommand(one, of) : one, TRAINER_PORT);
  });
  const field = {
    name,
    group: stringAt(group, "name") ?? "",
    nodes: numNodes,
    processes: processes === "auto" ? AUTO : processes,
  };
  return { group: told, field: tunes ? { ...field, ownEndpoint: true } : field };
}

/**
 * The processes of a node: what the TrainJob says, what the runtime says, `auto` where there are GPUs, or one for each
 * CPU. Trainer looks for GPUs in the TrainJob alone, and starts one process where only the runtime names them.
 */
function torchProcesses(container: JsonObject, { trainJob, policies }: PolicyContext): number | "auto" {
  const asked = trainJob.trainer?.numProcPerNode;
  if (asked !== undefined) return asked;
  const torch = objectAt(policies, "torch");
  const said = numberAt(torch, "numProcPerNode") ?? stringAt(torch, "numProcPerNode");
  const count = Number(said);
  if (said !== undefined && Number.isInteger(count) && count >= 1) return count;
  if (said === "gpu") return "auto";
  return gpusOf(container) > 0 && said !== "cpu" ? "auto" : Math.max(1, cpusOf(container));
}

function withTuneCommand(container: JsonObject, of: PolicyContext): JsonObject {
  const gpus = gpusOf(container);
  const processes = torchProcesses(container, of);
  const endpoint = `${firstHost(JOB_NAME)}:${TRAINER_PORT}`;
  return { ...container, command: torchTuneCommand(of.trainJob, { ...of, gpus, processes, endpoint }) };
}

/** The first node's host name, which all others know. */
function firstHost(jobName: string): string {
  return `${childPodName(jobName, { group: NODE, job: 0, pod: 0 })}.${jobName}`;
}

/** What the policy tells a pod. None: the job has none, or the pod is no node of the trainer. */
export function policyEnv({ spec, role, jobName }: Replica): ClusterSpec["env"] {
  const field: Json = spec.kindSpec[POLICY_FIELD] ?? null;
  const name = POLICIES.find((one) => one === stringAt(field, "name"));
  if (name === undefined || role !== stringAt(field, "group")) return {};
  const of: Told = {
    host: firstHost(jobName),
    nodes: numberAt(field, "nodes") ?? 1,
    processes: numberAt(field, "processes") ?? 1,
    ownEndpoint: objectAt(spec.kindSpec, POLICY_FIELD)["ownEndpoint"] === true,
  };
  return { [NODE]: ENVIRONMENTS[name](of) };
}

type Told = {
  readonly host: string;
  readonly nodes: number;
  /** Of each node. `AUTO`: one for each GPU. */
  readonly processes: number;
  /** True: its command says where the processes find each other. */
  readonly ownEndpoint: boolean;
};

const ENVIRONMENTS: Readonly<Record<PolicyName, (of: Told) => readonly EnvVar[]>> = {
  torch: ({ host, nodes, processes, ownEndpoint }) => [
    variable("PET_NNODES", nodes),
    variable("PET_NPROC_PER_NODE", processes === AUTO ? "auto" : processes),
    { name: "PET_NODE_RANK", valueFrom: INDEX },
    ...(ownEndpoint ? [] : [variable("PET_MASTER_ADDR", host), variable("PET_MASTER_PORT", TRAINER_PORT)]),
  ],
  jax: ({ host, nodes }) => [
    variable("JAX_NUM_PROCESSES", nodes),
    { name: "JAX_PROCESS_ID", valueFrom: INDEX },
    variable("JAX_COORDINATOR_ADDRESS", `${host}:${TRAINER_PORT}`),
  ],
  xgboost: ({ host, nodes, processes }) => [
    variable("DMLC_TRACKER_URI", host),
    variable("DMLC_TRACKER_PORT", TRAINER_PORT),
    { name: "DMLC_TASK_ID", valueFrom: INDEX },
    variable("DMLC_NUM_WORKER", nodes * processes),
  ],
};

function variable(name: string, value: string | number): EnvVar {
  return { name, value: String(value) };
}

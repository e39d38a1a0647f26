/** What the policies of a runtime tell the nodes of a trainer. Sources: the plugins of Trainer of these names. */
import { type Json, type JsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import { cpusOf, gpusOf } from "./node-resources.ts";
import { NODE, type RuntimeGroup, withContainer, withEnv, withPort } from "./runtime-template.ts";
import { isTorchTune, torchTuneCommand } from "./torch-tune.ts";
import type { TrainJobSpec } from "./train-job-spec.ts";

export const TRAINER_PORT = 29_500;
const INDEX = { fieldRef: { fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']" } };

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

/** The trainer of a TrainJob, with its runtime's policy. */
export type PolicyContext = {
  readonly jobName: string;
  readonly trainJob: TrainJobSpec;
  readonly policy: JsonObject;
  readonly numNodes: number;
  /** The command of the runtime's nodes, which that of the TrainJob replaces. */
  readonly runtimeCommand: readonly string[];
};

/** The group of the trainer's nodes as the policy for torch, jax or xgboost has it. */
export function withPolicy(group: RuntimeGroup, of: PolicyContext): RuntimeGroup {
  const { policy, trainJob } = of;
  if (trainJob.trainer === null) return group;
  const [name, env] = Object.entries(ENVIRONMENTS).find(([one]) => hasPolicy(policy, one)) ?? [];
  if (env === undefined) return group;
  return withContainer(group, NODE, (container) => {
    const tuned = name === "torch" && isTorchTune(trainJob) ? withTuneCommand(container, of) : container;
    return withPort(withEnv(tuned, env(container, of)), TRAINER_PORT);
  });
}

export function hasPolicy(policy: JsonObject, name: string): boolean {
  return (policy[name] ?? null) !== null;
}

/** The first node's host name, which all others know. */
export function firstHost(jobName: string): string {
  return `${jobName}-${NODE}-0-0.${jobName}`;
}

function variable(name: string, value: string | number): Json {
  return { name, value: String(value) };
}

function torchEnv(container: JsonObject, of: PolicyContext): readonly Json[] {
  const { jobName, numNodes, trainJob } = of;
  const master = [variable("PET_MASTER_ADDR", firstHost(jobName)), variable("PET_MASTER_PORT", TRAINER_PORT)];
  return [
    variable("PET_NNODES", numNodes),
    variable("PET_NPROC_PER_NODE", torchProcesses(container, of)),
    { name: "PET_NODE_RANK", valueFrom: INDEX },
    ...(isTorchTune(trainJob) ? [] : master),
  ];
}

/**
 * The processes of a node: what the TrainJob says, what the runtime says, `auto` where there are GPUs, or one for each
 * CPU. Trainer looks for GPUs in the TrainJob alone, and starts one process where only the runtime names them.
 */
export function torchProcesses(container: JsonObject, { trainJob, policy }: PolicyContext): number | "auto" {
  const asked = trainJob.trainer?.numProcPerNode;
  if (asked !== undefined) return asked;
  const torch = objectAt(policy, "torch");
  const said = numberAt(torch, "numProcPerNode") ?? stringAt(torch, "numProcPerNode");
  const count = Number(said);
  if (said !== undefined && Number.isInteger(count) && count >= 1) return count;
  if (said === "gpu") return "auto";
  return gpusOf(container) > 0 && said !== "cpu" ? "auto" : Math.max(1, cpusOf(container));
}

function jaxEnv(_container: JsonObject, { jobName, numNodes }: PolicyContext): readonly Json[] {
  return [
    variable("JAX_NUM_PROCESSES", numNodes),
    { name: "JAX_PROCESS_ID", valueFrom: INDEX },
    variable("JAX_COORDINATOR_ADDRESS", `${firstHost(jobName)}:${TRAINER_PORT}`),
  ];
}

function xgboostEnv(container: JsonObject, { jobName, numNodes }: PolicyContext): readonly Json[] {
  return [
    variable("DMLC_TRACKER_URI", firstHost(jobName)),
    variable("DMLC_TRACKER_PORT", TRAINER_PORT),
    { name: "DMLC_TASK_ID", valueFrom: INDEX },
    variable("DMLC_NUM_WORKER", numNodes * Math.max(1, gpusOf(container))),
  ];
}

const ENVIRONMENTS: Readonly<Record<string, (container: JsonObject, of: PolicyContext) => readonly Json[]>> = {
  torch: torchEnv,
  jax: jaxEnv,
  xgboost: xgboostEnv,
};

function withTuneCommand(container: JsonObject, of: PolicyContext): JsonObject {
  const gpus = gpusOf(container);
  const processes = torchProcesses(container, of);
  const endpoint = `${firstHost(of.jobName)}:${TRAINER_PORT}`;
  return { ...container, command: torchTuneCommand(of.trainJob, { ...of, gpus, processes, endpoint }) };
}

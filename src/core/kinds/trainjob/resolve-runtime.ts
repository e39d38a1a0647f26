/**
 * Makes the JobSet of a TrainJob from its runtime. Runs once, when the job is submitted: a later change of the runtime
 * does not reach it.
 */
import { arrayAt, type JsonObject, numberAt, objectAt } from "../../../runtime/json.ts";
import type { SentReader } from "../manifest/sent-reader.ts";
import { checkAgainstRuntime } from "./check-against-runtime.ts";
import { hasPolicy, POLICY_FIELD, withPolicy } from "./ml-policies.ts";
import { MPI_FIELD, withMpi } from "./mpi-policy.ts";
import {
  containerOf,
  groupsOf,
  nameOf,
  podsOf,
  type RuntimeGroup,
  stepOf,
  withContainer,
  withEnv,
  withGroups,
  withPods,
} from "./runtime-template.ts";
import { merged } from "./strategic-merge.ts";
import type { Initializer, TrainJobSpec } from "./train-job-spec.ts";
import { DATASET_STEP, MODEL_STEP, NODE, TRAINER_STEP } from "./training-runtime.ts";

/** The JobSet of a TrainJob. */
export type Resolved = {
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
  /** Members of the kind spec beside those of a JobSet. */
  readonly fields: JsonObject;
};

/**
 * `runtime`: the spec of a runtime that was checked. Names to the reader what the TrainJob asks and the runtime does
 * not have.
 */
export function resolveRuntime(
  reader: SentReader,
  { trainJob, runtime }: { readonly trainJob: TrainJobSpec; readonly runtime: JsonObject },
): Resolved {
  const template = objectAt(runtime, "template");
  const policies = runtime["mlPolicy"] === undefined ? null : objectAt(runtime, "mlPolicy");
  const base = objectAt(template, "spec");
  checkAgainstRuntime(reader, { trainJob, base, policies: policies ?? {} });
  const patched = trainJob.patches.reduce((jobSet, { spec }) => merged(jobSet, spec), base);
  const metadata = trainJob.patches.reduce((all, patch) => merged(all, patch.metadata), objectAt(template, "metadata"));
  const runtimeCommand = commandOf(patched);
  const filled = withGroups(patched, (group) => filledGroup(group, { trainJob, policies }));
  const mpi = objectAt(policies ?? {}, "mpi");
  if (policies !== null && hasPolicy(policies, "mpi")) {
    const { jobSet, field } = withMpi(reader, filled, { policy: mpi, trainJob });
    return { metadata, spec: jobSet, fields: { [MPI_FIELD]: field } };
  }
  let field: JsonObject | null = null;
  const spec = withGroups(filled, (group) => {
    const numNodes = nodesOf(group, { trainJob, policies });
    const sized = withPods(group, numNodes);
    if (stepOf(group) !== TRAINER_STEP || policies === null) return sized;
    const told = withPolicy(sized, { trainJob, policies, numNodes, runtimeCommand });
    field = told.field ?? field;
    return told.group;
  });
  return { metadata, spec, fields: field === null ? {} : { [POLICY_FIELD]: field } };
}

function commandOf(jobSet: JsonObject): readonly string[] {
  const trainer = groupsOf(jobSet).find((group) => stepOf(group) === TRAINER_STEP);
  const container = trainer === undefined ? undefined : containerOf(trainer, NODE);
  return arrayAt(container ?? {}, "command").filter((word) => typeof word === "string");
}

type Of = { readonly trainJob: TrainJobSpec; readonly policies: JsonObject | null };

/** The pods of a child job: the nodes that the TrainJob or the runtime asks for. Groups of no trainer keep theirs. */
function nodesOf(group: RuntimeGroup, { trainJob, policies }: Of): number {
  if (stepOf(group) !== TRAINER_STEP) return podsOf(group);
  const asked = trainJob.trainer?.numNodes;
  if (asked !== undefined) return asked;
  return policies === null ? podsOf(group) : (numberAt(policies, "numNodes") ?? 1);
}

/** The group with what the TrainJob says of its trainer or initializer. */
function filledGroup(group: RuntimeGroup, of: Of): RuntimeGroup {
  const { dataset, model } = of.trainJob;
  const step = stepOf(group);
  if (step === DATASET_STEP) return withStep(group, DATASET_STEP, dataset);
  if (step === MODEL_STEP) return withStep(group, MODEL_STEP, model);
  const launches = objectAt(of.policies ?? {}, "mpi")["runLauncherAsNode"] === true;
  const isTrainer = step === TRAINER_STEP;
  return isTrainer || (launches && nameOf(group) === NODE) ? withTrainer(group, of, isTrainer) : group;
}

/** Nodes beside a launcher that is a node itself get the resources and variables of the trainer, not its program. */
function withTrainer(group: RuntimeGroup, { trainJob: { trainer }, policies }: Of, isTrainer: boolean): RuntimeGroup {
  if (trainer === null) return group;
  const { image, command, args, env, resources } = trainer;
  const program = {
    ...(image === undefined ? {} : { image }),
    ...(command === undefined ? {} : { command }),
    ...(args === undefined ? {} : { args }),
  };
  return withContainer(group, NODE, (container) => {
    const own = resources === undefined || policies === null ? container : withResources(container, resources);
    return withEnv(isTrainer ? { ...own, ...program } : own, env);
  });
}

/** Each resource that is named replaces that of the runtime; the others stay. */
function withResources(container: JsonObject, resources: JsonObject): JsonObject {
  const own = objectAt(container, "resources");
  const amounts = ["limits", "requests"].flatMap((list) => {
    const joined = { ...objectAt(own, list), ...objectAt(resources, list) };
    return Object.keys(joined).length === 0 ? [] : [[list, joined] as const];
  });
  return { ...container, resources: { ...own, ...Object.fromEntries(amounts) } };
}

function withStep(group: RuntimeGroup, name: string, step: Initializer | null): RuntimeGroup {
  if (step === null) return group;
  const { storageUri, env, secret } = step;
  return withContainer(group, name, (container) => {
    const told = withEnv(container, [
      ...(storageUri === undefined ? [] : [{ name: "STORAGE_URI", value: storageUri }]),
      ...env,
    ]);
    if (secret === undefined) return told;
    return { ...told, envFrom: [...arrayAt(container, "envFrom"), { secretRef: { name: secret } }] };
  });
}

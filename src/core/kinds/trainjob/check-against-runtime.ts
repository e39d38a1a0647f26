/** Finds what a TrainJob asks and its runtime does not have. Source: the validation of the plugins of Trainer. */
import { arrayAt, type Json, type JsonObject } from "../../../runtime/json.ts";
import type { SentReader } from "../manifest/sent-reader.ts";
import { hasPolicy, RESERVED_ENV } from "./ml-policies.ts";
import { containerOf, groupsOf, nameOf, podSpecOf, type RuntimeGroup } from "./runtime-template.ts";
import { torchTuneErrors } from "./torch-tune.ts";
import type { RuntimePatch, TrainJobSpec } from "./train-job-spec.ts";
import { DATASET_STEP, INITIALIZER_VOLUME, MODEL_STEP, NODE } from "./training-runtime.ts";

const REF = "spec.runtimeRef";
/** Containers whose variables a TrainJob sets elsewhere. */
const OWN_CONTAINERS = [DATASET_STEP, MODEL_STEP, NODE];
const NAMES_SHOWN = 20;

/** `base`: the JobSet of the runtime, before it is patched. */
export function checkAgainstRuntime(
  reader: SentReader,
  of: { readonly trainJob: TrainJobSpec; readonly base: JsonObject; readonly policies: JsonObject },
): void {
  const { trainJob, base, policies } = of;
  const groups = groupsOf(base);
  if (trainJob.dataset !== null) checkStep(reader, groups, DATASET_STEP);
  if (trainJob.model !== null) checkStep(reader, groups, MODEL_STEP);
  for (const patch of trainJob.patches) {
    for (const [at, job] of groupsOf(patch.spec).entries()) checkPatch(reader, groups, { patch, at, job });
  }
  const tuning = hasPolicy(policies, "torch") ? torchTuneErrors(trainJob) : [];
  for (const { path, message } of tuning) reader.fail(path, message);
  const reserved = Object.entries(RESERVED_ENV).flatMap(([name, all]) => (hasPolicy(policies, name) ? all : []));
  for (const [at, one] of (trainJob.trainer?.env ?? []).entries()) {
    if (reserved.includes(nameOf(one))) reader.fail(`spec.trainer.env[${at}].name`, "is reserved: the runtime sets it");
  }
}

function checkStep(reader: SentReader, groups: readonly RuntimeGroup[], step: string): void {
  const group = groups.find((one) => nameOf(one) === step);
  if (group === undefined) {
    reader.fail(REF, `must name a runtime with the job ${step}, because the TrainJob has such an initializer`);
    return;
  }
  const container = containerOf(group, step);
  if (container === undefined) {
    reader.fail(REF, `must name a runtime whose job ${step} has a container ${step}`);
    return;
  }
  const mounts = arrayAt(container, "volumeMounts").map(nameOf);
  if (!mounts.includes(INITIALIZER_VOLUME)) {
    reader.fail(REF, `must name a runtime whose container ${step} mounts the volume ${INITIALIZER_VOLUME}`);
  }
}

type Patched = { readonly patch: RuntimePatch; readonly at: number; readonly job: RuntimeGroup };

/** A patch of a job or container that the runtime does not have would make pods that never start. */
function checkPatch(reader: SentReader, groups: readonly RuntimeGroup[], { patch, at, job }: Patched): void {
  const path = `${patch.path}.spec.replicatedJobs[${at}]`;
  const group = groups.find((one) => nameOf(one) === nameOf(job));
  if (group === undefined) {
    const known = groups.map(nameOf).slice(0, NAMES_SHOWN).join(", ");
    reader.fail(path, `must be a job of the runtime: ${known}`);
    return;
  }
  const podSpec = podSpecOf(job);
  const containers = [...arrayAt(podSpec, "containers"), ...arrayAt(podSpec, "initContainers")];
  for (const container of containers) checkContainer(reader, group, { path, container });
}

function checkContainer(
  reader: SentReader,
  group: RuntimeGroup,
  { path, container }: { readonly path: string; readonly container: Json },
): void {
  const name = nameOf(container);
  if (containerOf(group, name) === undefined) {
    reader.fail(path, `patches the container ${name.slice(0, 63)}, which the runtime does not have`);
  } else if (OWN_CONTAINERS.includes(name) && arrayAt(container, "env").length > 0) {
    reader.fail(path, `must set no variables of the container ${name}: spec.trainer and spec.initializer do`);
  }
}

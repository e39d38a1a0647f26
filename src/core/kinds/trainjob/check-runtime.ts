/** Finds what is wrong with the spec of a training runtime. Source: the validation of Kubeflow Trainer 2.3. */

import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { JsonMeter } from "../../../runtime/json-bytes.ts";
import { DNS_1035_LABEL } from "../../job/names.ts";
import type { FieldError } from "../../job/request/sent.ts";
import { notShown } from "../../job/request/shown-value.ts";
import { SentReader } from "../manifest/sent-reader.ts";
import { ANCESTOR_STEP, INITIALIZER_VOLUME, STEP_CONTAINERS } from "./training-runtime.ts";

/** Many times a large JobSet. A job keeps the runtime that it was made with. */
const SPEC_BYTES_MAX = 256 * 1024;
const DEPTH_MAX = 64;
const GROUPS_MAX = 100;

const FIELDS: readonly string[] = ["mlPolicy", "podGroupPolicy", "template"];
const SOURCES = ["torch", "mpi", "jax", "xgboost", "flux"] as const;
const PROCESS_WORDS: readonly string[] = ["auto", "cpu", "gpu"];
const MPI_IMPLEMENTATIONS: readonly string[] = ["OpenMPI", "Intel", "MPICH"];
const STEPS = Object.keys(STEP_CONTAINERS) as readonly (keyof typeof STEP_CONTAINERS)[];
const NOT_SERVED = "is not served by Gangway";

/** All errors in the spec of a runtime. Their paths begin with `spec`. */
export function runtimeErrors(spec: JsonObject): readonly FieldError[] {
  const reader = new SentReader();
  if (isDeeper(spec, DEPTH_MAX)) {
    reader.fail("spec", `must have at most ${DEPTH_MAX} lists and objects within each other`);
    return reader.errors;
  }
  const bytes = new JsonMeter().bytesOf(spec);
  if (bytes > SPEC_BYTES_MAX) {
    reader.fail("spec", `must have at most ${SPEC_BYTES_MAX / 1024} KiB as JSON, not ${Math.ceil(bytes / 1024)} KiB`);
    return reader.errors;
  }
  reader.onlyKnown(spec, "spec", FIELDS);
  reader.object(spec["podGroupPolicy"], "spec.podGroupPolicy");
  readPolicy(reader, spec["mlPolicy"], "spec.mlPolicy");
  readTemplate(reader, spec["template"], "spec.template");
  return reader.errors;
}

/** True if more lists and objects than these lie within each other. */
function isDeeper(value: Json | undefined, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

function readPolicy(reader: SentReader, value: Json | undefined, path: string): void {
  const policy = reader.object(value, path);
  if (policy === undefined) return;
  reader.onlyKnown(policy, path, ["numNodes", ...SOURCES]);
  readCount(reader, policy["numNodes"], `${path}.numNodes`);
  const [first, ...others] = SOURCES.filter((name) => policy[name] !== undefined && policy[name] !== null);
  for (const name of others) {
    reader.fail(`${path}.${name}`, `must be omitted beside ${first}: a runtime has one of ${SOURCES.join(", ")}`);
  }
  if ((policy["flux"] ?? null) !== null) reader.fail(`${path}.flux`, NOT_SERVED);
  readTorch(reader, policy["torch"], `${path}.torch`);
  readMpi(reader, policy["mpi"], `${path}.mpi`);
  for (const name of ["jax", "xgboost"]) {
    const source = reader.object(policy[name], `${path}.${name}`);
    if (source !== undefined) reader.onlyKnown(source, `${path}.${name}`, []);
  }
}

function readTorch(reader: SentReader, value: Json | undefined, path: string): void {
  const torch = reader.object(value, path);
  if (torch === undefined) return;
  reader.onlyKnown(torch, path, ["numProcPerNode", "elasticPolicy"]);
  if ((torch["elasticPolicy"] ?? null) !== null) {
    reader.fail(`${path}.elasticPolicy`, `${NOT_SERVED}: a job has numNodes nodes`);
  }
  const processes = torch["numProcPerNode"];
  if (processes === undefined || processes === null) return;
  if (typeof processes === "string" ? PROCESS_WORDS.includes(processes) : isCount(processes)) return;
  const message = `must be ${PROCESS_WORDS.join(", ")} or a whole number from 1 on${notShown(processes)}`;
  reader.fail(`${path}.numProcPerNode`, message);
}

function readMpi(reader: SentReader, value: Json | undefined, path: string): void {
  const mpi = reader.object(value, path);
  if (mpi === undefined) return;
  reader.onlyKnown(mpi, path, ["numProcPerNode", "mpiImplementation", "runLauncherAsNode", "sshAuthMountPath"]);
  readCount(reader, mpi["numProcPerNode"], `${path}.numProcPerNode`);
  reader.flag(mpi["runLauncherAsNode"], `${path}.runLauncherAsNode`);
  const implementation = reader.text(mpi["mpiImplementation"], `${path}.mpiImplementation`);
  if (implementation !== undefined && !MPI_IMPLEMENTATIONS.includes(implementation)) {
    const message = `must be one of ${MPI_IMPLEMENTATIONS.join(", ")}${notShown(implementation)}`;
    reader.fail(`${path}.mpiImplementation`, message);
  }
  const mount = reader.text(mpi["sshAuthMountPath"], `${path}.sshAuthMountPath`);
  if (mount !== undefined && (!mount.startsWith("/") || mount.split("/").includes(".."))) {
    reader.fail(`${path}.sshAuthMountPath`, `must be an absolute path without ..${notShown(mount)}`);
  }
}

function readCount(reader: SentReader, value: Json | undefined, path: string): void {
  if (value === undefined || value === null || isCount(value)) return;
  reader.fail(path, `must be a whole number from 1 on${notShown(value)}`);
}

function isCount(value: Json): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value < 2 ** 31;
}

/** The metadata and the spec of a JobSet. */
function readTemplate(reader: SentReader, value: Json | undefined, path: string): void {
  if (value === undefined || value === null) reader.fail(path, "is required: it has the JobSet of each job");
  const template = reader.object(value, path);
  if (template === undefined) return;
  reader.onlyKnown(template, path, ["metadata", "spec"]);
  reader.object(template["metadata"], `${path}.metadata`);
  const set = reader.object(template["spec"] ?? {}, `${path}.spec`);
  if (set === undefined) return;
  const groups = set["replicatedJobs"] ?? [];
  const at = `${path}.spec.replicatedJobs`;
  if (!Array.isArray(groups)) reader.fail(at, `must be a list${notShown(groups)}`);
  else if (groups.length >= 1 && groups.length <= GROUPS_MAX) readGroups(reader, groups, at);
  else reader.fail(at, `must have 1 to ${GROUPS_MAX} items, not ${groups.length}`);
}

function readGroups(reader: SentReader, groups: readonly Json[], path: string): void {
  const names = new Set<string>();
  for (const [index, value] of groups.entries()) {
    const at = `${path}[${index}]`;
    if (isJsonObject(value)) {
      readName(reader, value["name"] ?? "", { path: `${at}.name`, names });
      readStep(reader, value, at);
    } else reader.fail(at, `must be an object${notShown(value)}`);
  }
}

/** `names`: those of the groups before. */
function readName(
  reader: SentReader,
  name: Json,
  { path, names }: { readonly path: string; readonly names: Set<string> },
): void {
  if (typeof name !== "string" || !DNS_1035_LABEL.test(name)) {
    reader.fail(path, `must be a DNS label with a letter first, such as node${notShown(name)}`);
  } else if (names.has(name)) reader.fail(path, `is ${name}, which an earlier item has`);
  else names.add(name);
}

/** Checks a job that a TrainJob changes: the trainer's, or that of an initializer. */
function readStep(reader: SentReader, group: JsonObject, path: string): void {
  const template = objectAt(group, "template");
  const label = objectAt(objectAt(template, "metadata"), "labels")[ANCESTOR_STEP];
  if (label === undefined) return;
  const step = STEPS.find((one) => one === label);
  if (step === undefined) {
    const at = `${path}.template.metadata.labels[${JSON.stringify(ANCESTOR_STEP)}]`;
    reader.fail(at, `must be one of ${STEPS.join(", ")}${notShown(label)}`);
    return;
  }
  const replicas = group["replicas"] ?? 1;
  if (replicas !== 1) {
    reader.fail(`${path}.replicas`, `must be 1 or omitted: the job has the step ${step}${notShown(replicas)}`);
  }
  const pod = objectAt(objectAt(objectAt(template, "spec"), "template"), "spec");
  readContainer(reader, arrayAt(pod, "containers"), { path: `${path}.template.spec.template.spec.containers`, step });
}

function readContainer(
  reader: SentReader,
  containers: readonly Json[],
  { path, step }: { readonly path: string; readonly step: keyof typeof STEP_CONTAINERS },
): void {
  const name = STEP_CONTAINERS[step];
  const at = containers.findIndex((one) => stringAt(one, "name") === name);
  if (at < 0) reader.fail(path, `must have a container ${name}: the job has the step ${step}`);
  if (at < 0 || step === "trainer") return;
  const mounts = arrayAt(containers[at], "volumeMounts");
  if (mounts.some((mount) => stringAt(mount, "name") === INITIALIZER_VOLUME)) return;
  reader.fail(`${path}[${at}].volumeMounts`, `must mount the volume ${INITIALIZER_VOLUME}: the step ${step} fills it`);
}

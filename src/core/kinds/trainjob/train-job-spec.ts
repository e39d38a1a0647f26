/** The members of a TrainJob, as its manifest says them. Source: `TrainJobSpec` of `trainer.kubeflow.org/v1alpha1`. */
import { arrayAt, type Json, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { managedBy } from "../manifest/managed-by.ts";
import { readDeadline } from "../manifest/read-times.ts";
import type { SentReader } from "../manifest/sent-reader.ts";
import { RUNTIME_KINDS, type RuntimeName, TRAINER_API_VERSION, TRAINER_GROUP } from "./training-runtime.ts";

const OWN_CONTROLLER = `${TRAINER_GROUP}/trainjob-controller`;
const PATCHES_MAX = 64;
const MEMBERS = [
  "runtimeRef",
  "initializer",
  "trainer",
  "runtimePatches",
  "podTemplateOverrides",
  "labels",
  "annotations",
  "suspend",
  "managedBy",
  "activeDeadlineSeconds",
];
const TRAINER_MEMBERS = ["image", "command", "args", "env", "numNodes", "resourcesPerNode", "numProcPerNode"];
const STEP_MEMBERS = ["storageUri", "env", "secretRef"];
/** Text with a scheme, such as `hf://org/model`. */
const STORAGE_URI = /^[a-z][a-z0-9+.-]{0,30}:\/\/.+$/i;
/** A domain and a path, such as `acme.io/portal`. */
const MANAGER = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/[A-Za-z0-9/%:@._~!$&'()*+,;=-]{1,253}$/;

/** The runtime that a TrainJob names. */
export type RuntimeRef = { readonly kind: (typeof RUNTIME_KINDS)[number]; readonly name: string };

/** What a TrainJob says of its trainer. Omitted members: as the runtime says. */
export type Trainer = {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env: readonly Json[];
  readonly numNodes?: number;
  readonly numProcPerNode?: number;
  readonly resources?: JsonObject;
};

/** What a TrainJob says of a step that brings a dataset or a model. */
export type Initializer = {
  readonly storageUri?: string;
  readonly env: readonly Json[];
  /** The secret whose keys become variables. */
  readonly secret?: string;
};

/** A patch of a runtime's JobSet: its metadata, and its spec. */
export type RuntimePatch = { readonly path: string; readonly metadata: JsonObject; readonly spec: JsonObject };

export type TrainJobSpec = {
  readonly runtime: RuntimeRef;
  /** Null: the TrainJob has none, so no variables are set for one. */
  readonly trainer: Trainer | null;
  readonly dataset: Initializer | null;
  readonly model: Initializer | null;
  /** Later ones win. */
  readonly patches: readonly RuntimePatch[];
  readonly suspend?: boolean;
  readonly activeDeadlineSeconds?: number;
};

/** Reads the members. Names every wrong one to the reader. */
export function readTrainJobSpec(reader: SentReader, spec: JsonObject): TrainJobSpec {
  reader.onlyKnown(spec, "spec", MEMBERS);
  managedBy(reader, spec["managedBy"], "spec.managedBy", OWN_CONTROLLER);
  const suspend = reader.flag(spec["suspend"], "spec.suspend");
  const activeDeadlineSeconds = readDeadline(reader, spec, "spec");
  const initializer = reader.object(spec["initializer"], "spec.initializer") ?? {};
  reader.onlyKnown(initializer, "spec.initializer", ["dataset", "model"]);
  return {
    runtime: readRef(reader, spec),
    trainer: readTrainer(reader, spec),
    dataset: readStep(reader, initializer["dataset"], "spec.initializer.dataset"),
    model: readStep(reader, initializer["model"], "spec.initializer.model"),
    patches: [...readPatches(reader, spec), ...readOverrides(reader, spec)],
    ...(suspend === undefined ? {} : { suspend }),
    ...(activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds }),
  };
}

/** The runtime that a manifest in a namespace names. Null: it is no TrainJob, or names none that may exist. */
export function runtimeNamedIn(manifest: Json, namespace: string): RuntimeName | null {
  const isTrainJob =
    stringAt(manifest, "kind") === "TrainJob" && stringAt(manifest, "apiVersion") === TRAINER_API_VERSION;
  if (!isTrainJob) return null;
  const {
    name,
    kind = RUNTIME_KINDS[0],
    apiGroup = TRAINER_GROUP,
  } = objectAt(objectAt(manifest, "spec"), "runtimeRef");
  const known = RUNTIME_KINDS.find((one) => one === kind);
  if (typeof name !== "string" || known === undefined || apiGroup !== TRAINER_GROUP) return null;
  return { namespace: known === "TrainingRuntime" ? namespace : "", name };
}

function readRef(reader: SentReader, spec: JsonObject): RuntimeRef {
  const path = "spec.runtimeRef";
  const ref = reader.object(spec["runtimeRef"], path) ?? reader.fail(path, "is required") ?? {};
  reader.onlyKnown(ref, path, ["name", "kind", "apiGroup"]);
  const name = reader.text(ref["name"], `${path}.name`) ?? reader.fail(`${path}.name`, "is required") ?? "";
  const group = reader.text(ref["apiGroup"], `${path}.apiGroup`) ?? TRAINER_GROUP;
  if (group !== TRAINER_GROUP) reader.fail(`${path}.apiGroup`, `must be ${TRAINER_GROUP}`);
  const kind = reader.text(ref["kind"], `${path}.kind`) ?? RUNTIME_KINDS[0];
  const known = RUNTIME_KINDS.find((one) => one === kind);
  if (known === undefined) reader.fail(`${path}.kind`, `must be ${RUNTIME_KINDS.join(" or ")}`);
  return { kind: known ?? RUNTIME_KINDS[0], name };
}

function readTrainer(reader: SentReader, spec: JsonObject): Trainer | null {
  const path = "spec.trainer";
  const trainer = reader.object(spec["trainer"], path);
  if (trainer === undefined) return null;
  reader.onlyKnown(trainer, path, TRAINER_MEMBERS);
  const image = reader.text(trainer["image"], `${path}.image`);
  const command = reader.texts(trainer["command"], `${path}.command`);
  const args = reader.texts(trainer["args"], `${path}.args`);
  const numNodes = atLeastOne(reader, trainer, "numNodes");
  const numProcPerNode = atLeastOne(reader, trainer, "numProcPerNode");
  const resources = reader.object(trainer["resourcesPerNode"], `${path}.resourcesPerNode`);
  return {
    env: readEnv(reader, trainer["env"], `${path}.env`),
    ...(image === undefined ? {} : { image }),
    ...(command === undefined ? {} : { command }),
    ...(args === undefined ? {} : { args }),
    ...(numNodes === undefined ? {} : { numNodes }),
    ...(numProcPerNode === undefined ? {} : { numProcPerNode }),
    ...(resources === undefined ? {} : { resources }),
  };
}

function atLeastOne(reader: SentReader, trainer: JsonObject, member: string): number | undefined {
  const path = `spec.trainer.${member}`;
  const number = reader.wholeNumber(trainer[member], path, { least: 1 });
  return number === undefined || number >= 1 ? number : reader.fail(path, "must be at least 1");
}

function readEnv(reader: SentReader, value: Json | undefined, path: string): readonly Json[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    reader.fail(path, "must be a list of variables");
    return [];
  }
  return value;
}

function readStep(reader: SentReader, value: Json | undefined, path: string): Initializer | null {
  const step = reader.object(value, path);
  if (step === undefined) return null;
  reader.onlyKnown(step, path, STEP_MEMBERS);
  const storageUri = reader.text(step["storageUri"], `${path}.storageUri`);
  if (storageUri !== undefined && !STORAGE_URI.test(storageUri)) {
    reader.fail(`${path}.storageUri`, "must begin with a scheme, such as hf:// or s3://");
  }
  const ref = reader.object(step["secretRef"], `${path}.secretRef`);
  const secret = ref === undefined ? undefined : reader.text(ref["name"], `${path}.secretRef.name`);
  return {
    env: readEnv(reader, step["env"], `${path}.env`),
    ...(storageUri === undefined ? {} : { storageUri }),
    ...(secret === undefined ? {} : { secret }),
  };
}

function readPatches(reader: SentReader, spec: JsonObject): readonly RuntimePatch[] {
  return listOf(reader, spec, "runtimePatches").flatMap((value, at): readonly RuntimePatch[] => {
    const path = `spec.runtimePatches[${at}]`;
    const patch = reader.object(value, path) ?? {};
    reader.onlyKnown(patch, path, ["manager", "time", "trainingRuntimeSpec"]);
    const manager = reader.text(patch["manager"], `${path}.manager`) ?? "";
    if (!MANAGER.test(manager)) reader.fail(`${path}.manager`, "must be a domain and a path, such as acme.io/portal");
    const runtime = reader.object(patch["trainingRuntimeSpec"], `${path}.trainingRuntimeSpec`) ?? {};
    const template = objectAt(runtime, "template");
    return [
      {
        path: `${path}.trainingRuntimeSpec.template`,
        metadata: objectAt(template, "metadata"),
        spec: objectAt(template, "spec"),
      },
    ];
  });
}

/** The overrides of Trainer 2.1, which patch pod templates: the same as patches. */
function readOverrides(reader: SentReader, spec: JsonObject): readonly RuntimePatch[] {
  return listOf(reader, spec, "podTemplateOverrides").map((value, at): RuntimePatch => {
    const path = `spec.podTemplateOverrides[${at}]`;
    const override = reader.object(value, path) ?? {};
    reader.onlyKnown(override, path, ["targetJobs", "metadata", "spec"]);
    const template = { metadata: objectAt(override, "metadata"), spec: objectAt(override, "spec") };
    const replicatedJobs = arrayAt(override, "targetJobs").map((job) => {
      return { ...objectAt({ job }, "job"), template: { spec: { template } } };
    });
    return { path, metadata: {}, spec: { replicatedJobs } };
  });
}

function listOf(reader: SentReader, spec: JsonObject, member: string): readonly Json[] {
  const value = spec[member] ?? [];
  const path = `spec.${member}`;
  if (!Array.isArray(value)) return reader.fail(path, "must be a list") ?? [];
  if (value.length > PATCHES_MAX) return reader.fail(path, `must have at most ${PATCHES_MAX} items`) ?? [];
  return value;
}

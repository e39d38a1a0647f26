import { type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/request/sent.ts";
import { readInterface, type TaskVariable } from "./flyte/task-interface.ts";
import type { GpuAccelerator } from "./gpu-selectors.ts";

/** The annotations of a template that the platform acts on. */
export const POD_ANNOTATION = {
  /** The model of GPU, as the nodes are labelled with it. */
  gpuDevice: "gangway.dev/gpu-device",
  /** The size of a GPU partition, such as `1g.5gb`. `unpartitioned`: whole GPUs. */
  gpuPartitionSize: "gangway.dev/gpu-partition-size",
  /** The name of the platform's pod template to build the pod on. */
  podTemplate: "gangway.dev/pod-template",
  /** Keys of secrets, separated by commas: `SECRET/KEY` for a variable, `SECRET/KEY:file` for a file. */
  secrets: "gangway.dev/secrets",
  /** The places to download inputs from and to upload outputs to. */
  inputs: "gangway.dev/inputs",
  outputs: "gangway.dev/outputs",
  /** The folders of inputs and outputs in the primary container, in place of the platform's. */
  inputPath: "gangway.dev/input-path",
  outputPath: "gangway.dev/output-path",
  /** The form in which Flyte's co-pilot writes the inputs. */
  inputFormat: "gangway.dev/input-format",
  /** The names and types of inputs and outputs, `model=blob, epochs=integer`, for Flyte's co-pilot. */
  inputInterface: "gangway.dev/input-interface",
  outputInterface: "gangway.dev/output-interface",
  /** `true` or `false`: whether pods of this replica type are interruptible, in place of the run policy's word. */
  interruptible: "gangway.dev/interruptible",
  /** The places of the task's template, and of checkpoints, which only placeholders name. */
  taskTemplate: "gangway.dev/task-template",
  checkpoints: "gangway.dev/checkpoints",
} as const;

export type SecretKey = { readonly secret: string; readonly key: string; readonly asFile: boolean };

/** What a template says about its co-pilot. Empty: nothing, so that the platform's setting counts. */
export type PilotRequests = {
  readonly inputPath: string;
  readonly outputPath: string;
  readonly format: string;
  readonly inputs: readonly TaskVariable[];
  readonly outputs: readonly TaskVariable[];
};

export type AnnotationRequests = {
  readonly accelerator: GpuAccelerator;
  /** Empty: the platform's default. */
  readonly podTemplate: string;
  readonly secrets: readonly SecretKey[];
  /** Empty: none. */
  readonly inputs: string;
  readonly outputs: string;
  readonly pilot: PilotRequests;
  readonly errors: readonly FieldError[];
};

/** The forms of inputs that Flyte's co-pilot can write. */
const FORMATS = ["JSON", "YAML", "PROTO"];
const PATH_CHARS_MAX = 4_096;
const UNPARTITIONED = "unpartitioned";
const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const SECRET_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)\/([-._a-zA-Z0-9]{1,253})(:file|:env)?$/;

/** Reads the annotations of a template. Paths of errors start at the template. */
export function readAnnotations(template: JsonObject): AnnotationRequests {
  const annotations = objectAt(objectAt(template, "metadata"), "annotations");
  const at = (key: string) => (stringAt(annotations, key) ?? "").trim();
  const errors: FieldError[] = [];
  const fail = (key: string, message: string) => errors.push({ path: annotationPath(key), message });
  for (const key of [POD_ANNOTATION.gpuDevice, POD_ANNOTATION.gpuPartitionSize]) {
    if (at(key) !== "" && !LABEL_VALUE.test(at(key))) fail(key, `is "${shown(at(key))}": must be a label's value`);
  }
  const secrets = at(POD_ANNOTATION.secrets)
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .flatMap((text): SecretKey[] => {
      const match = SECRET_KEY.exec(text);
      const [, secret = "", , key = "", how] = match ?? [];
      if (match !== null && key !== "." && !key.startsWith("..")) return [{ secret, key, asFile: how === ":file" }];
      fail(POD_ANNOTATION.secrets, `has "${shown(text)}": must be SECRET/KEY for a variable, or SECRET/KEY:file`);
      return [];
    });
  const interruptible = at(POD_ANNOTATION.interruptible);
  if (!["", "true", "false"].includes(interruptible)) {
    fail(POD_ANNOTATION.interruptible, `is "${shown(interruptible)}": must be true or false`);
  }
  const partition = at(POD_ANNOTATION.gpuPartitionSize);
  const pilot = pilotOf(at, fail);
  return {
    accelerator: {
      device: at(POD_ANNOTATION.gpuDevice),
      partitionSize: partition === UNPARTITIONED ? "" : partition,
      unpartitioned: partition === UNPARTITIONED,
    },
    podTemplate: at(POD_ANNOTATION.podTemplate),
    secrets,
    inputs: at(POD_ANNOTATION.inputs),
    outputs: at(POD_ANNOTATION.outputs),
    pilot,
    errors,
  };
}

function pilotOf(at: (key: string) => string, fail: (key: string, message: string) => void): PilotRequests {
  const { inputPath, outputPath, inputFormat, inputInterface, outputInterface } = POD_ANNOTATION;
  for (const key of [inputPath, outputPath]) {
    const path = at(key);
    if (path === "" || (path.startsWith("/") && path !== "/" && path.length <= PATH_CHARS_MAX)) continue;
    fail(key, `is "${shown(path)}": must be a folder such as /data/in, of at most ${PATH_CHARS_MAX} characters`);
  }
  if (at(inputPath) !== "" && at(inputPath) === at(outputPath))
    fail(outputPath, "must not be the folder of the inputs");
  const format = at(inputFormat);
  if (format !== "" && !FORMATS.includes(format)) {
    fail(inputFormat, `is "${shown(format)}": must be one of ${FORMATS.join(", ")}`);
  }
  const variablesAt = (key: string): readonly TaskVariable[] => {
    if (at(key) === "") return [];
    const outcome = readInterface(at(key));
    if (outcome.kind === "interface") return outcome.variables;
    fail(key, outcome.message);
    return [];
  };
  return {
    inputPath: at(inputPath),
    outputPath: at(outputPath),
    format,
    inputs: variablesAt(inputInterface),
    outputs: variablesAt(outputInterface),
  };
}

export function annotationPath(key: string): string {
  return `metadata.annotations[${JSON.stringify(key)}]`;
}

function shown(text: string): string {
  return text.slice(0, 80);
}

import { type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/request/sent.ts";
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
} as const;

export type SecretKey = { readonly secret: string; readonly key: string; readonly asFile: boolean };

export type AnnotationRequests = {
  readonly accelerator: GpuAccelerator;
  /** Empty: the platform's default. */
  readonly podTemplate: string;
  readonly secrets: readonly SecretKey[];
  /** Empty: none. */
  readonly inputs: string;
  readonly outputs: string;
  readonly errors: readonly FieldError[];
};

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
  const partition = at(POD_ANNOTATION.gpuPartitionSize);
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
    errors,
  };
}

export function annotationPath(key: string): string {
  return `metadata.annotations[${JSON.stringify(key)}]`;
}

function shown(text: string): string {
  return text.slice(0, 80);
}

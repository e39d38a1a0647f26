import { type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";
import type { GpuAccelerator } from "./gpu-selectors.ts";

/** What a template's annotations ask of the platform. */
export const POD_ANNOTATION = {
  /** A GPU's model, as the platform's nodes are labelled with it. */
  gpuDevice: "gangway.dev/gpu-device",
  /** The size of a partition of a GPU such as `1g.5gb`; `unpartitioned`: whole GPUs. */
  gpuPartitionSize: "gangway.dev/gpu-partition-size",
  /** The platform's template that the pod is built on. */
  podTemplate: "gangway.dev/pod-template",
  /** Keys of secrets, as `SECRET/KEY` for a variable and `SECRET/KEY:file` for a file, with commas between them. */
  secrets: "gangway.dev/secrets",
  /** Where inputs are fetched from, and where outputs are taken to. */
  inputs: "gangway.dev/inputs",
  outputs: "gangway.dev/outputs",
} as const;

export type SecretKey = { readonly secret: string; readonly key: string; readonly asFile: boolean };

export type Asked = {
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

/** Reads what a template asks for; errors are paths from the template. */
export function readAsked(template: JsonObject): Asked {
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

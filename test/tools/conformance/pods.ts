import { fixedLengthName } from "../../../src/core/job/fixed-length-name.ts";
import { preferOfNodes, requireOfNodes } from "../../../src/core/pods/build-affinity.ts";
import { selectGpus } from "../../../src/core/pods/gpu-selectors.ts";
import { mergePodSpecs } from "../../../src/core/pods/merge-pod-specs.ts";
import {
  adjustOrDefault,
  customizeResources,
  holdInRange,
  mergeResources,
  toResourceList,
} from "../../../src/core/pods/platform-resources.ts";
import { PLAIN_POD_CONFIG, type PodConfig, type ResourceList } from "../../../src/core/pods/pod-config.ts";
import { parseQuantity } from "../../../src/core/pods/quantity.ts";
import { platformTolerations, requireInterruptible, updatePod } from "../../../src/core/pods/update-pod.ts";
import {
  arrayAt,
  canonicalJson,
  isJsonObject,
  type Json,
  type JsonObject,
  numberAt,
  objectAt,
  stringAt,
} from "../../../src/runtime/json.ts";
import { equalLoosely } from "./compare.ts";

type Run = (input: JsonObject, config: PodConfig) => Json | undefined;

/** Our function for each function of Flyte. */
const FUNCTIONS: Readonly<Record<string, Run>> = {
  AdjustOrDefaultResource: (input) =>
    adjustOrDefault(
      { request: textAt(input, "request"), limit: textAt(input, "limit") },
      { request: textAt(input, "platformDefault"), limit: textAt(input, "platformLimit") },
    ),
  EnsureResourceRange: (input) =>
    holdInRange({ request: textAt(input, "request"), limit: textAt(input, "limit") }, textAt(input, "platformLimit")),
  ApplyResourceOverrides: (input, config) =>
    customizeResources(
      objectAt(input, "resources"),
      {
        defaults: listAt(objectAt(input, "platformResources"), "requests"),
        limits: listAt(objectAt(input, "platformResources"), "limits"),
      },
      { mode: input["assignIfUnset"] === true ? "assign" : "hold", config },
    ),
  MergeResources: (input) => mergeResources(objectAt(input, "out"), objectAt(input, "in")),
  ToK8sResourceList: (input, config) => {
    const entries = arrayAt(input, "entries").map((one) => ({
      name: textAt(one, "Name"),
      value: textAt(one, "Value"),
    }));
    const outcome = toResourceList(entries, config.gpuResourceName);
    return { error: outcome.kind === "refused", list: outcome.kind === "list" ? outcome.list : null };
  },
  ApplyGPUNodeSelectors: (input, config) =>
    scheduling(
      selectGpus(
        objectAt(input, "podSpec"),
        {
          device: stringAt(input, "device") ?? "",
          partitionSize: stringAt(input, "partitionSize") ?? "",
          unpartitioned: input["unpartitioned"] === true,
        },
        config,
      ),
    ),
  GetPodTolerations: (input, config) =>
    platformTolerations(
      input["interruptible"] === true,
      arrayAt(input, "resourceRequirements").filter(isJsonObject),
      config,
    ),
  ApplyInterruptibleNodeAffinity: (input, config) =>
    scheduling(requireInterruptible(input["interruptible"] === true, objectAt(input, "podSpec"), config)),
  ApplyInterruptibleNodeSelectorRequirement: (input, config) =>
    objectAt(
      requireInterruptible(input["interruptible"] === true, { affinity: objectAt(input, "affinity") }, config),
      "affinity",
    ),
  AddRequiredNodeSelectorRequirements: (input) =>
    requireOfNodes(affinityOf(input), arrayAt(input, "requirements").filter(isJsonObject)),
  AddPreferredNodeSelectorRequirements: (input) =>
    preferOfNodes(
      affinityOf(input),
      numberAt(input, "weight") ?? 0,
      arrayAt(input, "requirements").filter(isJsonObject),
    ),
  UpdatePod: (input, config) =>
    updatePod(objectAt(input, "podSpec"), {
      interruptible: input["interruptible"] === true,
      serviceAccount: stringAt(input, "serviceAccount") ?? "",
      resources: arrayAt(input, "resourceRequirements").filter(isJsonObject),
      config,
    }),
  MergePodSpecs: (input) => {
    const { basePodSpec, podSpec } = input;
    if (!isJsonObject(basePodSpec) || !isJsonObject(podSpec)) return { error: true };
    return mergePodSpecs(basePodSpec, podSpec, {
      container: stringAt(input, "primaryContainerName") ?? "",
      initContainer: stringAt(input, "primaryInitContainerName") ?? "",
    });
  },
  FixedLengthUniqueID: (input) => named(input, [stringAt(input, "iD") ?? ""]),
  FixedLengthUniqueIDForParts: (input) =>
    named(
      input,
      arrayAt(input, "parts").map((part) => String(part)),
    ),
  GetGeneratedNameWith: (input) => named(input, [stringAt(input, "iD") ?? ""]),
};

export function runsOnPods(fn: string): boolean {
  return Object.hasOwn(FUNCTIONS, fn);
}

/** Runs one function that builds pods or names. Compares quantities by value, and sets as sets. */
export function buildPods(fn: string, config: JsonObject, input: JsonObject, expected: Json): readonly string[] {
  const found = FUNCTIONS[fn]?.(input, { ...PLAIN_POD_CONFIG, ...(config as Partial<PodConfig>) }) ?? null;
  const wanted = refused(expected) ? { error: true } : expected;
  return equalLoosely(comparable(wanted, ""), comparable(refused(found) ? { error: true } : found, ""))
    ? []
    : [`expected ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`];
}

function refused(value: Json): boolean {
  return isJsonObject(value) && (value["error"] === true || Boolean(value["err"]));
}

function named(input: JsonObject, parts: readonly string[]): Json {
  const lengths = { min: numberAt(input, "minLength") ?? 0, max: numberAt(input, "maxLength") ?? 0 };
  const outcome = fixedLengthName(parts, lengths, numberAt(input, "algorithm") === 2 ? 128 : 64);
  return outcome.kind === "name" ? { output: outcome.name } : { error: true };
}

function scheduling(podSpec: JsonObject): JsonObject {
  const { affinity = null, tolerations = null, nodeSelector = null } = podSpec;
  return { affinity, tolerations, nodeSelector };
}

function affinityOf(input: JsonObject): JsonObject {
  return objectAt(input, isJsonObject(input["affinity"]) ? "affinity" : "base");
}

function textAt(value: unknown, member: string): string {
  const inner = isJsonObject(value) ? value[member] : undefined;
  return typeof inner === "string" || typeof inner === "number" ? String(inner) : "0";
}

function listAt(value: JsonObject, member: string): ResourceList {
  const names = Object.keys(objectAt(value, member));
  return Object.fromEntries(names.map((name) => [name, textAt(objectAt(value, member), name)]));
}

const SETS = ["tolerations", "matchExpressions", "matchFields", "values"];
const QUANTITIES = ["request", "limit"];

function comparable(value: Json | undefined, member: string): Json | undefined {
  if (Array.isArray(value)) {
    const items = value.map((one) => comparable(one, "") ?? null);
    return SETS.includes(member) || isTolerations(value)
      ? items.sort((a, b) => (canonicalJson(a) < canonicalJson(b) ? -1 : 1))
      : items;
  }
  if (typeof value === "boolean") return value || null;
  if (!isJsonObject(value)) return QUANTITIES.includes(member) ? amount(value) : value === 0 ? null : value;
  const inner = Object.entries(value).map(([name, one]): [string, Json | undefined] => {
    if (!["requests", "limits", "list"].includes(member)) return [name, comparable(one, name)];
    return [name, amount(one)];
  });
  return Object.fromEntries(inner);
}

function isTolerations(value: readonly Json[]): boolean {
  return value.length > 0 && value.every((one) => isJsonObject(one) && "effect" in one);
}

function amount(value: Json | undefined): Json {
  const nano = parseQuantity(String(value ?? "0"))?.nano ?? null;
  return nano === null ? String(value) : nano === 0n ? null : String(nano);
}

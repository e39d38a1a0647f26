import { isJsonObject, type JsonObject } from "../../runtime/json.ts";
import { DNS_1035_LABEL } from "../job/names.ts";
import { joinErrors } from "../job/request/notes.ts";
import type { FieldError } from "../job/request/sent.ts";
import type { PodPlacing } from "../pods/build/pod-placing.ts";
import { POD_BYTES_MAX } from "../pods/pod-size.ts";
import { type AnswerBounds, passedAnswerBound } from "./answer-size.ts";
import type { ClusterSpec, GangService, Verdict } from "./kind.ts";

const VERDICTS: readonly Verdict[] = ["running", "succeeded", "failed", null];
const CLUSTER_SPEC: readonly (keyof ClusterSpec)[] = [
  "env",
  "defaultEnv",
  "initContainers",
  "volumes",
  "volumeMounts",
  "command",
  "serviceAccount",
  "labels",
  "annotations",
  "hostname",
  "subdomain",
  "placing",
];
const PLACING: readonly (keyof PodPlacing)[] = ["nodeSelector", "tolerations", "podAffinity", "podAntiAffinity"];
const SERVICE: readonly (keyof GangService)[] = ["name", "selector", "publishNotReadyAddresses"];
/** Kubernetes' names of hosts and subdomains. */
const HOST = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Lists and objects within each other, many more than a volume or a role has. */
const DEPTH_MAX = 64;
/** No pod takes more. */
const CLUSTER_SPEC_BOUNDS: AnswerBounds = { bytesMax: POD_BYTES_MAX, depthMax: DEPTH_MAX };
/** All objects of one gang. They are in memory together. */
const OBJECTS_BOUNDS: AnswerBounds = { bytesMax: 16 * 1024 * 1024, depthMax: DEPTH_MAX };
/** Each object is a call to the cluster. One for each of a thousand members is enough for the largest gangs. */
const OBJECTS_MAX = 1_000;
/** The kinds of objects that Gangway may create beside pods and services, as the permissions in clusters say. */
const OBJECT_KINDS = ["ConfigMap", "ServiceAccount", "Role", "RoleBinding"];

/** @throws Error that names the size that is passed, or the member that cannot become part of a pod. */
export function checkedClusterSpec(answer: unknown): ClusterSpec {
  mustFit(answer, "clusterSpec", CLUSTER_SPEC_BOUNDS);
  const spec = objectOf(answer, "clusterSpec must return an object with env and initContainers, not a promise");
  mustKnow(spec, CLUSTER_SPEC, "clusterSpec returned");
  checkEnv("env", spec["env"]);
  checkEnv("defaultEnv", spec["defaultEnv"] ?? {});
  listOf(spec["initContainers"], "clusterSpec's initContainers");
  if (spec["volumes"] !== undefined) listOf(spec["volumes"], "clusterSpec's volumes");
  const { volumeMounts = {}, command = {}, serviceAccount } = spec;
  const mounts = objectOf(volumeMounts, "clusterSpec's volumeMounts must be lists by container");
  for (const [container, list] of Object.entries(mounts)) listOf(list, `clusterSpec's volumeMounts.${container}`);
  const commands = objectOf(command, "clusterSpec's command must be { command, args } by container");
  for (const [container, one] of Object.entries(commands)) {
    const isCommand = isJsonObject(one) && isTexts(one["command"]) && isTexts(one["args"]);
    must(isCommand, `clusterSpec's command.${container} must have command and args, lists of texts`);
  }
  const named = serviceAccount === undefined || typeof serviceAccount === "string";
  must(named, "clusterSpec's serviceAccount must be text");
  for (const member of ["labels", "annotations"] as const) checkTexts(spec[member] ?? {}, `clusterSpec's ${member}`);
  for (const member of ["hostname", "subdomain"] as const) {
    const host = spec[member];
    const isHost = host === undefined || (typeof host === "string" && HOST.test(host));
    must(isHost, `clusterSpec's ${member} must be at most 63 lower-case letters, digits and dashes`);
  }
  if (spec["placing"] !== undefined) checkPlacing(spec["placing"]);
  return spec as ClusterSpec;
}

function checkPlacing(value: unknown): void {
  const placing = objectOf(value, `clusterSpec's placing must be an object with ${PLACING.join(", ")}`);
  mustKnow(placing, PLACING, "clusterSpec returned placing");
  const { nodeSelector = {}, ...lists } = placing;
  checkTexts(nodeSelector, "clusterSpec's placing.nodeSelector");
  for (const [member, list] of Object.entries(lists)) listOf(list, `clusterSpec's placing.${member}`);
}

function checkEnv(member: "env" | "defaultEnv", value: unknown): void {
  const byContainer = objectOf(value, `clusterSpec must return ${member} as lists by container`);
  for (const [container, list] of Object.entries(byContainer)) {
    const path = `clusterSpec's ${member}.${container}`;
    for (const variable of listOf(list, path)) checkVariable(variable, path);
  }
}

function checkVariable(variable: JsonObject, path: string): void {
  const { name, value, valueFrom } = variable;
  must(typeof name === "string" && name !== "", `${path} has a variable without a name`);
  must(value === undefined || typeof value === "string", `${path} has ${name}, whose value must be text`);
  must(valueFrom === undefined || isJsonObject(valueFrom), `${path} has ${name}, whose valueFrom must be an object`);
}

/** Reads undefined as null. @throws Error that names the size that is passed, or the member that is not allowed. */
export function checkedService(answer: unknown): GangService | null {
  if (answer === undefined || answer === null) return null;
  mustFit(answer, "service", CLUSTER_SPEC_BOUNDS);
  const service = objectOf(answer, `service must return null or an object with ${SERVICE.join(", ")}, not a promise`);
  mustKnow(service, SERVICE, "service returned");
  const { name, selector, publishNotReadyAddresses } = service;
  const isLabel = typeof name === "string" && DNS_1035_LABEL.test(name);
  must(isLabel, "service's name must be a letter, then at most 62 lower-case letters, digits and dashes");
  checkTexts(selector, "service's selector");
  must(typeof publishNotReadyAddresses === "boolean", "service's publishNotReadyAddresses must be true or false");
  return service as GangService;
}

/** @throws Error that names the size that is passed, or the first object that cannot be created. */
export function checkedObjects(answer: unknown): readonly JsonObject[] {
  const count = Array.isArray(answer) ? answer.length : 0;
  must(count <= OBJECTS_MAX, `objects returned ${count} objects; at most ${OBJECTS_MAX} are allowed`);
  mustFit(answer, "objects", OBJECTS_BOUNDS);
  const objects = listOf(answer, "the result of objects");
  for (const [at, { apiVersion, kind, metadata }] of objects.entries()) {
    const known = OBJECT_KINDS.some((one) => one === kind);
    must(known, `objects returned a ${kind} at ${at}; it may return ${OBJECT_KINDS.join(", ")}`);
    must(typeof apiVersion === "string", `objects returned a ${kind} without apiVersion at ${at}`);
    const named = isJsonObject(metadata) && typeof metadata["name"] === "string";
    must(named, `objects returned a ${kind} without metadata.name at ${at}`);
  }
  return objects;
}

/** Reads undefined as null. @throws Error if the answer is not a verdict. */
export function checkedVerdict(answer: unknown): Verdict {
  const found = VERDICTS.find((one) => one === (answer ?? null));
  must(found !== undefined, `verdict returned ${shown(answer)}; it must return running, succeeded, failed or null`);
  return found ?? null;
}

/** @throws Error if the answer is not a list of errors. */
export function checkedErrors(answer: unknown): readonly FieldError[] {
  const errors = listOf(answer, "the result of validate");
  const areErrors = errors.every(({ path, message }) => typeof path === "string" && typeof message === "string");
  must(areErrors, "the result of validate must be a list of { path, message }, both text");
  // A plugin may give members of its own.
  const plain = (errors as unknown as readonly FieldError[]).map(({ path, message }) => ({ path, message }));
  return joinErrors("spec", plain);
}

function mustFit(answer: unknown, name: string, bounds: AnswerBounds): void {
  const passed = passedAnswerBound(answer, bounds);
  must(passed === null, `${name} returned ${passed}, which is not allowed`);
}

function objectOf(value: unknown, otherwise: string): JsonObject {
  must(isJsonObject(value) && !("then" in value), otherwise);
  return value as JsonObject;
}

function listOf(value: unknown, name: string): readonly JsonObject[] {
  must(Array.isArray(value) && value.every(isJsonObject), `${name} must be a list of objects`);
  return value as readonly JsonObject[];
}

function checkTexts(value: unknown, name: string): void {
  const texts = objectOf(value, `${name} must be texts by name`);
  must(isTexts(Object.values(texts)), `${name} must be texts by name`);
}

function mustKnow(answer: JsonObject, members: readonly string[], what: string): void {
  const unknown = Object.keys(answer).find((member) => !members.includes(member));
  must(unknown === undefined, `${what} ${unknown}; it may return ${members.join(", ")}`);
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function shown(value: unknown): string {
  return typeof value === "string" ? value.slice(0, 100) : `a value of type ${typeof value}`;
}

function must(holds: boolean, message: string): void {
  if (!holds) throw new Error(message);
}

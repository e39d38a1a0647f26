/** The rules for the metadata of a pod: its name, labels, and the annotations that Kubernetes reads. */
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../../../runtime/json.ts";
import type { Finding, Findings } from "../finding.ts";
import { labelFindings, qualifiedKeys } from "../label-findings.ts";
import { inside, type PodPlace } from "../place.ts";
import { SYNTAX } from "../syntax.ts";
import type { WholePod } from "../whole-pod.ts";

const ANNOTATIONS_BYTES_MAX = 256 * 1024;
const ROOT = inside(null, "metadata");

/** What is wrong with the metadata of a pod. */
export function judgeMetadata(metadata: JsonObject, pod: WholePod, findings: Findings): void {
  const name = inside(ROOT, "name");
  for (const detail of SYNTAX.subdomain.problems(pod.name)) {
    findings.add({ kind: "invalid", place: name, value: pod.name, detail, allowed: SYNTAX.subdomain.allowed });
  }
  for (const one of labelFindings(objectAt(metadata, "labels"), inside(ROOT, "labels"))) findings.add(one);
  const annotations = objectAt(metadata, "annotations");
  const at = inside(ROOT, "annotations");
  for (const one of qualifiedKeys(annotations, at)) findings.add(one);
  let bytes = 0;
  for (const key in annotations) {
    const value = annotations[key] ?? "";
    if (typeof value !== "string") continue;
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    for (const one of annotationFindings(key, value, pod)) findings.add(one);
  }
  if (bytes <= ANNOTATIONS_BYTES_MAX) return;
  findings.add({ kind: "tooLong", place: at, detail: `may not be more than ${ANNOTATIONS_BYTES_MAX} bytes` });
}

const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST = "localhost/";

type AnnotationRule = (value: string, place: PodPlace, pod: WholePod) => readonly Finding[];

/** The annotations that Kubernetes reads, by key. */
const ANNOTATIONS: Readonly<Record<string, AnnotationRule>> = {
  "kubernetes.io/config.mirror": (value, place, { spec }) =>
    spec["nodeName"] ? [] : [invalid(place, value, "must set spec.nodeName if mirror pod annotation is set")],
  "controller.kubernetes.io/pod-deletion-cost": (value, place) =>
    isInt32Text(value) ? [] : [invalid(place, value, "must be a 32bit integer")],
  "scheduler.alpha.kubernetes.io/tolerations": (value, place) =>
    value === "" || isJsonList(value) ? [] : [invalid(place, value, "must be a list of tolerations as JSON")],
  [SECCOMP_POD]: (value, place, { spec }) => seccompFindings(value, place, [objectAt(spec, "securityContext")]),
};

function annotationFindings(key: string, value: string, pod: WholePod): readonly Finding[] {
  const rule = Object.hasOwn(ANNOTATIONS, key) ? ANNOTATIONS[key] : undefined;
  const isOfContainer = key.startsWith(SECCOMP_CONTAINER) || key.startsWith(APPARMOR_CONTAINER);
  if (rule === undefined && !isOfContainer) return [];
  const place = inside(inside(ROOT, "annotations"), { key });
  if (rule !== undefined) return rule(value, place, pod);
  if (key.startsWith(APPARMOR_CONTAINER)) return appArmorFindings(key, value, { place, pod });
  return seccompFindings(value, place, contextsOf(pod, key.slice(SECCOMP_CONTAINER.length)));
}

function invalid(place: PodPlace, value: string, detail: string): Finding {
  return { kind: "invalid", place, value, detail };
}

function isInt32Text(text: string): boolean {
  return /^(?:0|-?[0-9]{1,10})$/.test(text) && !/^0./.test(text) && Math.abs(Number(text) + 0.5) < 2 ** 31;
}

function isJsonList(text: string): boolean {
  try {
    return Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
}

/** The security contexts of the containers of a name. */
function contextsOf(pod: WholePod, name: string): readonly JsonObject[] {
  return containersOf(pod)
    .filter((container) => stringAt(container, "name") === name)
    .map((container) => objectAt(container, "securityContext"));
}

function containersOf({ spec }: WholePod): readonly JsonObject[] {
  return ["initContainers", "containers"].flatMap((list) => arrayAt(spec, list).filter(isJsonObject));
}

const SECCOMP: Readonly<Record<string, readonly string[]>> = {
  Unconfined: ["unconfined"],
  RuntimeDefault: ["runtime/default", "docker/default"],
};

function seccompFindings(value: string, place: PodPlace, contexts: readonly JsonObject[]): readonly Finding[] {
  const isLocal = value.startsWith(LOCALHOST);
  const known = isLocal || Object.values(SECCOMP).flat().includes(value);
  const problems = isLocal ? SYNTAX.relativePath.problems(value.slice(LOCALHOST.length)) : [];
  const wrong = known ? problems : ["must be a valid seccomp profile"];
  const differs = contexts.some((context) => {
    const profile = context["seccompProfile"];
    if (!isJsonObject(profile)) return false;
    const type = stringAt(profile, "type") ?? "";
    if (type === "Localhost") return value !== `${LOCALHOST}${stringAt(profile, "localhostProfile") ?? ""}`;
    return SECCOMP[type] !== undefined && !SECCOMP[type].includes(value);
  });
  const detail = "seccomp type in annotation and field must match";
  return [
    ...wrong.map((problem): Finding => ({ kind: "invalid", place, value, detail: problem })),
    ...(differs ? [{ kind: "forbidden", place, detail } as const] : []),
  ];
}

const APPARMOR: Readonly<Record<string, string>> = { Unconfined: "unconfined", RuntimeDefault: "runtime/default" };

function appArmorFindings(
  key: string,
  value: string,
  { place, pod }: { readonly place: PodPlace; readonly pod: WholePod },
): readonly Finding[] {
  const name = key.slice(APPARMOR_CONTAINER.length);
  const own = containersOf(pod).filter((container) => stringAt(container, "name") === name);
  const isKnown = value === "" || value.startsWith(LOCALHOST) || Object.values(APPARMOR).includes(value);
  const differs =
    pod.os !== "windows" &&
    own.some((container) => {
      const profile = profileOf(container, pod);
      const type = stringAt(profile, "type") ?? "";
      if (type === "Localhost") return value !== `${LOCALHOST}${stringAt(profile, "localhostProfile") ?? ""}`;
      return APPARMOR[type] !== undefined && APPARMOR[type] !== value;
    });
  const missing: Finding = { kind: "invalid", place, value: name, detail: "container not found" };
  const wrong: Finding = {
    kind: "invalid",
    place,
    value,
    detail: `invalid AppArmor profile name: ${JSON.stringify(value)}`,
  };
  const other: Finding = { kind: "forbidden", place, detail: "apparmor type in annotation and field must match" };
  return [...(own.length > 0 ? [] : [missing]), ...(isKnown ? [] : [wrong]), ...(differs ? [other] : [])];
}

function profileOf(container: JsonObject, { spec }: WholePod): JsonObject {
  const own = objectAt(container, "securityContext")["appArmorProfile"];
  return isJsonObject(own) ? own : objectAt(objectAt(spec, "securityContext"), "appArmorProfile");
}

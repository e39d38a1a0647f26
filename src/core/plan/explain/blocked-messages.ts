import { foreignText } from "../../../runtime/foreign-text.ts";
import type { BlockedPod, PodObstacle } from "../model/blocked-pod.ts";
import { amountWords } from "./message-parts.ts";

/** Says why a cluster does not take a gang, and what keeps one of its pods off the nearest node. */
export function describeBlocked(
  blocked: BlockedPod,
  of: {
    readonly cluster: string;
    /** The gang's request. */
    readonly gang: string;
    /** How many of its pods fit: now, or if it is too large, on the empty cluster. */
    readonly fit: number;
    readonly tooLarge: boolean;
  },
): string {
  const { cluster, gang, fit, tooLarge } = of;
  if (blocked.node === null) return `needs ${gang}; cluster ${cluster} has no nodes`;
  const pod = `${blocked.role} pod`;
  if (blocked.never) {
    const article = /^[AEIOU]/i.test(pod) ? "an" : "a";
    return `no node of cluster ${cluster} can ever take ${article} ${pod}: ${nodesLack(blocked)}`;
  }
  const fits = tooLarge ? `${cluster} takes ${fit} even when it is empty` : `${fit} fit now on ${cluster}`;
  return `needs ${gang}; ${fits}; for the ${blocked.placed === 0 ? "first" : "next"} ${pod}, ${nodesLack(blocked)}`;
}

/** Longer than each name that Kubernetes accepts, whatever a cluster reports. */
const NAME_BYTES_MAX = 1_024;
/** Obstacles that a sentence names. More would hide the end of the sentence. */
const OBSTACLES_NAMED = 3;

/** The obstacles on the nearest nodes: `node gpu-3 lacks memory (needs 2Ti, has 1.37Ti allocatable)`. */
function nodesLack({ node, nodes, obstacles }: BlockedPod): string {
  const verb = (one: string, many: string) => (nodes === 1 ? one : many);
  const phrase = (begin: string, kinds: readonly PodObstacle["kind"][], end = "") => {
    const named = obstacles.slice(0, OBSTACLES_NAMED).filter(({ kind }) => kinds.includes(kind));
    return named.length === 0 ? [] : [`${begin} ${named.map(obstacleWords).join(" and ")}${end}`];
  };
  const more = obstacles.length - OBSTACLES_NAMED;
  const parts = [
    ...phrase(verb("lacks", "lack"), ["resource", "label"]),
    ...phrase(verb("has", "have"), ["taint"], ", not tolerated"),
    ...phrase(verb("does not meet", "do not meet"), ["affinity"]),
    ...phrase(verb("takes", "take"), ["unschedulable"]),
    ...(more > 0 ? [`${more} more in the way`] : []),
  ];
  const where = nodes === 1 ? `node ${foreignText(node ?? "", NAME_BYTES_MAX)}` : `${nodes} nodes`;
  return `${where} ${parts.join(", and ")}`;
}

function obstacleWords(obstacle: PodObstacle): string {
  const name = obstacleName(obstacle);
  switch (obstacle.kind) {
    case "resource":
      return `${name} ${amountsOf(obstacle)}`;
    case "label":
      return `label ${name}${obstacle.flavor === undefined ? "" : ` of flavor ${obstacle.flavor}`}`;
    case "taint":
      return `taint ${name}`;
    case "affinity":
      return name === "" ? "a node affinity that no node can meet" : `node affinity ${name}`;
    case "unschedulable":
      return "no new pods now";
  }
}

function amountsOf({ resource, need, available, allocatable }: Extract<PodObstacle, { readonly kind: "resource" }>) {
  const needs = `needs ${amountWords(resource, need, Math.ceil)}`;
  if (allocatable === 0) return `(${needs}, has none)`;
  const all = amountWords(resource, allocatable, Math.floor);
  if (available === allocatable) return `(${needs}, has ${all} allocatable)`;
  return `(${needs}, has ${amountWords(resource, available, Math.floor)} of ${all} free)`;
}

/** An obstacle in short: `memory`, `gpu=h100`, `zone in (a, b)`, `dedicated=infra:NoSchedule`, or empty. */
export function obstacleName(obstacle: PodObstacle): string {
  return foreignText(nameOf(obstacle), NAME_BYTES_MAX);
}

function nameOf(obstacle: PodObstacle): string {
  switch (obstacle.kind) {
    case "resource":
      return obstacle.resource;
    case "label":
      return `${obstacle.key}=${obstacle.value}`;
    case "taint":
      return `${obstacle.key}${obstacle.value === "" ? "" : `=${obstacle.value}`}:${obstacle.effect}`;
    case "affinity":
      return obstacle.key === "" ? "" : expressionWords(obstacle);
    case "unschedulable":
      return "";
  }
}

function expressionWords({ key, operator, values }: Extract<PodObstacle, { readonly kind: "affinity" }>): string {
  const list = `(${values.join(", ")})`;
  const words: Readonly<Record<string, string>> = {
    In: `${key} in ${list}`,
    NotIn: `${key} not in ${list}`,
    Exists: `${key} exists`,
    DoesNotExist: `${key} does not exist`,
    Gt: `${key} > ${values[0]}`,
    Lt: `${key} < ${values[0]}`,
  };
  return words[operator] ?? `${key} ${operator} ${list}`;
}

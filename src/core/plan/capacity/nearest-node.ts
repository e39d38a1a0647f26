import { missingLabels, type NodeObstacle, nodeAllows, nodeObstacles, readyNode } from "../../pods/node-match.ts";
import type { BlockedPod, PodObstacle } from "../model/blocked-pod.ts";
import { allowsNode, type FitClass, type Judgement, NO_NODE, type Rules } from "./fit-classes.ts";
import type { FreeCapacity } from "./free-capacity.ts";

/** The node that is nearest to taking a pod. */
type NearestNode = Pick<BlockedPod, "node" | "nodes" | "obstacles">;

type PodOnNodes = {
  readonly free: FreeCapacity;
  readonly fit: FitClass;
  /** True: only nodes count that could take the pod if nothing ran on them. */
  readonly mayTake: boolean;
};

/**
 * The node with the fewest obstacles for one more pod. Of several, the one that lacks the smallest parts of its
 * resources, then the first by name.
 */
export function nearestNode(of: PodOnNodes, flavorOf: Readonly<Record<string, string>>): NearestNode {
  const best = nearestSlot(of);
  if (best < 0) return { node: null, nodes: 0, obstacles: [] };
  let nodes = 0;
  for (let slot = 0; slot < of.free.slotCount; slot++) if (isAlike(of, slot, best) && counts(of, slot)) nodes += 1;
  return { node: of.free.nodeAt(best)?.name ?? null, nodes, obstacles: obstaclesOf(of, best, flavorOf) };
}

function nearestSlot(of: PodOnNodes): number {
  const { free, fit } = of;
  let best = -1;
  let [least, smallest] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let slot = 0; slot < free.slotCount; slot++) {
    const nodeClass = free.classAt(fit.rules.keys, slot);
    if (nodeClass === NO_NODE) continue;
    const ruled = judge(fit.rules, nodeClass).obstacles.length;
    const count = ruled + lackCount(of, slot);
    if (count > least) continue;
    const size = ruled + lackSize(of, slot);
    const isNearer = count < least || size < smallest || (size === smallest && free.isNamedBefore(slot, best));
    if (!isNearer || !counts(of, slot)) continue;
    best = slot;
    least = count;
    smallest = size;
  }
  return best;
}

/** How many resources a node lacks for the pod. */
function lackCount({ free, fit }: PodOnNodes, slot: number): number {
  let count = 0;
  for (let at = 0; at < fit.columns.length; at++) {
    if ((fit.amounts[at] as number) > Math.max(0, free.freeAt(fit.columns[at] as number, slot))) count += 1;
  }
  return count;
}

/** The parts of the pod's requests that a node lacks, added up. */
function lackSize({ free, fit }: PodOnNodes, slot: number): number {
  let size = 0;
  for (let at = 0; at < fit.columns.length; at++) {
    const need = fit.amounts[at] as number;
    const available = Math.max(0, free.freeAt(fit.columns[at] as number, slot));
    if (need > available) size += (need - available) / need;
  }
  return size;
}

/** True if a node counts as one that may take the pod. */
function counts({ free, fit, mayTake }: PodOnNodes, slot: number): boolean {
  const nodeClass = free.classAt(fit.rules.keys, slot);
  if (nodeClass === NO_NODE) return false;
  if (!mayTake) return true;
  if (!judge(fit.rules, nodeClass).allowsReady) return false;
  for (let at = 0; at < fit.columns.length; at++) {
    if ((fit.amounts[at] as number) > free.allocatableAt(fit.columns[at] as number, slot)) return false;
  }
  return true;
}

/** True if two slots have nodes with the same obstacles. */
function isAlike({ free: freeNow, fit }: PodOnNodes, one: number, other: number): boolean {
  const { keys } = fit.rules;
  const nodeClass = freeNow.classAt(keys, one);
  if (nodeClass === NO_NODE) return false;
  const { key } = judge(fit.rules, nodeClass);
  if (key !== judge(fit.rules, freeNow.classAt(keys, other)).key) return false;
  for (let at = 0; at < fit.columns.length; at++) {
    const column = fit.columns[at] as number;
    const need = fit.amounts[at] as number;
    const free = Math.max(0, freeNow.freeAt(column, one));
    const others = Math.max(0, freeNow.freeAt(column, other));
    if (need <= free && need <= others) continue;
    if (free !== others || freeNow.allocatableAt(column, one) !== freeNow.allocatableAt(column, other)) return false;
  }
  return true;
}

/** Everything that keeps one more pod off a node: resources, the scarcest first, then labels, then the pod's rules. */
function obstaclesOf(
  { free, fit }: PodOnNodes,
  slot: number,
  flavorOf: Readonly<Record<string, string>>,
): readonly PodObstacle[] {
  const lacking = fit.columns.flatMap((column, at): readonly PodObstacle[] => {
    const need = fit.amounts[at] as number;
    const available = Math.max(0, free.freeAt(column, slot));
    if (need <= available) return [];
    const resource = free.fits.columns.nameOf(column);
    return [{ kind: "resource", resource, need, available, allocatable: free.allocatableAt(column, slot) }];
  });
  const { obstacles, ofFlavors } = judge(fit.rules, free.classAt(fit.rules.keys, slot));
  const ruled = obstacles.map((one, at): PodObstacle => {
    const flavor = one.kind === "label" && at < ofFlavors ? flavorOf[one.key] : undefined;
    return one.kind === "label" && flavor !== undefined ? { ...one, flavor } : one;
  });
  return [...lacking, ...ruled];
}

function judge(rules: Rules, nodeClass: number): Judgement {
  const known = rules.judged[nodeClass];
  if (known !== undefined) return known;
  const made = newJudgement(rules, nodeClass);
  rules.judged[nodeClass] = made;
  return made;
}

function newJudgement(rules: Rules, nodeClass: number): Judgement {
  const { scheduling, nodeLabels, keys } = rules;
  const node = keys.examples[nodeClass];
  if (node === undefined) return { obstacles: [], ofFlavors: 0, key: "", allowsReady: false };
  const isOwn = (rule: NodeObstacle) => rule.kind !== "label" || nodeLabels[rule.key] !== rule.value;
  const ofFlavors = missingLabels(nodeLabels, node.labels);
  const own = nodeAllows(scheduling, node) ? [] : nodeObstacles(scheduling, node).filter(isOwn);
  const obstacles = [...ofFlavors, ...own];
  const key = JSON.stringify(obstacles);
  return { obstacles, ofFlavors: ofFlavors.length, key, allowsReady: allowsNode(rules, readyNode(node)) };
}

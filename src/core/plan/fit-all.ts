import { canonicalJson, type Json } from "../../runtime/json.ts";
import { compareDemand, fill, type NodeLabels, nodesFor, type PlacedPods, place } from "./fit.ts";
import { type MemberGroup, podCount } from "./gang.ts";
import type { Shape } from "./shapes.ts";

/**
 * Larger gangs are not searched exhaustively: a search would cost the plan more time than a rare placement is worth.
 */
const SEARCHED_PODS_MAX = 16;
const SEARCH_STEPS_MAX = 300;
/** The largest groups, up to this number, are each tried first. Each try places all pods again. */
const LEADERS_MAX = 8;

/**
 * Places all pods, or as many as best fit places. Pods that are all alike are placed whenever that is possible. Groups
 * of different pods can take each other's nodes. So if best fit fails, other groups are tried first, and small
 * gangs are searched exhaustively.
 */
export function placeAll(shapes: readonly Shape[], gang: readonly MemberGroup[], nodeLabels: NodeLabels): PlacedPods {
  const groups = mergeAlike(gang).sort(compareDemand);
  const need = podCount(groups);
  const first = place(shapes, groups, nodeLabels);
  if (first.placed === need) return first;
  if (groups.some((group) => place(shapes, [group], nodeLabels).placed < group.count)) return first;
  for (const leader of groups.slice(1, 1 + LEADERS_MAX)) {
    const lead = place(shapes, [leader], nodeLabels);
    const rest = groups.filter((group) => group !== leader);
    const others = place(lead.left, rest, nodeLabels);
    if (lead.placed + others.placed === need) return { placed: need, left: others.left };
  }
  const found = need > SEARCHED_PODS_MAX ? null : search(shapes, groups, nodeLabels);
  return found === null ? first : { placed: need, left: found };
}

/** Everything of a group's pods that a fit depends on. Groups with equal values are interchangeable. */
export function fitKeyOf({ scheduling, requests }: MemberGroup): Json {
  return [scheduling, requests];
}

/** Merges the groups of roles whose pods request the same resources and may run on the same nodes. */
export function mergeAlike(groups: readonly MemberGroup[]): MemberGroup[] {
  const merged = new Map<string, MemberGroup>();
  for (const group of groups) {
    const key = canonicalJson(fitKeyOf(group));
    const known = merged.get(key);
    merged.set(key, known === undefined ? group : { ...known, count: known.count + group.count });
  }
  return [...merged.values()];
}

/** Tries every pod on every shape that takes it, tightest first. Null if the steps run out or no way works. */
function search(
  shapes: readonly Shape[],
  groups: readonly MemberGroup[],
  nodeLabels: NodeLabels,
): readonly Shape[] | null {
  const pods = groups.flatMap((group) => Array.from({ length: group.count }, () => ({ ...group, count: 1 })));
  const dead = new Set<string>();
  let steps = 0;
  const from = (at: number, left: readonly Shape[]): readonly Shape[] | null => {
    const pod = pods[at];
    if (pod === undefined) return left;
    const key = canonicalJson([at, left.map((shape) => [shape.node.name, shape.free, shape.count])]);
    if (dead.has(key)) return null;
    for (const shape of nodesFor(left, pod, nodeLabels).open) {
      steps += 1;
      if (steps > SEARCH_STEPS_MAX) return null;
      const others = left.filter((other) => other !== shape);
      const found = from(at + 1, [...others, ...fill(shape, pod.requests, 1).parts]);
      if (found !== null) return found;
    }
    dead.add(key);
    return null;
  };
  return from(0, shapes);
}

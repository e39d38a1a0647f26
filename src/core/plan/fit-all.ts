import { canonicalJson } from "../../runtime/json.ts";
import { compareDemand, fill, nodesFor, type Placement, place } from "./fit.ts";
import { kindOf, type MemberGroup, podCount } from "./gang.ts";
import type { Shape } from "./shapes.ts";

type Labels = Readonly<Record<string, string>>;

/** A gang of more pods is not searched for exhaustively: by then the plan's time is worth more than the last odd placement. */
const SEARCHED_PODS_MAX = 16;
const SEARCH_STEPS_MAX = 300;
/** Of more kinds of pods than these only the largest get their turn: each turn places all pods again. */
const LEADERS_MAX = 8;

/**
 * Places all pods or as many as the first try does. One kind of pods is always placed if that is possible at all. Several kinds can
 * stand in each other's way, so where best fit fails kinds get their turn to go first, and small gangs are searched for.
 */
export function placeAll(shapes: readonly Shape[], gang: readonly MemberGroup[], nodeLabels: Labels): Placement {
  const groups = mergeKinds(gang).sort(compareDemand);
  const need = podCount(groups);
  const first = place(shapes, groups, nodeLabels);
  if (first.placed === need || groups.length < 2) return first;
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

/** Roles whose pods ask for the same and may run on the same nodes are one kind of pods. */
export function mergeKinds(groups: readonly MemberGroup[]): MemberGroup[] {
  const kinds = new Map<string, MemberGroup>();
  for (const group of groups) {
    const key = canonicalJson(kindOf(group));
    kinds.set(key, { ...group, count: group.count + (kinds.get(key)?.count ?? 0) });
  }
  return [...kinds.values()];
}

/** Tries pod after pod on every shape that takes it, tightest first; null if the steps run out or no way works. */
function search(shapes: readonly Shape[], groups: readonly MemberGroup[], nodeLabels: Labels): readonly Shape[] | null {
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

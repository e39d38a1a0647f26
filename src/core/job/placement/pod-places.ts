/** Where pods are planned and where they are, for users who ask why a pod is not on its planned node. */
import { compareRoles, replicaKey } from "../roles.ts";
import { type Placement, placesIn } from "./placement.ts";

/** A node that an admission's placement names, as its cluster was last recorded. */
export type NamedNode = {
  readonly name: string;
  /** False: the cluster has no such node. */
  readonly exists: boolean;
  /** Why it takes no pods: `cordoned`. Empty: it takes pods. */
  readonly trouble: string;
  /** The members of the admission that are on it. Replica types are in lower case. */
  readonly members: readonly { readonly role: string; readonly index: number }[];
};

/** A placement and its nodes. */
export type PlannedNodes = { readonly placement: Placement; readonly nodes: readonly NamedNode[] };

/** The planned node of a member. */
export type MemberPlace = {
  readonly role: string;
  readonly index: number;
  readonly planned: string;
  /** The node that shows its pod. Empty: none does. */
  readonly node: string;
};

/** The planned members of some replica types in the order of these, and where each one is. */
export function podPlaces(
  { placement, nodes }: PlannedNodes,
  members: Readonly<Record<string, number>>,
): MemberPlace[] {
  const places = placesIn(placement);
  const seen = new Map(
    nodes.flatMap((node) => node.members.map(({ role, index }) => [replicaKey(role, index), node.name])),
  );
  const found: MemberPlace[] = [];
  for (const role of Object.keys(members).sort(compareRoles)) {
    for (let index = 0; index < (members[role] ?? 0); index++) {
      const planned = places(role, index)?.node;
      if (planned === undefined) continue;
      found.push({ role, index, planned, node: seen.get(replicaKey(role.toLowerCase(), index)) ?? "" });
    }
  }
  return found;
}

/** Why a pod is on another node than planned. Empty: it is not. */
export function whyOffPlan(
  { planned, node }: Pick<MemberPlace, "planned" | "node">,
  nodes: readonly NamedNode[],
): string {
  if (node === "" || planned === node) return "";
  const { exists = false, trouble = "" } = nodes.find(({ name }) => name === planned) ?? {};
  if (!exists) return `planned on ${planned}, which is gone`;
  if (trouble !== "") return `planned on ${planned}, which is ${trouble} now`;
  return `planned on ${planned}; the scheduler chose another node that takes it`;
}

/** The most pods that a text names. */
const NAMED_MAX = 3;

/** `2 pods are not where they are planned: Worker/1 on n3 (planned on n2, which is gone), …`. Empty: all are. */
export function offPlanText(places: readonly MemberPlace[], nodes: readonly NamedNode[]): string {
  const off = places.filter(({ planned, node }) => node !== "" && node !== planned);
  if (off.length === 0) return "";
  const named = off.slice(0, NAMED_MAX).map((place) => {
    return `${replicaKey(place.role, place.index)} on ${place.node} (${whyOffPlan(place, nodes)})`;
  });
  const more = off.length > NAMED_MAX ? `, and ${off.length - NAMED_MAX} more` : "";
  const count = off.length === 1 ? "1 pod is not where it is" : `${off.length} pods are not where they are`;
  return `${count} planned: ${named.join(", ")}${more}`;
}

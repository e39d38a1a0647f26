import { type FlavorLabels, ofRole } from "../../job/flavor-labels.ts";
import type { BlockedPod } from "../model/blocked-pod.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import type { NodeLabels } from "../model/node-labels.ts";
import type { AskGroup, AskShape } from "../queues/ask-shape.ts";

type FlavorOnNodes = { readonly name: string; readonly labels: NodeLabels };

/** Two flavors that one pod needs, although no node can have the labels of both. */
export type FlavorsApart = {
  readonly role: string;
  readonly key: string;
  readonly flavors: readonly [FlavorOnNodes, FlavorOnNodes];
};

/** The first label for which two flavors that a pod needs demand different values. Null: there is none. */
export function flavorsApart(
  groups: readonly AskGroup[],
  choice: FlavorChoice,
  flavorLabels: FlavorLabels,
): FlavorsApart | null {
  if (Object.keys(flavorLabels).length < 2) return null;
  for (const { role, podClass } of groups) {
    const own = ofRole(choice, role);
    const needed = Object.entries(ofRole(flavorLabels, role)).filter(
      ([resource]) => (podClass.requests[resource] ?? 0) > 0,
    );
    for (const [at, [resource, labels]] of needed.entries()) {
      for (const [other, others] of needed.slice(at + 1)) {
        const key = differingKey(labels, others);
        if (key === null) continue;
        const flavorOf = (of: string, demanded: NodeLabels) => ({ name: own[of] ?? "", labels: demanded });
        return { role, key, flavors: [flavorOf(resource, labels), flavorOf(other, others)] };
      }
    }
  }
  return null;
}

/** A label that two lists of labels have with different values. Null: one node can have the labels of both. */
export function differingKey(one: NodeLabels, other: NodeLabels): string | null {
  return Object.keys(one).find((key) => (other[key] ?? one[key]) !== one[key]) ?? null;
}

/** True for two flavors that no node has together. */
export type Excludes = (one: string, other: string) => boolean;

type FlavorOf = { readonly resource: string; readonly flavor: string };

/**
 * Makes the function that is true for flavors of two resources if no node has them together, and some pod of the gang
 * requests both resources. Pods that request one of them need the nodes of its flavor only.
 */
export function apartIn({ ask }: Pick<AskShape, "ask">, excludes: Excludes): (a: FlavorOf, b: FlavorOf) => boolean {
  return (a, b) => excludes(a.flavor, b.flavor) && requestsBoth(ask, [a.resource, b.resource]);
}

function requestsBoth({ podClasses }: AskShape["ask"], resources: readonly string[]): boolean {
  return podClasses.some(({ requests }) => resources.every((resource) => (requests[resource] ?? 0) > 0));
}

/** Labels of a flavor that a sentence names. */
const LABELS_NAMED = 3;

/** `no node is one of gpu/h100 (zone=a) and one of rdma/ib (zone=b), as a Worker pod needs`. */
export function apartMessage({ role, flavors: [one, other] }: FlavorsApart): string {
  return `no node is one of ${flavorWords(one)} and one of ${flavorWords(other)}, as a ${role} pod needs`;
}

function flavorWords({ name, labels }: FlavorOnNodes): string {
  const all = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  const more = all.length > LABELS_NAMED ? ", …" : "";
  return `${name} (${all.slice(0, LABELS_NAMED).join(", ")}${more})`;
}

/** The pod that needs both, with the two labels that are in its way. */
export function apartPod({ role, key, flavors }: FlavorsApart): BlockedPod {
  const obstacles = flavors.map(({ name, labels }) => {
    return { kind: "label", key, value: labels[key] ?? "", flavor: name } as const;
  });
  return { role, placed: 0, never: true, node: null, nodes: 0, obstacles };
}

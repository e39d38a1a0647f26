import { compareText } from "../../../runtime/compare-text.ts";
import { arrayAt, canonicalJson, type JsonObject, stringAt, stringMapAt } from "../../../runtime/json.ts";
import { type FlavorLabels, podNodeLabels } from "../../job/flavor-labels.ts";
import { hasLabels } from "../../job/labels.ts";
import { requiredNodeTerms } from "../../pods/build-affinity.ts";
import { isHostPort, ONE_PORT } from "../../pods/fit/host-ports.ts";
import { type NodeFacts, type NodeObstacle, nodeAllows } from "../../pods/node-match.ts";
import type { Resources } from "../../pods/resources.ts";
import type { PodClass } from "../model/ask.ts";
import type { NodeLabels } from "../model/node-labels.ts";
import { compareResources, isExtended } from "./fit.ts";

/** Numbers the names of resources: each is a column of the nodes' amounts. */
export class Columns {
  readonly #byName = new Map<string, number>();
  readonly #names: string[] = [];
  /** The columns of devices and the like, in the order of their numbers. */
  readonly extended: number[] = [];

  get size(): number {
    return this.#names.length;
  }

  of(name: string): number {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const column = this.#names.push(name) - 1;
    this.#byName.set(name, column);
    if (isExtended(name)) this.extended.push(column);
    return column;
  }

  /** The amount of nodes that say nothing of it: each node has every port once. */
  baseOf(column: number): number {
    return isHostPort(this.nameOf(column)) ? ONE_PORT : 0;
  }

  nameOf(column: number): string {
    return this.#names[column] ?? "";
  }
}

/** Node labels and facts that some pods' rules read. Rules with equal keys share the classes of nodes. */
export type KeySet = {
  readonly labels: readonly string[];
  readonly byName: boolean;
  /** The number of each class of nodes, by the facts that the rules read. */
  readonly classes: Map<string, number>;
  /** A node of each class. */
  readonly examples: NodeFacts[];
};

/** The rules of pods about nodes. */
export type Rules = {
  readonly scheduling: JsonObject;
  readonly nodeLabels: NodeLabels;
  readonly keys: KeySet;
  /** By the number of a node's class: 0 unknown, 1 the rules refuse it, 2 they allow it. */
  readonly allowed: number[];
  /** By the number of a node's class, for those that were asked for. */
  readonly judged: Judgement[];
};

/** Everything that rules have against the nodes of one class. */
export type Judgement = {
  /** First the labels that flavors demand. A label that the pod selects and a flavor demands is named once. */
  readonly obstacles: readonly NodeObstacle[];
  /** How many of them are labels that flavors demand. */
  readonly ofFlavors: number;
  /** Equal for equal obstacles. */
  readonly key: string;
  /** True if the rules allow the node once it is ready and not cordoned. */
  readonly allowsReady: boolean;
};

/** Pods that a fit cannot tell apart, on nodes with labels that the flavors of their resources demand. */
export type FitClass = {
  readonly key: string;
  readonly podClass: PodClass;
  readonly rules: Rules;
  /** The columns of which the pod requests an amount above 0, the scarcest first, then ports; and the amounts. */
  readonly columns: readonly number[];
  readonly amounts: readonly number[];
  /** Extended columns that it does not request, of the first `wasteOf` ones. */
  wastes: readonly number[];
  wasteOf: number;
};

/** Makes each class of pods and each set of rules once, so that equal ones are one object. */
export class FitClasses {
  readonly columns = new Columns();
  readonly #keySets = new Map<string, KeySet>();
  readonly #rules = new Map<string, Rules>();
  readonly #classes = new Map<string, FitClass>();
  readonly #keys = new WeakMap<PodClass | FlavorLabels, string>();

  /** `labels`: those that the flavors of a gang demand. */
  of(podClass: PodClass, labels: FlavorLabels): FitClass {
    const key = `${this.#keyOf(podClass)} ${this.#keyOf(labels)}`;
    const known = this.#classes.get(key);
    if (known !== undefined) return known;
    const made = this.#fitting(podClass, podNodeLabels(podClass.requests, labels));
    this.#classes.set(key, made);
    return made;
  }

  #fitting(podClass: PodClass, nodeLabels: NodeLabels): FitClass {
    const key = `${this.#keyOf(podClass)} on ${canonicalJson(nodeLabels)}`;
    const known = this.#classes.get(key);
    if (known !== undefined) return known;
    const ports = (podClass.hostPorts ?? []).map((port) => [port, ONE_PORT] as const);
    const requested = [...requestedIn(podClass.requests), ...ports];
    const made: FitClass = {
      key,
      podClass,
      rules: this.#rulesOf(podClass.scheduling, nodeLabels),
      columns: requested.map(([name]) => this.columns.of(name)),
      amounts: requested.map(([, amount]) => amount),
      wastes: [],
      wasteOf: -1,
    };
    this.#classes.set(key, made);
    return made;
  }

  /** The columns of the devices that a pod requests, the scarcest first. */
  devicesOf({ columns }: FitClass): readonly number[] {
    const isPlain = (column: number) => !isExtended(this.columns.nameOf(column));
    const end = columns.findIndex(isPlain);
    return end < 0 ? columns : columns.slice(0, end);
  }

  /** The extended columns that a pod does not request: free devices there are wasted on it. */
  wastesOf(fit: FitClass): readonly number[] {
    const { extended } = this.columns;
    if (fit.wasteOf !== extended.length) {
      fit.wastes = extended.filter((column) => !fit.columns.includes(column));
      fit.wasteOf = extended.length;
    }
    return fit.wastes;
  }

  #keyOf(facts: PodClass | FlavorLabels): string {
    const known = this.#keys.get(facts);
    if (known !== undefined) return known;
    const key = canonicalJson(facts);
    this.#keys.set(facts, key);
    return key;
  }

  #rulesOf(scheduling: JsonObject, nodeLabels: NodeLabels): Rules {
    const key = canonicalJson([scheduling, nodeLabels]);
    const known = this.#rules.get(key);
    if (known !== undefined) return known;
    const { labels, byName } = selectorKeys(scheduling, Object.keys(nodeLabels));
    const made = {
      scheduling,
      nodeLabels,
      keys: this.#keysOf([...labels].sort(compareText), byName),
      allowed: [],
      judged: [],
    };
    this.#rules.set(key, made);
    return made;
  }

  #keysOf(labels: readonly string[], byName: boolean): KeySet {
    const key = JSON.stringify([byName, labels]);
    const made = this.#keySets.get(key) ?? { labels, byName, classes: new Map(), examples: [] };
    this.#keySets.set(key, made);
    return made;
  }
}

/** The number of a node's class among those that rules with these keys tell apart. */
export function nodeClassOf(keys: KeySet, node: NodeFacts): number {
  const values = keys.labels.map((label) => node.labels[label] ?? null);
  const key = JSON.stringify([keys.byName ? node.name : null, values, node.taints, node.unschedulable]);
  const known = keys.classes.get(key);
  if (known !== undefined) return known;
  const made = keys.examples.push(node) - 1;
  keys.classes.set(key, made);
  return made;
}

/** The class of a slot without a node. */
export const NO_NODE = -1;

/** True if the rules allow the nodes of a class. */
export function allows(rules: Rules, nodeClass: number): boolean {
  if (nodeClass < 0) return false;
  const known = rules.allowed[nodeClass] ?? 0;
  if (known !== 0) return known === 2;
  const node = rules.keys.examples[nodeClass];
  const allowed = node !== undefined && allowsNode(rules, node);
  rules.allowed[nodeClass] = allowed ? 2 : 1;
  return allowed;
}

export function allowsNode({ scheduling, nodeLabels }: Rules, node: NodeFacts): boolean {
  return hasLabels(node.labels, nodeLabels) && nodeAllows(scheduling, node);
}

function requestedIn(requests: Resources): readonly (readonly [string, number])[] {
  return Object.entries(requests)
    .filter(([, amount]) => amount > 0)
    .sort(([a], [b]) => compareResources(a, b));
}

/** The properties of nodes that a pod's selectors depend on. */
type SelectorKeys = { readonly labels: ReadonlySet<string>; readonly byName: boolean };

/**
 * The label keys in the node selector and the required node affinity of a pod, and those that are demanded otherwise;
 * and whether the affinity may name a node.
 */
export function selectorKeys(scheduling: JsonObject, demanded: Iterable<string>): SelectorKeys {
  const labels = new Set(demanded);
  for (const key of Object.keys(stringMapAt(scheduling, "nodeSelector"))) labels.add(key);
  const terms = requiredNodeTerms(scheduling);
  for (const expression of terms.flatMap((term) => arrayAt(term, "matchExpressions"))) {
    labels.add(stringAt(expression, "key") ?? "");
  }
  return { labels, byName: terms.some((term) => arrayAt(term, "matchFields").length > 0) };
}

import { createObject } from "../../../src/adapters/simcluster/api/verbs.ts";
import type { SimModel } from "../../../src/adapters/simcluster/model.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import { kindOf } from "../../simcluster/support.ts";
import { pick } from "../../support/random.ts";
import { plannedIn } from "./placement-laws.ts";
import { GPU, RACK_LABEL, type World } from "./world.ts";

/** A pod of others runs for so long. */
const FOREIGN_RUN = "8s";

/** What others do: they replace nodes, take room on them, and remove pods that have ended. */
export class Incidents {
  readonly met = { replaced: 0, removed: 0, taken: 0, relabelled: 0 };
  #foreign = 0;
  readonly #world: World;
  readonly #random: () => number;

  constructor(world: World, random: () => number) {
    this.#world = world;
    this.#random = random;
  }

  /** Returns what happened, in words. */
  act(): string {
    const { name, model } = pick(this.#random, this.#world.clusters);
    const chance = this.#random();
    if (chance < 0.2) return this.#takeGpu(name, model);
    if (chance < 0.3) return this.#moveToRack(name, model);
    if (chance < 0.5) {
      const node = pick(this.#random, [...model.store.objects("nodes")]);
      if (node === undefined) return `${name} has no node`;
      model.removeNode(node.metadata.name);
      model.advance(this.#world.clock.atMs);
      model.store.put("nodes", node, null);
      this.met.replaced += 1;
      return `node ${node.metadata.name} of ${name} is replaced`;
    }
    const ended = [...model.store.objects("pods")].filter((pod) => {
      const { phase, deleting } = podView(pod as never);
      return !deleting && (phase === "Succeeded" || phase === "Failed") && this.#random() < 0.5;
    });
    for (const { metadata } of ended) model.store.remove("pods", `${metadata.namespace}/${metadata.name}`);
    this.met.removed += ended.length;
    return `${ended.length} pods of ${name} that have ended are removed`;
  }

  /** A node gets the label of another rack. What runs there stays. */
  #moveToRack(name: string, model: SimModel): string {
    const node = pick(this.#random, [...model.store.objects("nodes")]);
    if (node === undefined) return `${name} has no node`;
    const { labels = {} } = node.metadata;
    const rack = labels[RACK_LABEL] === "r0" ? "r1" : "r0";
    model.store.put(
      "nodes",
      { ...node, metadata: { ...node.metadata, labels: { ...labels, [RACK_LABEL]: rack } } },
      null,
    );
    this.met.relabelled += 1;
    return `node ${node.metadata.name} of ${name} moves to rack ${rack}`;
  }

  /** Another scheduler puts a pod on a node, on one on which a pod of ours is planned and not there yet if it can. */
  #takeGpu(name: string, model: SimModel): string {
    const nodes = [...model.store.objects("nodes")];
    const waiting = [...model.store.objects("pods")].filter(({ spec = {} }) => spec["nodeName"] === undefined);
    const planned = new Set(waiting.map(({ spec = {} }) => plannedIn(spec)));
    const wanted = nodes.filter(({ metadata }) => planned.has(metadata.name));
    const node = pick(this.#random, wanted.length > 0 ? wanted : nodes);
    if (node === undefined) return `${name} has no node`;
    this.#foreign += 1;
    const pod = `foreign-${this.#foreign}`;
    const container = { name: "main", image: "other:1", resources: { limits: { [GPU]: "2" } } };
    const metadata = { name: pod, annotations: { "sim.gangway.dev/run": FOREIGN_RUN } };
    const spec = { restartPolicy: "Never", nodeName: node.metadata.name, containers: [container] };
    createObject(model, { kind: kindOf("pods"), namespace: "default" }, { metadata, spec }, false);
    this.met.taken += 1;
    return `a foreign pod takes GPUs of node ${node.metadata.name} of ${name}`;
  }
}

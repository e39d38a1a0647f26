import { podView } from "../../../src/core/pods/read/pod-view.ts";
import { pick } from "../../support/random.ts";
import type { World } from "./world.ts";

/** What others do: they replace nodes, and remove pods that have ended. */
export class Incidents {
  readonly met = { replaced: 0, removed: 0 };
  readonly #world: World;
  readonly #random: () => number;

  constructor(world: World, random: () => number) {
    this.#world = world;
    this.#random = random;
  }

  /** Returns what happened, in words. */
  act(): string {
    const { name, model } = pick(this.#random, this.#world.clusters);
    if (this.#random() < 0.4) {
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
}

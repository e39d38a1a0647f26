import assert from "node:assert/strict";
import type { KubeObject } from "../../../src/adapters/simcluster/objects/kube-object.ts";
import { namedNodes } from "../../../src/adapters/simcluster/pods/score-nodes.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import { arrayAt, type JsonObject, numberAt, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { WISH_LABEL } from "./random-jobs.ts";
import { RACK_LABEL, type World } from "./world.ts";

/**
 * Pods that were made for a node come to it, or to one of those that took them too when they were planned. All pods of
 * an admission that needs one rack come to one, as long as no node moves to another one.
 */
export class PlacementLaws {
  /** `onPlan`: pods that came to their planned node; `offPlan`: to another one; `inRack`: to the rack of others. */
  readonly met = { onPlan: 0, offPlan: 0, inRack: 0 };
  /** By admission: the rack of its pods, and the racks of all nodes when the first one came. */
  readonly #racks = new Map<string, { readonly rack: string; readonly nodes: string }>();
  readonly #world: World;
  readonly #seen = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  check(): void {
    for (const { name, model } of this.#world.clusters) {
      const racks = new Map(
        [...model.store.objects("nodes")].map(({ metadata }) => [metadata.name, metadata.labels?.[RACK_LABEL] ?? ""]),
      );
      for (const pod of model.store.objects("pods")) this.#checkPod(name, pod, racks);
    }
  }

  #checkPod(cluster: string, pod: KubeObject, racks: ReadonlyMap<string, string>): void {
    const { uid, nodeName, labels, name } = podView(pod as never);
    if (nodeName === "" || labels[LABEL.placement] === undefined || this.#seen.has(uid)) return;
    this.#seen.add(uid);
    const spec = pod.spec ?? {};
    const required = namedNodes(spec) ?? [];
    assert.ok(required.includes(nodeName), `${cluster}/${name} is on ${nodeName}, and needs ${required.join(" or ")}`);
    if (plannedIn(spec) === nodeName) this.met.onPlan += 1;
    else this.met.offPlan += 1;
    if (labels[WISH_LABEL] !== undefined)
      this.#checkRack(`${cluster} ${labels[LABEL.jobUid]} ${labels[LABEL.admission]}`, nodeName, racks);
  }

  #checkRack(admission: string, node: string, racks: ReadonlyMap<string, string>): void {
    const rack = racks.get(node) ?? "";
    const nodes = JSON.stringify([...racks].sort());
    const first = this.#racks.get(admission);
    // A node that moved since may have been planned before.
    if (first === undefined || first.nodes !== nodes) return void this.#racks.set(admission, { rack, nodes });
    assert.equal(rack, first.rack, `${admission} is in one rack`);
    this.met.inRack += 1;
  }
}

/** The planned node of a pod: the one that it prefers most. Empty: none. */
export function plannedIn(spec: JsonObject): string {
  const nodeAffinity = objectAt(objectAt(spec, "affinity"), "nodeAffinity");
  const terms = arrayAt(nodeAffinity, "preferredDuringSchedulingIgnoredDuringExecution");
  const [field] = arrayAt(
    objectAt(
      terms.find((term) => numberAt(term, "weight") === 100),
      "preference",
    ),
    "matchFields",
  );
  return stringAt({ name: arrayAt(field, "values")[0] ?? "" }, "name") ?? "";
}

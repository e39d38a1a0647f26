import assert from "node:assert/strict";
import type { KubeObject } from "../../../src/adapters/simcluster/objects/kube-object.ts";
import { namedNodes } from "../../../src/adapters/simcluster/pods/score-nodes.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import { arrayAt, type JsonObject, numberAt, objectAt, stringAt } from "../../../src/runtime/json.ts";
import type { World } from "./world.ts";

/** Pods that were made for a node come to it, or to one of those that took them too when they were planned. */
export class PlacementLaws {
  /** `onPlan`: pods that came to their planned node; `offPlan`: to another one. */
  readonly met = { onPlan: 0, offPlan: 0 };
  readonly #world: World;
  readonly #seen = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  check(): void {
    for (const { name, model } of this.#world.clusters) {
      for (const pod of model.store.objects("pods")) this.#checkPod(name, pod);
    }
  }

  #checkPod(cluster: string, pod: KubeObject): void {
    const { uid, nodeName, labels, name } = podView(pod as never);
    if (nodeName === "" || labels[LABEL.placement] === undefined || this.#seen.has(uid)) return;
    this.#seen.add(uid);
    const spec = pod.spec ?? {};
    const required = namedNodes(spec) ?? [];
    assert.ok(required.includes(nodeName), `${cluster}/${name} is on ${nodeName}, and needs ${required.join(" or ")}`);
    if (plannedIn(spec) === nodeName) this.met.onPlan += 1;
    else this.met.offPlan += 1;
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

import type { Job } from "../core/job/job.ts";
import { LABEL } from "../core/job/labels.ts";
import { type Placement, placesIn } from "../core/job/placement/placement.ts";
import { rolesOf } from "../core/job/roles.ts";
import type { PodView } from "../core/pods/read/pod-view.ts";
import type { Observed } from "../core/reconcile/observed.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";
import { objectAt, stringAt, stringMapAt } from "../runtime/json.ts";
import { type Acted, hasFailed } from "./carry-out.ts";

/** Above so many pods that are not on a node yet, further ones are not counted. */
const AWAITED_MAX = 100_000;

/** A pod that has come to a node, after this worker made it for a planned one. */
export type PodArrival = { readonly cluster: string; readonly onPlan: boolean };

/**
 * Counts the pods that come to their planned nodes, and those that come to others. It counts each pod once, and only
 * those that this worker has made: what it does not know of after a restart is not counted.
 */
export class ArrivedPods {
  readonly #report: (placed: PodArrival) => void;
  /** By job, the names of pods that were made for a node and are on none yet. */
  readonly #awaited = new Map<string, Set<string>>();
  #count = 0;

  constructor(report: (placed: PodArrival) => void) {
    this.#report = report;
  }

  /** Notes the pods that a step has made for planned nodes. */
  noteMade(jobUid: string, acted: readonly Acted[]): void {
    for (const one of acted) {
      const { action } = one;
      if (action.kind !== "createPod" || hasFailed(one) || this.#count >= AWAITED_MAX) continue;
      const metadata = objectAt(action.manifest, "metadata");
      if (stringMapAt(metadata, "labels")[LABEL.placement] === undefined) continue;
      const names = getOrCreate(this.#awaited, jobUid, () => new Set<string>());
      this.#count -= names.size;
      names.add(stringAt(metadata, "name") ?? "");
      this.#count += names.size;
    }
  }

  /** Reports the pods of a job that are on nodes now. */
  see(job: Job, observed: Observed, placement: Placement | null): void {
    const names = this.#awaited.get(job.uid);
    if (names === undefined) return;
    const roles = new Map(rolesOf(job.spec).map((role) => [role.toLowerCase(), role]));
    const places = placesIn(placement);
    for (const { cluster, pods } of observed) {
      for (const { role, index, nodeName } of pods.filter((pod) => isPlacedPod(pod) && names.delete(pod.name))) {
        this.#count -= 1;
        const planned = places(roles.get(role ?? "") ?? "", index ?? -1);
        if (planned !== null) this.#report({ cluster, onPlan: planned.node === nodeName });
      }
    }
    if (names.size === 0) this.#awaited.delete(job.uid);
  }

  forget(jobUid: string): void {
    this.#count -= this.#awaited.get(jobUid)?.size ?? 0;
    this.#awaited.delete(jobUid);
  }

  forgetWhere(isOthers: (jobUid: string) => boolean): void {
    for (const jobUid of [...this.#awaited.keys()]) if (isOthers(jobUid)) this.forget(jobUid);
  }
}

/** True for a pod that was made for a node, and is on one. */
function isPlacedPod({ nodeName, labels }: PodView): boolean {
  return nodeName !== "" && labels[LABEL.placement] !== undefined;
}

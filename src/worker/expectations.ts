import { LABEL } from "../core/job/labels.ts";
import type { Action } from "../core/reconcile/decision.ts";
import { canonicalJson, objectAt, stringAt, stringMapAt } from "../runtime/json.ts";

/**
 * How long a requested change may stay unseen before it is requested again. It is shorter than the time until the next
 * look after an action.
 */
const UNSEEN_MS_MAX = 4_000;

/**
 * The changes of one job that were requested of clusters and are not seen yet. A change is not requested again until it
 * is seen, has failed, or has been awaited for too long. This only saves calls: repeating one would be harmless.
 */
export class Expectations {
  readonly #sinceMs = new Map<string, number>();

  get size(): number {
    return this.#sinceMs.size;
  }

  /** The wanted actions that are not awaited yet. An awaited action that is no longer wanted has been seen. */
  due(wanted: readonly Action[], monotonicMs: number): readonly Action[] {
    const keys = new Set(wanted.map(keyOf));
    for (const [key, sinceMs] of this.#sinceMs) {
      if (!keys.has(key) || monotonicMs - sinceMs >= UNSEEN_MS_MAX) this.#sinceMs.delete(key);
    }
    return wanted.filter((action) => !this.#sinceMs.has(keyOf(action)));
  }

  /** Notes that these are awaited. Call it before the cluster is called: the watch may show the change at once. */
  raise(actions: readonly Action[], monotonicMs: number): void {
    for (const action of actions) this.#sinceMs.set(keyOf(action), monotonicMs);
  }

  /** Notes that these have failed or were not tried. */
  lower(actions: readonly Action[]): void {
    for (const action of actions) this.#sinceMs.delete(keyOf(action));
  }
}

/**
 * Identifies an action: a create by the object's kind, name and attempt, a change or deletion by its uid. An update of
 * a part is identified by its content too, so that an update with other content does not wait for the first.
 */
function keyOf(action: Action): string {
  const { cluster, kind } = action;
  if ("uid" in action) return `${cluster} ${kind} ${action.uid} ${kind === "deletePod" && action.force === true}`;
  const metadata = objectAt(action.manifest, "metadata");
  const labels = stringMapAt(metadata, "labels");
  const key = [cluster, kind, stringAt(action.manifest, "kind"), stringAt(metadata, "name"), labels[LABEL.admission]];
  const content = kind === "updatePart" ? canonicalJson({ ...action.manifest, metadata: null }) : "";
  return [...key, labels[LABEL.attempt], content].join(" ");
}

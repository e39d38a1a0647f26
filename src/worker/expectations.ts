import { LABEL } from "../core/job/labels.ts";
import type { Action } from "../core/reconcile/decision.ts";
import { canonicalJson, objectAt, stringAt, stringMapAt } from "../runtime/json.ts";

/** So long what was asked of a cluster may stay unseen before it is asked again: shorter than the look that follows an action. */
const UNSEEN_MS_MAX = 4_000;

/**
 * What was asked of clusters for one job and has not been seen to happen: additions and deletions alike, each on its own. Nothing of it is
 * asked again until it is seen, has failed, or has been awaited too long. That only saves calls: each would be harmless.
 */
export class Expectations {
  readonly #sinceMs = new Map<string, number>();

  get size(): number {
    return this.#sinceMs.size;
  }

  /** The actions that are not awaited. Whatever a decision does not want any more has been seen. */
  due(wanted: readonly Action[], monotonicMs: number): readonly Action[] {
    const keys = new Set(wanted.map(keyOf));
    for (const [key, sinceMs] of this.#sinceMs) {
      if (!keys.has(key) || monotonicMs - sinceMs >= UNSEEN_MS_MAX) this.#sinceMs.delete(key);
    }
    return wanted.filter((action) => !this.#sinceMs.has(keyOf(action)));
  }

  /** To be called before the cluster is: what a watch tells meanwhile must not come too early. */
  raise(actions: readonly Action[], monotonicMs: number): void {
    for (const action of actions) this.#sinceMs.set(keyOf(action), monotonicMs);
  }

  /** These have failed or were not tried. */
  lower(actions: readonly Action[]): void {
    for (const action of actions) this.#sinceMs.delete(keyOf(action));
  }
}

/**
 * An object that is made is known by its kind, name and attempt, one that is changed or deleted by its uid. A part that changes is known by what
 * it is to hold: another content is another wish, which does not wait for the first.
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

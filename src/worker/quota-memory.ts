import { isForgotten, learn, mayAsk, type QuotaBackoff, quotaUse } from "../core/pods/quota-backoff.ts";
import type { Resources } from "../core/pods/resources.ts";
import type { Action } from "../core/reconcile/decision.ts";
import { objectAt } from "../runtime/json.ts";

/** So many namespaces are remembered at most; who is not remembered is asked again. */
const NAMESPACES_MAX = 10_000;

/**
 * What this worker has learned of quotas, by cluster and namespace, from every job's refused pods. Losing it costs a call that is refused.
 * Times are monotonic.
 */
export class QuotaMemory {
  readonly #known = new Map<string, QuotaBackoff>();

  get size(): number {
    return this.#known.size;
  }

  /** False for a pod that its namespace's quota would refuse, as far as is known. */
  mayAsk(action: Action, monotonicMs: number): boolean {
    if (action.kind !== "createPod") return true;
    return mayAsk(this.#of(action), quotaUse(objectAt(action.manifest, "spec")), monotonicMs);
  }

  /** How long until pods of that namespace may all be asked for again. */
  waitMs(action: Action, monotonicMs: number): number {
    return Math.max(0, (this.#of(action)?.lapsesAtMs ?? monotonicMs) - monotonicMs);
  }

  refused(action: Action, ceilings: Resources, monotonicMs: number): void {
    const key = keyOf(action);
    if (!this.#known.has(key)) this.#makeRoom(monotonicMs);
    this.#known.set(key, learn(this.#known.get(key) ?? null, ceilings, monotonicMs));
  }

  /** A pod was made after everything had lapsed: there is room again. */
  made(action: Action, monotonicMs: number): void {
    const known = this.#of(action);
    if (known !== null && monotonicMs >= known.lapsesAtMs) this.#known.delete(keyOf(action));
  }

  #of(action: Action): QuotaBackoff | null {
    return this.#known.get(keyOf(action)) ?? null;
  }

  #makeRoom(monotonicMs: number): void {
    for (const [key, known] of this.#known) if (isForgotten(known, monotonicMs)) this.#known.delete(key);
    const [oldest] = this.#known.keys();
    if (this.#known.size >= NAMESPACES_MAX && oldest !== undefined) this.#known.delete(oldest);
  }
}

function keyOf({ cluster, namespace }: Action): string {
  return `${cluster}/${namespace}`;
}

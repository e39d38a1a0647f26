import {
  isForgotten,
  learn,
  leaveAlone,
  mayAsk,
  type QuotaBackoff,
  quotaUse,
} from "../core/pods/read/quota-backoff.ts";
import type { Resources } from "../core/pods/resources.ts";
import type { Action } from "../core/reconcile/decision.ts";
import { objectAt } from "../runtime/json.ts";
import { isCreate } from "./carry-out.ts";

/** A quota's refusal of a pod: what is left below it, and the server's words. */
type Refusal = { readonly ceilings: Resources; readonly message: string };

/** An action that is not tried, and why it has to wait. `isQuota` false: its server has asked us to wait. */
export type HeldAction = { readonly action: Action; readonly why: string; readonly isQuota: boolean };

/** How an API server begins the refusal of a pod. */
const NAMED_POD = /^pods "[^"]*" is forbidden: /;

/** The most namespaces that are remembered. A namespace that is not remembered is simply asked again. */
const NAMESPACES_MAX = 10_000;

/**
 * This worker's memory, by cluster and namespace, of quotas that refused pods and of servers that asked it to wait.
 * Losing it costs a call that is refused. Times are monotonic.
 */
export class QuotaMemory {
  readonly #known = new Map<string, QuotaBackoff & Pick<Refusal, "message">>();
  /** Until when each cluster and namespace is not called. */
  readonly #aloneUntilMs = new Map<string, number>();

  get size(): number {
    return this.#known.size + this.#aloneUntilMs.size;
  }

  /** Tells the actions that may be tried now from those that must wait. */
  sort(actions: readonly Action[], monotonicMs: number): { wanted: readonly Action[]; held: readonly HeldAction[] } {
    const wanted: Action[] = [];
    const held: HeldAction[] = [];
    for (const action of actions) {
      const why = this.whyHeld(action, monotonicMs);
      if (why === null) wanted.push(action);
      else held.push({ action, why, isQuota: !this.#hasRoom(action, monotonicMs) });
    }
    return { wanted, held };
  }

  /**
   * Why an action must wait, in the server's last words about its namespace: a pod that its namespace's quota would
   * refuse, as far as is known, and every create while its server has asked us to wait. Null for all others: deletes
   * are never held back.
   */
  whyHeld(action: Action, monotonicMs: number): string | null {
    if (!isCreate(action)) return null;
    if (!this.#hasRoom(action, monotonicMs)) return this.#of(action)?.message ?? null;
    if (this.aloneMs(action, monotonicMs) === 0) return null;
    return `cluster ${action.cluster} has asked Gangway to wait before it creates anything more`;
  }

  /** How much longer an action's server has asked us to wait. */
  aloneMs(action: Action, monotonicMs: number): number {
    return Math.max(0, (this.#aloneUntilMs.get(keyOf(action)) ?? monotonicMs) - monotonicMs);
  }

  /** How long until an action that is held back now may be tried. */
  waitMs(action: Action, monotonicMs: number): number {
    const lapsesAtMs = this.#hasRoom(action, monotonicMs) ? monotonicMs : (this.#of(action)?.lapsesAtMs ?? monotonicMs);
    return Math.max(lapsesAtMs - monotonicMs, this.aloneMs(action, monotonicMs));
  }

  /** Notes that the server has refused an action and asks us to wait. */
  askedToWait(action: Action, retryAfterMs: number, monotonicMs: number): void {
    const key = keyOf(action);
    const untilMs = leaveAlone(this.#aloneUntilMs.get(key) ?? 0, retryAfterMs, monotonicMs);
    for (const [other, endMs] of this.#aloneUntilMs) if (endMs <= monotonicMs) this.#aloneUntilMs.delete(other);
    if (this.#aloneUntilMs.size < NAMESPACES_MAX) this.#aloneUntilMs.set(key, untilMs);
  }

  refused(action: Action, { ceilings, message }: Refusal, monotonicMs: number): void {
    const key = keyOf(action);
    if (!this.#known.has(key)) this.#makeRoom(monotonicMs);
    const backoff = learn(this.#known.get(key) ?? null, ceilings, monotonicMs);
    // Other jobs of the namespace are told the message: it must not name this one's pod.
    this.#known.set(key, { ...backoff, message: message.replace(NAMED_POD, "pods are forbidden here: ") });
  }

  /** Notes that a pod was created after the backoff had lapsed: the quota has room again. */
  made(action: Action, monotonicMs: number): void {
    const known = this.#of(action);
    if (known !== null && monotonicMs >= known.lapsesAtMs) this.#known.delete(keyOf(action));
  }

  #hasRoom(action: Action, monotonicMs: number): boolean {
    if (action.kind !== "createPod") return true;
    return mayAsk(this.#of(action), quotaUse(objectAt(action.manifest, "spec")), monotonicMs);
  }

  #of(action: Action): (QuotaBackoff & Pick<Refusal, "message">) | null {
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

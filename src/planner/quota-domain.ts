import type { PlanQueue } from "../core/plan/snapshot.ts";
import type { AllocationLine, GrantOutcome, Holder, QueueLimit } from "../core/quota/counters.ts";
import type { PlannerPorts } from "./ports.ts";

/** Releases that are taken from the ledger at once, and how often in one round: what is left is settled in the next. */
const RELEASES_PER_PAGE = 500;
const PAGES_MAX = 20;

type Ports = Pick<PlannerPorts, "store" | "counters">;

/**
 * The counters as the planner keeps them in step with the ledger. Whenever the two may differ they are closed here and rebuilt from
 * the ledger under a new epoch before anything else is granted.
 */
export class QuotaDomain {
  readonly #ports: Ports;
  /** Null while the counters must be rebuilt. */
  #epoch: number | null = null;
  #limits = "";

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** Forgets the present counters: the next use opens them anew. */
  distrust(): void {
    this.#epoch = null;
  }

  /** The epoch of counters that agree with what a snapshot says of it. */
  async openFor(snapshot: { readonly quotaEpoch: number; readonly queues: readonly PlanQueue[] }): Promise<number> {
    if (this.#epoch !== null && snapshot.quotaEpoch > this.#epoch) this.distrust();
    const epoch = this.#epoch ?? (await this.#open());
    await this.#setLimits(epoch, limitsOf(snapshot.queues));
    return epoch;
  }

  /** Frees in the counters what the ledger has released, and tells the ledger so; answers how many fences that were. */
  async settleReleases(): Promise<number> {
    const epoch = this.#epoch ?? (await this.#open());
    let settled = 0;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const fences = await this.#ports.store.unconfirmedReleases(RELEASES_PER_PAGE);
      if (fences.length === 0) break;
      for (const fence of fences) {
        const outcome = await this.#ports.counters.free(epoch, fence);
        if (outcome !== "closed") continue;
        this.distrust();
        return settled;
      }
      await this.#ports.store.confirmReleases(fences);
      settled += fences.length;
      if (fences.length < RELEASES_PER_PAGE) break;
    }
    return settled;
  }

  /**
   * Asks the counters for lines that the ledger's sums leave room for; null if they do not give them. A refusal is the counters'
   * error, then: a release that they have not heard of yet, or else they are rebuilt.
   */
  async grant(request: { holder: Holder; lines: readonly AllocationLine[]; epoch: number }) {
    const first = await this.#ask(request);
    if (first.kind === "granted") return first;
    if (first.kind === "exhausted" && (await this.settleReleases()) > 0 && this.#epoch === request.epoch) {
      const second = await this.#ask(request);
      if (second.kind === "granted") return second;
    }
    this.distrust();
    return null;
  }

  /** Gives back a grant that the ledger does not have: nobody repeats this, so if its answer is lost the counters are rebuilt. */
  async free(epoch: number, fence: bigint): Promise<void> {
    const outcome = await this.#orDistrust(() => this.#ports.counters.free(epoch, fence));
    if (outcome === "closed") this.distrust();
  }

  /** A question whose answer is lost may have been granted: only the ledger can tell. */
  #ask(request: { holder: Holder; lines: readonly AllocationLine[]; epoch: number }): Promise<GrantOutcome> {
    return this.#orDistrust(() => this.#ports.counters.grant(request));
  }

  /** A call whose answer is lost may have been carried out, or may be later: a raised epoch settles both. */
  async #orDistrust<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      this.distrust();
      throw error;
    }
  }

  async #open(): Promise<number> {
    const { epoch, rows, limits } = await this.#ports.store.raiseQuotaEpoch();
    await this.#ports.counters.open(epoch, rows, limits);
    this.#limits = textOf(limits);
    this.#epoch = epoch;
    return epoch;
  }

  async #setLimits(epoch: number, limits: readonly QueueLimit[]): Promise<void> {
    const text = textOf(limits);
    if (text === this.#limits) return;
    const outcome = await this.#orDistrust(() => this.#ports.counters.setLimits(epoch, limits));
    if (outcome === "set") this.#limits = text;
    else this.distrust();
  }
}

function limitsOf(queues: readonly PlanQueue[]): readonly QueueLimit[] {
  return queues.flatMap((queue) =>
    queue.quotas.map(({ flavor, nominal }) => ({ queue: queue.name, pool: flavor, limit: nominal })),
  );
}

function textOf(limits: readonly QueueLimit[]): string {
  const lines = limits.map(({ queue, pool, limit }) => JSON.stringify([queue, pool, limit]));
  return lines.sort().join("\n");
}

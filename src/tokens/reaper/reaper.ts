import { scopeKey } from "../../core/quota/scopes.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { QuotaDomain } from "../domain/domain.ts";
import { countByPool, differingSums, usedByPool } from "../read-counters.ts";
import { reap } from "./reap.ts";

/** How often the reaper compares the sums of counters and ledger, by its own clock. */
const COMPARE_MS = 30_000;
/** How often it reports the use of pools. */
const SHOW_MS = 5_000;
/** How often the ledger begins to delete old releases. */
const PRUNE_MS = 60_000;
/** How many pages of them one round deletes: faster than tokens are released, and without delay of the next round. */
const PRUNE_PAGES_MAX = 4;

/** `epoch` is null while another process holds the lease. */
export type ReaperLease = { readonly epoch: () => number | null };

/**
 * The reaper of one domain in this process. It works only while this process holds the domain's lease, so that one
 * clock alone drives the lease clock. A second reaper during a hand-over shortens leases by one interval at most.
 */
export class Reaper {
  readonly #domain: QuotaDomain;
  readonly #clock: Clock;
  readonly #lease: ReaperLease;
  /** The time of the last tick under the lease. Null: no tick since the lease was taken. */
  #tickedAtMs: number | null = null;
  readonly #isTimeToShow = cadence(SHOW_MS);
  readonly #isTimeToCompare = cadence(COMPARE_MS);
  readonly #isTimeToPrune = cadence(PRUNE_MS);
  #isPruning = false;

  constructor(domain: QuotaDomain, lease: ReaperLease) {
    this.#domain = domain;
    this.#clock = domain.clock;
    this.#lease = lease;
  }

  /** Runs one round, unless another process reaps the domain. Throws what ledger and counters throw. */
  async runOnce(): Promise<"reaped" | "notMine"> {
    if (this.#lease.epoch() === null) {
      this.#tickedAtMs = null;
      return "notMine";
    }
    const nowMs = this.#clock.monotonicMs();
    // The former holder of the lease counted the time before the first tick.
    const elapsedMs = this.#tickedAtMs === null ? 0 : nowMs - this.#tickedAtMs;
    this.#tickedAtMs = nowMs;
    await reap(this.#domain, elapsedMs);
    if (this.#isTimeToShow(nowMs)) await this.#show();
    if (this.#isTimeToCompare(nowMs)) await this.#compare();
    if (this.#isPruning || this.#isTimeToPrune(nowMs)) await this.#prune();
    return "reaped";
  }

  /** The next rounds go on where there is more. After a failure they wait for the next time. */
  async #prune(): Promise<void> {
    const { ledger } = this.#domain;
    this.#isPruning = false;
    for (let page = 0; page < PRUNE_PAGES_MAX; page += 1) if ((await ledger.pruneReleases()) === 0) return;
    this.#isPruning = true;
  }

  async #show(): Promise<void> {
    const { name, counters, ledger, events } = this.#domain;
    const { pools } = await ledger.readLimits();
    const used = await usedByPool(counters);
    const waiters = countByPool(await counters.waiting());
    events.poolsSeen({
      domain: name,
      pools: pools.map(({ pool, quota }) => ({
        pool,
        used: used.get(pool) ?? 0,
        limit: quota,
        waiters: waiters.get(pool) ?? 0,
      })),
    });
  }

  async #compare(): Promise<void> {
    const { epochs } = this.#domain;
    const epoch = epochs.current;
    if (epoch === null) return;
    const [first] = await differingSums(this.#domain, epoch);
    if (first === undefined) return;
    epochs.lost(
      epoch,
      `the sum of ${scopeKey(first.scope)} is ${first.counters} in the counters and ${first.ledger} in the ledger`,
    );
  }
}

/** Returns a function that is true at the first call, and then whenever `everyMs` have passed since it was true. */
function cadence(everyMs: number): (nowMs: number) => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return (nowMs) => {
    if (nowMs - lastMs < everyMs) return false;
    lastMs = nowMs;
    return true;
  };
}

import { scopeKey } from "../../core/quota/scopes.ts";
import type { Clock } from "../../runtime/clock.ts";
import { countByPool, usedByPool } from "./by-pool.ts";
import { differingSums } from "./compare-sums.ts";
import type { Desk } from "./desk.ts";
import { reap } from "./reap.ts";

/** How often sums are compared, by the reaper's own clock. */
const COMPARE_MS = 30_000;
/** How often the operator is shown what the pools' use is. */
const SHOW_MS = 5_000;
/** How often the ledger forgets what was released long ago, and how many pages of it at most: more than can be released in that time. */
const PRUNE_MS = 60_000;
const PRUNE_PAGES_MAX = 100;

/**
 * The reaper of one domain in this process. Works only while it holds the domain's lease, so that the lease clock runs at the speed of one
 * clock; a second reaper at a hand-over does no harm beyond one interval.
 */
export class Reaper {
  readonly #desk: Desk;
  readonly #clock: Clock;
  readonly #lease: { readonly epoch: () => number | null };
  /** When it last ticked as the lease's holder; null where it did not. */
  #tickedAtMs: number | null = null;
  readonly #isTimeToShow = cadence(SHOW_MS);
  readonly #isTimeToCompare = cadence(COMPARE_MS);
  readonly #isTimeToPrune = cadence(PRUNE_MS);
  /** What differed at the last comparison, as text. */
  #suspected: ReadonlySet<string> = new Set();

  constructor(desk: Desk, lease: { readonly epoch: () => number | null }) {
    this.#desk = desk;
    this.#clock = desk.clock;
    this.#lease = lease;
  }

  /** One round, unless another process reaps. Throws what ledger and counters throw. */
  async runOnce(): Promise<"reaped" | "notMine"> {
    if (this.#lease.epoch() === null) {
      this.#tickedAtMs = null;
      return "notMine";
    }
    const nowMs = this.#clock.monotonicMs();
    // The time before its first tick was another's to count.
    const elapsedMs = this.#tickedAtMs === null ? 0 : nowMs - this.#tickedAtMs;
    this.#tickedAtMs = nowMs;
    await reap(this.#desk, elapsedMs);
    if (this.#isTimeToShow(nowMs)) await this.#show();
    if (this.#isTimeToCompare(nowMs)) await this.#compare();
    if (this.#isTimeToPrune(nowMs)) await this.#prune();
    return "reaped";
  }

  async #prune(): Promise<void> {
    for (let page = 0; page < PRUNE_PAGES_MAX; page += 1) if ((await this.#desk.ledger.pruneReleases()) === 0) return;
  }

  async #show(): Promise<void> {
    const { domain, counters, ledger, events } = this.#desk;
    const { pools } = await ledger.readLimits();
    const used = await usedByPool(counters);
    const waiters = countByPool(await counters.waiting());
    events.poolsSeen({
      domain: domain.name,
      pools: pools.map(({ pool, quota }) => ({
        pool,
        used: used.get(pool) ?? 0,
        limit: quota,
        waiters: waiters.get(pool) ?? 0,
      })),
    });
  }

  /** Sums that stay different while nothing is under way mean that the counters are wrong; what is under way differs once. */
  async #compare(): Promise<void> {
    const { domain, counters, ledger } = this.#desk;
    const { epoch } = domain;
    if (epoch === null) return;
    const differing = differingSums({ counters: await counters.used(), ledger: await ledger.readUsed() });
    const suspected = new Set(differing.map((sum) => `${scopeKey(sum.scope)} ${sum.counters} ${sum.ledger}`));
    const [first] = differing.filter((_sum, at) => this.#suspected.has([...suspected][at] ?? ""));
    this.#suspected = suspected;
    if (first === undefined || domain.epoch !== epoch) return;
    this.#suspected = new Set();
    domain.lost(
      epoch,
      `the sum of ${scopeKey(first.scope)} is ${first.counters} in the counters and ${first.ledger} in the ledger`,
    );
  }
}

/** True at the first time, and then whenever so much has passed since it last was. */
function cadence(everyMs: number): (nowMs: number) => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return (nowMs) => {
    if (nowMs - lastMs < everyMs) return false;
    lastMs = nowMs;
    return true;
  };
}

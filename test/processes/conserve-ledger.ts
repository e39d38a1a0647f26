import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";

/** The live tokens of one pool and its limit, in one snapshot. */
type Sample = {
  readonly pool: string;
  readonly quota: number;
  readonly version: number;
  readonly used: number;
  readonly live: readonly string[];
};

const SAMPLE_EVERY_MS = 15;

/**
 * Reads the ledger repeatedly. In every sample a pool uses at most its limit. If the limit was lowered below the use,
 * no token is live that was not live before.
 */
export class Sampler {
  readonly #db: Db;
  readonly #last = new Map<string, Sample>();
  #isStopped = false;
  readonly #running: Promise<void>;
  looks = 0;
  /** The number of samples with a pool above a lowered limit. */
  above = 0;
  readonly broken: string[] = [];

  constructor(db: Db) {
    this.#db = db;
    this.#running = this.#run();
  }

  /** Throws if a limit was exceeded. */
  async stop(): Promise<void> {
    await this[Symbol.asyncDispose]();
    assert.deepEqual(this.broken, []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      for (const sample of await this.#look()) this.#check(sample);
      this.looks += 1;
      await sleep(SAMPLE_EVERY_MS);
    }
  }

  async #look(): Promise<readonly Sample[]> {
    try {
      return await this.#db.query<Sample>(SAMPLE);
    } catch (error) {
      // A busy server may not answer in time. The check does not need every sample.
      if (error instanceof UnavailableError) return [];
      throw error;
    }
  }

  #check(sample: Sample): void {
    const before = this.#last.get(sample.pool);
    this.#last.set(sample.pool, sample);
    if (sample.used <= sample.quota) return;
    this.above += 1;
    // The first sample after a change of the limit has nothing to compare with.
    if (before?.version !== sample.version) return;
    const known = new Set(before.live);
    const granted = sample.live.filter((token) => !known.has(token));
    if (granted.length > 0)
      this.broken.push(`${sample.pool} uses ${sample.used} of ${sample.quota}, and granted ${granted.join()}`);
  }
}

const SAMPLE = `
select p.name as pool, p.quota::float8 as quota, p.version::float8 as version,
       coalesce(sum(a.amount), 0)::float8 as used,
       coalesce(array_agg(a.token) filter (where a.token is not null), '{}') as live
  from pools p
  left join allocations a on a.pool = p.name and a.released_ms is null
 where p.quota is not null
 group by p.name, p.quota, p.version`;

export type LiveRow = {
  readonly pool: string;
  readonly token: string;
  readonly holder: string;
  readonly amount: number;
  readonly fence: string;
};

export function liveRows(db: Db): Promise<readonly LiveRow[]> {
  return db.query<LiveRow>(LIVE);
}

const LIVE = `
select pool, token, caller as holder, amount::float8 as amount, fence::text as fence
  from allocations
 where released_ms is null
 order by pool, token`;

/** For each pool, the sum that the ledger keeps and the sum of its live rows. */
export function ledgerSums(db: Db): Promise<readonly { pool: string; kept: number; counted: number }[]> {
  return db.query(SUMS);
}

const SUMS = `
select p.name as pool,
       coalesce((select used from allocation_sums s where s.pool = p.name and s.scope = 'pool'), 0)::float8 as kept,
       coalesce((select sum(amount) from allocations a where a.pool = p.name and a.released_ms is null), 0)::float8
         as counted
  from pools p`;

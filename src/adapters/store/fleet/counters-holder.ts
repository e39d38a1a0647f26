import type { Clock } from "../../../runtime/clock.ts";
import { type Executor, onlyRow, storable } from "../db/db.ts";

/** Another process counts tokens in its memory for this database. Such counters serve that process only. */
export class CountersHeldError extends Error {
  override readonly name = "CountersHeldError";
  constructor(holder: string) {
    super(
      `process ${holder} counts tokens in its own memory, which serves that process only; ` +
        "stop it, or set REDIS_URL for every process of this database",
    );
  }
}

type CountersHold = {
  /** Gives up the right, so that the next process can take it at once. */
  readonly release: () => Promise<void>;
};

export type HoldOptions = {
  /** The name of this process. No other process ever has the same name. */
  readonly holder: string;
  readonly clock: Clock;
  /**
   * Called once if another process has declared this one dead and taken the right. This process must stop counting. The
   * ledger refuses grants that it still makes.
   */
  readonly onLost: (error: CountersHeldError) => void;
  /** Called when a renewal fails. Renewals continue. */
  readonly onError: (error: unknown) => void;
  readonly renewMs?: number;
  readonly leaseMs?: number;
};

const RENEW_MS = 1_000;
/** A holder is dead once its counter has not moved for so long, on the monotonic clock of the process that watches. */
const LEASE_MS = 5_000;
/** How often a process looks at the counter within a lease: it notices a living holder this much sooner. */
const LOOKS_PER_LEASE = 25;

/**
 * Takes the right to count tokens in this process' memory and keeps it until `release`. Without it, two processes with
 * counters in memory could each grant the whole quota. Throws `CountersHeldError` as soon as it sees that another
 * holder lives. If that holder has died without a release, waits for the lease time.
 */
export async function holdCounters(db: Executor, options: HoldOptions): Promise<CountersHold> {
  const holder = storable(options.holder);
  await take(db, holder, options);
  const stop = new AbortController();
  const renewing = renew(db, holder, { ...options, signal: stop.signal });
  return {
    release: async () => {
      stop.abort();
      await renewing;
      await db.query(RELEASE, [holder]);
    },
  };
}

const RELEASE = "update counters_holder set holder = '' where holder = $1";

type HolderRow = { readonly holder: string; readonly counter: number };

async function read(db: Executor): Promise<HolderRow> {
  return onlyRow(await db.query<HolderRow>("select holder, counter from counters_holder"));
}

async function take(db: Executor, holder: string, { clock, leaseMs = LEASE_MS }: HoldOptions): Promise<void> {
  const first = await read(db);
  const sinceMs = clock.monotonicMs();
  for (let seen = first; ; seen = await read(db)) {
    const isDead = clock.monotonicMs() - sinceMs >= leaseMs;
    if (seen.holder !== "" && (seen.holder !== first.holder || seen.counter !== first.counter)) {
      throw new CountersHeldError(seen.holder);
    }
    // If another process was faster, the next look sees it.
    if ((seen.holder === "" || isDead) && (await db.query(TAKE, [holder, seen.holder, seen.counter])).length > 0)
      return;
    await clock.sleep(leaseMs / LOOKS_PER_LEASE);
  }
}

const TAKE = `
update counters_holder set holder = $1, counter = counter + 1 where holder = $2 and counter = $3
returning 1`;

async function renew(db: Executor, holder: string, options: HoldOptions & { signal: AbortSignal }): Promise<void> {
  const { clock, signal, renewMs = RENEW_MS } = options;
  let other: string | null = null;
  while (other === null) {
    await clock.sleep(renewMs, signal);
    if (signal.aborted) return;
    other = await renewOnce(db, holder).catch((error: unknown) => {
      options.onError(error);
      return null;
    });
  }
  options.onLost(new CountersHeldError(other));
}

/** Null: renewed. Else the process that has taken the right. */
async function renewOnce(db: Executor, holder: string): Promise<string | null> {
  const renewed = await db.query(RENEW, [holder]);
  return renewed.length > 0 ? null : (await read(db)).holder;
}

const RENEW = "update counters_holder set counter = counter + 1 where holder = $1 returning 1";

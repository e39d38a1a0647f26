import type { Clock } from "../../runtime/clock.ts";
import { type Executor, onlyRow, storable } from "./db.ts";

/** The counters in a process' own memory serve that process only, and another one holds the database. */
export class CountersHeldError extends Error {
  override readonly name = "CountersHeldError";
  constructor(holder: string) {
    super(
      `tokens are counted in the memory of process ${holder}, which serves that process only; ` +
        "stop it, or set REDIS_URL for every process of this database",
    );
  }
}

export type CountersHold = {
  /** Lets the next process take them at once. */
  readonly release: () => Promise<void>;
};

export type HoldOptions = {
  /** Names this process; no other process ever has the same name. */
  readonly holder: string;
  readonly clock: Clock;
  /** Called once if another took this process for dead: it must count no more. The ledger refuses what it still grants. */
  readonly onLost: (error: CountersHeldError) => void;
  /** Hears of renewals that failed; they go on. */
  readonly onError: (error: unknown) => void;
  readonly renewMs?: number;
  readonly leaseMs?: number;
};

const RENEW_MS = 1_000;
/** A holder whose counter has not moved for so long, on the monotonic clock of whoever watches, is dead. */
const LEASE_MS = 5_000;
/** A living holder is noticed that much later at most. */
const LOOKS_PER_LEASE = 25;

/**
 * Takes the right to count tokens in this process' memory and keeps it until `release`. Throws `CountersHeldError` as soon as another
 * process that has it is seen alive; one that died without giving it back is waited out, for the lease time.
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

type Row = { readonly holder: string; readonly counter: number };

async function read(db: Executor): Promise<Row> {
  return onlyRow(await db.query<Row>("select holder, counter from counters_holder"));
}

async function take(db: Executor, holder: string, { clock, leaseMs = LEASE_MS }: HoldOptions): Promise<void> {
  const first = await read(db);
  const sinceMs = clock.monotonicMs();
  for (let seen = first; ; seen = await read(db)) {
    const isDead = clock.monotonicMs() - sinceMs >= leaseMs;
    if (seen.holder !== "" && (seen.holder !== first.holder || seen.counter !== first.counter)) {
      throw new CountersHeldError(seen.holder);
    }
    // Where another was faster, the next look sees it.
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

/** Null once renewed; otherwise who has taken it. */
async function renewOnce(db: Executor, holder: string): Promise<string | null> {
  const renewed = await db.query(RENEW, [holder]);
  return renewed.length > 0 ? null : (await read(db)).holder;
}

const RENEW = "update counters_holder set counter = counter + 1 where holder = $1 returning 1";

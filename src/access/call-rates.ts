/** Counts what calls cost, in Redis where processes share one, else in the memory of this process. */
import { BurstyRateLimiter, RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { BURST_SECONDS } from "../core/access/call-limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Soon } from "../runtime/soon.ts";

export type Rate = { readonly callsPerSecond: number; readonly burst: number };

/** Runs a script of Redis on one key. Throws at once while Redis is away, and soon if it does not answer. */
export type RunRateScript = (text: string, key: string, parameters: readonly string[]) => Promise<unknown>;

export type CallRates = {
  /** Takes the cost from what the rate leaves to the subject. Returns the time after which to try again, or null. */
  readonly take: (subject: string, cost: number, rate: Rate) => Soon<number | null>;
};

export type CallRatesPorts = {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Null: no Redis is shared. */
  readonly runScript: RunRateScript | null;
  /** Called when Redis does not answer. This process alone counts then for `AWAY_MS`. */
  readonly onAway: (error: unknown) => void;
};

/** Redis is not asked for this long after it has failed, so that calls do not wait for it one after the other. */
const AWAY_MS = 1_000;
/** A process takes a share of this part of a second's calls at a time, so that most calls need no answer of Redis. */
const SHARES_PER_SECOND = 20;
/** A share that is not used in the second for which it was taken is lost. */
const SHARE_MS = 1_000;
const SHARES_KEPT_MAX = 10_000;
/** More rates than settings have. They are made again after that, and forget what was taken. */
const RATES_KEPT_MAX = 1_000;

type Limiter = { readonly consume: (key: string, points: number) => Promise<unknown> };
type Share = {
  left: number;
  untilMs: number;
  /** Until then the caller has used up its rate: the windows of a rate do not move. */
  usedUpUntilMs: number;
  taking: Promise<number | null> | null;
};

export function createCallRates(ports: CallRatesPorts): CallRates {
  const limiters = new Map<string, Limiter>();
  const limiterOf = (rate: Rate) => {
    const key = `${rate.callsPerSecond}/${rate.burst}`;
    const known = limiters.get(key);
    if (known !== undefined) return known;
    if (limiters.size >= RATES_KEPT_MAX) limiters.clear();
    const made = makeLimiter(rate, storeClient(ports));
    limiters.set(key, made);
    return made;
  };
  const take = async (subject: string, cost: number, rate: Rate) => taken(limiterOf(rate), subject, cost);
  if (ports.runScript === null) return { take };
  return sharing(take, ports.clock);
}

/** The most that a call can cost, so that the dearest call is possible to a caller that rests. */
export function dearest({ callsPerSecond, burst }: Rate): number {
  return Math.max(callsPerSecond, burst);
}

/** Takes more than one call costs at a time, and gives later calls their part of it. */
function sharing(take: CallRates["take"], clock: Pick<Clock, "monotonicMs">): CallRates {
  const shares = new Map<string, Share>();
  const shareOf = (subject: string): Share => {
    const known = shares.get(subject);
    if (known !== undefined) return known;
    if (shares.size >= SHARES_KEPT_MAX) {
      for (const [name, { taking }] of shares) if (taking === null) shares.delete(name);
    }
    const made = { left: 0, untilMs: 0, usedUpUntilMs: 0, taking: null };
    shares.set(subject, made);
    return made;
  };
  const fill = async (share: Share, subject: string, cost: number, rate: Rate) => {
    const size = Math.max(cost, Math.floor(rate.callsPerSecond / SHARES_PER_SECOND));
    const retryMs = await take(subject, size, rate);
    const nowMs = clock.monotonicMs();
    if (retryMs === null) Object.assign(share, { left: size, untilMs: nowMs + SHARE_MS });
    else share.usedUpUntilMs = nowMs + retryMs;
    return retryMs;
  };
  const paid = (share: Share, cost: number) => {
    if (share.left < cost || clock.monotonicMs() >= share.untilMs) return false;
    share.left -= cost;
    return true;
  };
  const refill = async (share: Share, subject: string, cost: number, rate: Rate) => {
    do {
      share.taking ??= fill(share, subject, cost, rate).finally(() => {
        share.taking = null;
      });
      const retryMs = await share.taking;
      if (retryMs !== null) return retryMs;
    } while (!paid(share, cost));
    return null;
  };
  return {
    take: (subject, cost, rate) => {
      const share = shareOf(subject);
      if (paid(share, cost)) return null;
      const usedUpMs = share.usedUpUntilMs - clock.monotonicMs();
      return usedUpMs > 0 ? Math.ceil(usedUpMs) : refill(share, subject, cost, rate);
    },
  };
}

async function taken(limiter: Limiter, subject: string, cost: number): Promise<number | null> {
  try {
    await limiter.consume(subject, cost);
    return null;
  } catch (refused) {
    if (refused instanceof RateLimiterRes) return Math.max(refused.msBeforeNext, 1);
    throw refused;
  }
}

type StoreClient = { readonly eval: (text: string, of: EvalOptions) => Promise<unknown> };
type EvalOptions = { readonly keys: readonly string[]; readonly arguments: readonly string[] };

/** What the library needs of a client of Redis. */
function storeClient({ clock, runScript, onAway }: CallRatesPorts): StoreClient | null {
  if (runScript === null) return null;
  let awayUntilMs = Number.NEGATIVE_INFINITY;
  return {
    eval: async (text, { keys: [key = ""], arguments: parameters }) => {
      if (clock.monotonicMs() < awayUntilMs) throw new Error("Redis has just failed");
      try {
        return await runScript(text, key, parameters);
      } catch (error) {
        awayUntilMs = clock.monotonicMs() + AWAY_MS;
        onAway(error);
        throw error;
      }
    },
  };
}

/** The library refuses no call because Redis is away: its insurance counts in memory then. */
function makeLimiter({ callsPerSecond, burst }: Rate, store: StoreClient | null): Limiter {
  const counting = (options: { readonly points: number; readonly duration: number; readonly keyPrefix: string }) => {
    const inMemory = new RateLimiterMemory(options);
    if (store === null) return inMemory;
    return new RateLimiterRedis({ ...options, storeClient: store, useRedisPackage: true, insuranceLimiter: inMemory });
  };
  return new BurstyRateLimiter(
    counting({ points: callsPerSecond, duration: 1, keyPrefix: "second" }),
    counting({ points: burst, duration: BURST_SECONDS, keyPrefix: "burst" }),
  );
}

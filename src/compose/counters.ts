/** Connects token counters: those in Redis, or those in the memory of this process. */
import { inProcessCounters } from "../adapters/counters/in-process/in-process-counters.ts";
import type { RedisCounters } from "../adapters/counters/redis/redis-counters.ts";
import type { Db } from "../adapters/store/db/db.ts";
import { holdCounters } from "../adapters/store/fleet/counters-holder.ts";
import type { RedisConfig } from "../config/config.ts";
import type { Counters } from "../core/quota/counters.ts";
import type { RedisState } from "../core/quota/redis-state.ts";
import { type Base, runLoops } from "./base.ts";

type OpenCounters = (domain: string) => Promise<Counters>;

/** Counters in the memory of a process that is alone with its database. */
export const ownCounters: OpenCounters = async () => inProcessCounters();

/** The counters of a database that several processes may use: in Redis if it is configured, else in memory. */
export function openCounters(base: Base, db: Db, redis: RedisConfig | null): Promise<OpenCounters> {
  return redis === null ? soleCounters(base, db) : sharedCounters(base, redis);
}

/** Counters in memory. Throws if another process of this database has them. */
async function soleCounters({ clock, processName, telemetry, parts }: Base, db: Db): Promise<OpenCounters> {
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "counters", error });
  // After a loss, the ledger refuses what this process still grants.
  const hold = await holdCounters(db, { holder: processName, clock, onLost: onError, onError });
  parts.defer(() => hold.release());
  return ownCounters;
}

async function sharedCounters(base: Base, redis: RedisConfig): Promise<OpenCounters> {
  const { installation, telemetry, parts } = base;
  const { redisCounters } = await import("../adapters/counters/redis/redis-counters.ts");
  const open: RedisCounters[] = [];
  parts.defer(async () => {
    await Promise.all(open.map((counters) => counters.close()));
  });
  followRedis(base, open);
  return async (domain) => {
    const counters = await redisCounters({
      ...redis,
      installation,
      domain,
      onError: (error) => telemetry.loopFailed({ loop: "redis connection", error }),
      onWarning: (message) => telemetry.loopFailed({ loop: "redis settings", error: new Error(message) }),
    });
    open.push(counters);
    return counters;
  };
}

/** The time between two looks. A readiness probe comes less often. */
const LOOK_MS = 2_000;

/** What an operator reads in `/readyz`. The process stays ready: reads, submits and running jobs need no counters. */
const WORDS: Readonly<Record<Exclude<RedisState, "ok">, string>> = {
  away: "is away",
  out_of_memory: "is out of memory",
  read_only: "is read-only",
};
const MEANWHILE = "no tokens are granted or renewed meanwhile, and gangs that need tokens wait";

/** Looks again and again whether Redis can count, for the metric and `/readyz`. */
function followRedis({ clock, telemetry, warnings, parts }: Base, open: readonly RedisCounters[]): void {
  let worst: RedisState = "ok";
  warnings.push(() => (worst === "ok" ? [] : [`redis ${WORDS[worst]}: ${MEANWHILE}`]));
  runLoops(parts, async (signal) => {
    while (!signal.aborted) {
      const states = await Promise.all(open.map((counters) => counters.state()));
      worst = states.find((state) => state !== "ok") ?? "ok";
      telemetry.redisSeen({ state: worst });
      await clock.sleep(LOOK_MS, signal);
    }
  });
}

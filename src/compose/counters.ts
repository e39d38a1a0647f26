/** Connects token counters: those in Redis, or those in the memory of this process. */
import { inProcessCounters } from "../adapters/counters/in-process/in-process-counters.ts";
import type { Db } from "../adapters/store/db/db.ts";
import { holdCounters } from "../adapters/store/fleet/counters-holder.ts";
import type { RedisConfig } from "../config.ts";
import type { Counters } from "../core/quota/counters.ts";
import type { Base } from "./base.ts";

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

async function sharedCounters({ installation, telemetry, parts }: Base, redis: RedisConfig): Promise<OpenCounters> {
  const { redisCounters } = await import("../adapters/counters/redis/redis-counters.ts");
  const open: { readonly close: () => Promise<void> }[] = [];
  parts.defer(async () => {
    await Promise.all(open.map((counters) => counters.close()));
  });
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

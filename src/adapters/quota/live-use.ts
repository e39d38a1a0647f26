import type { HeldToken } from "../../core/quota/counters.ts";
import { tokenKey } from "../../core/quota/lines.ts";
import type { AdminPorts } from "./admin-ports.ts";
import { allHeld } from "./all-held.ts";
import { countByPool, usedByPool } from "./by-pool.ts";
import type { Desk } from "./desk.ts";
import type { StoredPool } from "./ports.ts";

/** A domain that was just made opens meanwhile. */
const NEW_DOMAIN_MS = 500;

export type PoolRecord = StoredPool & { readonly waiters: number };

/** Adds what only the counters know. */
export async function withLive(
  { domains, events }: AdminPorts,
  pools: readonly StoredPool[],
): Promise<readonly PoolRecord[]> {
  const live = new Map<Desk, Promise<LiveUse>>();
  return Promise.all(
    pools.map(async (pool) => {
      const desk = await domains.desk(pool);
      const known = live.get(desk) ?? readLive(desk, pool.durability === "REDIS");
      live.set(desk, known);
      const use = await known.catch((error: unknown) => {
        // The ledger knows the use of its own pools; of the others there would be nothing true to show.
        if (pool.durability === "REDIS") throw error;
        events.loopFailed({ loop: "quota listing", error });
        return NOTHING;
      });
      const waiters = use.waiters.get(pool.name) ?? 0;
      if (pool.durability === "LEDGER") return { ...pool, waiters };
      return { ...pool, waiters, used: use.used.get(pool.name) ?? 0, tokens: use.tokens.get(pool.name) ?? 0 };
    }),
  );
}

/** By pool. */
type LiveUse = Record<"waiters" | "used" | "tokens", ReadonlyMap<string, number>>;

const NOTHING: LiveUse = { waiters: new Map(), used: new Map(), tokens: new Map() };

async function readLive(desk: Desk, alone: boolean): Promise<LiveUse> {
  await desk.domain.openEpoch(alone ? NEW_DOMAIN_MS : 0);
  const waiters = countByPool(await desk.counters.waiting());
  if (!alone) return { ...NOTHING, waiters };
  const used = await usedByPool(desk.counters);
  const held = new Map<string, HeldToken>();
  for await (const token of allHeld(desk)) held.set(tokenKey(token), token);
  return { waiters, used, tokens: countByPool(held.values()) };
}

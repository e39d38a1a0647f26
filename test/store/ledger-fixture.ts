import type { Db } from "../../src/adapters/store/db/db.ts";
import type { Allocation, Holder } from "../../src/core/quota/counters.ts";
import type { LedgerGrant, ReleaseRequest } from "../../src/core/quota/ledger.ts";
import { type PoolChange, UNCHANGED } from "../../src/core/quota/pools.ts";
import { freshStore, raiseQuotaEpoch, type TestStore } from "./db.ts";

export const POOL = "ex:slots";

export function poolChange(changes: Partial<PoolChange> = {}): PoolChange {
  return { name: POOL, ...UNCHANGED, ...changes };
}

export function allocation(overrides: Partial<Allocation> = {}): Allocation {
  return {
    pool: POOL,
    token: "t1",
    amount: 1,
    project: "vision",
    namespace: "team",
    queue: null,
    caps: { project: null, namespace: null },
    leaseMs: 60_000,
    ...overrides,
  };
}

export function caller(name: string): Holder {
  return { kind: "caller", name };
}

export function releaseOf(of: Partial<ReleaseRequest> & { readonly token: string }): ReleaseRequest {
  return {
    pool: POOL,
    holder: caller("flyte"),
    project: null,
    namespace: null,
    fence: null,
    reason: "released",
    ...of,
  };
}

/**
 * A store with a pool of 10 in domain `default` at a raised epoch, and a maker of grants with new fences of that epoch.
 */
export async function freshLedger(db: Db) {
  const { store } = await freshStore(db);
  const registered = await store.pools.register(poolChange({ quota: 10 }), { version: 0, actor: "admin" });
  if (registered.kind !== "done") throw new Error(`the pool was not registered: ${registered.kind}`);
  const { epoch } = await raiseQuotaEpoch(store);
  let fences = BigInt(epoch) << 32n;
  const grant = (allocations: readonly Allocation[], holder: Holder = caller("flyte")): LedgerGrant => {
    fences += 1n;
    return { allocations, holder, fence: fences };
  };
  return { store, epoch, grant };
}

/** Returns true if every sum of the ledger equals that of its live rows. */
export async function agrees(store: TestStore): Promise<boolean> {
  return (await store.pools.check(null)).sums.length === 0;
}

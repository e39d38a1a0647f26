/** Serves admins who clear away pools: no token is lost, and none stays behind, whoever asks for one meanwhile. */
import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import { type PoolRecord, UNCHANGED } from "../../core/quota/pools.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import { confirmGivenBack } from "../confirm-given-back.ts";
import type { QuotaDomain } from "../domain/domain.ts";
import { pushLimits } from "../limit-changes.ts";
import { countByPool, usedByPool } from "../read-counters.ts";
import type { AdminPorts } from "./admin-ports.ts";

/** How long a deletion waits for counters that are being rebuilt. */
const OPEN_MS = 5_000;

type By = { readonly version: number; readonly actor: string };
type PoolDeletion = ChangeOutcome<PoolRecord>;

/** Deletes a pool that nothing uses. Throws `UnavailableError` if the counters cannot say whether something does. */
export async function deletePool(ports: AdminPorts, name: string, by: By): Promise<PoolDeletion> {
  const { store, domains, cache, limitChanges } = ports;
  const pool = await store.get(name);
  if (pool === null) return { kind: "notFound" };
  const domain = await domains.domain(pool);
  const epoch = await domain.epochs.openEpoch(OPEN_MS);
  const waiters = countByPool(await domain.counters.waiting()).get(name) ?? 0;
  if (waiters > 0) {
    return {
      kind: "inUse",
      by: waiters === 1 ? "1 request that waits for it" : `${waiters} requests that wait for it`,
    };
  }
  const outcome =
    pool.durability === "REDIS"
      ? await deleteFromCounters(ports, { pool, domain, epoch, by })
      : await deleteFromLedger(ports, { pool, domain, epoch, by });
  cache.forget(name);
  if (outcome.kind === "done") await limitChanges.changed(pool);
  return outcome;
}

type Deleting = {
  readonly pool: PoolRecord;
  readonly domain: QuotaDomain;
  readonly epoch: number;
  readonly by: By;
};

/** The ledger has the last word on grants: after its transaction it commits none. */
async function deleteFromLedger({ store }: AdminPorts, { pool, domain, epoch, by }: Deleting): Promise<PoolDeletion> {
  // Without the pool, the ledger could not tell the counters of its releases any more.
  await confirmGivenBack(domain, epoch);
  return store.remove(pool.name, by);
}

const HELD: PoolDeletion = { kind: "inUse", by: "tokens that are held" };

/**
 * The counters alone decide about grants. A pool with held tokens is refused at once, and stays as it is. Any other
 * gets a quota of 0 first, under which nothing new is granted; then the counters are asked again. If something was
 * granted meanwhile, the pool gets its quota back.
 */
async function deleteFromCounters(ports: AdminPorts, { pool, domain, epoch, by }: Deleting): Promise<PoolDeletion> {
  const { store, limitChanges } = ports;
  const { name } = pool;
  const isHeld = async () => ((await usedByPool(domain.counters)).get(name) ?? 0) > 0;
  if (await isHeld()) return HELD;
  const closed = await store.register({ ...UNCHANGED, name, quota: 0 }, { ...by, version: by.version || pool.version });
  if (closed.kind !== "done") return closed.kind === "notFound" ? { kind: "notFound" } : { kind: "stale" };
  const { version } = closed.record;
  let outcome: PoolDeletion | null = null;
  try {
    await pushLimits(domain, epoch);
    if (domain.epochs.current !== epoch) throw new UnavailableError("the counters are being rebuilt");
    outcome = (await isHeld()) ? HELD : await store.remove(name, { ...by, version });
    return outcome;
  } finally {
    if (outcome?.kind !== "done") {
      await store.register({ ...UNCHANGED, name, quota: pool.quota }, { ...by, version });
      await limitChanges.changed(pool);
    }
  }
}

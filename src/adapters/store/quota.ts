import type { AuditNote, AuditQuery } from "../../core/admin/audit.ts";
import type { ForcedRelease, LedgerQuery } from "../../core/quota/admin.ts";
import type { LedgerOf } from "../../core/quota/ledger.ts";
import type { PoolChange, PoolFreeze } from "../../core/quota/pools.ts";
import type { Clock } from "../../runtime/clock.ts";
import { appendAudit, listAudit } from "./admin/audit.ts";
import { deletePool } from "./admin/delete-pool.ts";
import { forceRelease } from "./admin/force-release.ts";
import { freezePool } from "./admin/freezes.ts";
import { listAllocations } from "./admin/list-allocations.ts";
import { findPools, getPool, listDomains, listPools } from "./admin/list-pools.ts";
import { queueExists } from "./admin/queues.ts";
import { endGrants } from "./admin/quota-grants.ts";
import { registerPool } from "./admin/register-pool.ts";
import type { Db } from "./db/db.ts";
import { checkLedger, repairLedger } from "./ledger/check-ledger.ts";
import { commitGrants } from "./ledger/commit-grants.ts";
import { confirmShrinks, unconfirmedShrinks } from "./ledger/confirm-shrinks.ts";
import { confirmTurnOvers, untoldTurnOvers } from "./ledger/confirm-turn-overs.ts";
import { findLive } from "./ledger/find-live.ts";
import { pruneReleases } from "./ledger/prune-releases.ts";
import { QUEUES_DOMAIN, readDomain } from "./ledger/quota-domains.ts";
import { confirmReleases, raiseEpoch, unconfirmedReleases } from "./ledger/quota-epoch.ts";
import { type LimitBounds, type QuotaBounds, readLimits } from "./ledger/quota-limits.ts";
import { readBoth } from "./ledger/read-both.ts";
import { readUsed } from "./ledger/read-used.ts";
import { releaseTokens } from "./ledger/release-tokens.ts";
import { buryTokens, forgetTombstones, tombstonesOf } from "./ledger/tombstones.ts";
import { voidGrants } from "./ledger/void-grants.ts";
import { withdrawEnded } from "./ledger/withdraw-ended.ts";

/** Makes the ledger of a domain for the tokens stage. */
export function ledgerOf(db: Db, bounds: LimitBounds): LedgerOf {
  return (domain, clock) => ({
    raiseEpoch: (expected) => raiseEpoch(db, domain, expected, bounds),
    readDomain: () => readDomain(db, domain, clock.nowMs()),
    endGrants: async () => (domain === QUEUES_DOMAIN ? endGrants(db, clock.nowMs()) : []),
    readLimits: () => readLimits(db, domain, bounds),
    readUsed: () => readUsed(db, domain, bounds),
    readBoth: (readCounters) => readBoth(db, { domain, bounds, readCounters }),
    commit: (epoch, grants) => commitGrants(db, { domain, epoch, grants, nowMs: clock.nowMs() }, bounds),
    release: (requests) => releaseTokens(db, requests, clock.nowMs()),
    bury: (requests) => buryTokens(db, { domain, requests, nowMs: clock.nowMs() }),
    tombstones: (limit) => tombstonesOf(db, domain, limit),
    forgetTombstones: (of) => forgetTombstones(db, domain, of),
    voidGrants: (tokens) => voidGrants(db, tokens, clock.nowMs()),
    untoldTurnOvers: (limit) => untoldTurnOvers(db, domain, limit),
    confirmTurnOvers: (tokens) => confirmTurnOvers(db, tokens),
    withdrawEnded: () => withdrawEnded(db, domain, clock.nowMs()),
    unconfirmedReleases: (limit) => unconfirmedReleases(db, domain, limit),
    confirmReleases: (refs) => confirmReleases(db, refs),
    unconfirmedShrinks: (limit) => unconfirmedShrinks(db, domain, limit),
    confirmShrinks: (rests) => confirmShrinks(db, rests),
    pruneReleases: () => pruneReleases(db, clock.nowMs()),
    findLive: (tokens) => findLive(db, tokens),
  });
}

/** The operations of admins on pools, allocations and the audit log. */
export function quotaAdmin(db: Db, clock: Pick<Clock, "nowMs">, { poolsMax }: Pick<QuotaBounds, "poolsMax">) {
  return {
    register: (change: PoolChange, by: { readonly version: number; readonly actor: string }) =>
      registerPool(db, change, { ...by, poolsMax, nowMs: clock.nowMs() }),
    remove: (name: string, by: { readonly version: number; readonly actor: string }) =>
      deletePool(db, name, { ...by, nowMs: clock.nowMs() }),
    freeze: (change: PoolFreeze) => freezePool(db, { ...change, nowMs: clock.nowMs() }),
    get: (name: string) => getPool(db, name),
    find: (names: readonly string[]) => findPools(db, names),
    list: (query: Parameters<typeof listPools>[1]) => listPools(db, query),
    listDomains: () => listDomains(db),
    listAllocations: (query: LedgerQuery) => listAllocations(db, query),
    forceRelease: (forced: ForcedRelease) => forceRelease(db, forced, clock.nowMs()),
    queueExists: (name: string) => queueExists(db, name),
    check: (pool: string | null) => checkLedger(db, pool),
    repair: (pool: string | null) => repairLedger(db, pool, clock.nowMs()),
    appendAudit: (note: Omit<AuditNote, "timeMs">) =>
      db.tx((tx) => appendAudit(tx, { ...note, timeMs: clock.nowMs() })),
    listAudit: (query: AuditQuery) => listAudit(db, query),
  };
}

import type { AuditNote, AuditQuery } from "../../../core/admin/audit.ts";
import type { ForcedRelease, LedgerQuery } from "../../../core/quota/admin.ts";
import type { TokenName } from "../../../core/quota/calls.ts";
import type { AllocationRef, HeldToken, Rest } from "../../../core/quota/counters.ts";
import type { LedgerGrant, ReadCounters, ReleaseRequest, Tombstone } from "../../../core/quota/ledger.ts";
import type { PoolChange, PoolFreeze } from "../../../core/quota/pools.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { appendAudit, listAudit } from "../admin/audit.ts";
import { deletePool } from "../admin/delete-pool.ts";
import { freezePool } from "../admin/freezes.ts";
import { findPools, getPool, listDomains, listPools } from "../admin/list-pools.ts";
import { queueExists } from "../admin/queues.ts";
import { endGrants } from "../admin/quota-grants.ts";
import { registerPool } from "../admin/register-pool.ts";
import type { Db } from "../db/db.ts";
import { checkLedger, repairLedger } from "./check-ledger.ts";
import { commitGrants } from "./commit-grants.ts";
import { findLive } from "./find-live.ts";
import { forceRelease } from "./force-release.ts";
import { listAllocations } from "./list-allocations.ts";
import { pruneReleases } from "./prune-releases.ts";
import { QUEUES_DOMAIN, readDomain } from "./quota-domains.ts";
import { confirmReleases, raiseEpoch, unconfirmedReleases } from "./quota-epoch.ts";
import { type LimitBounds, type QuotaBounds, readLimits } from "./quota-limits.ts";
import { readBoth } from "./read-both.ts";
import { readUsed } from "./read-used.ts";
import { releaseTokens } from "./release-tokens.ts";
import { confirmShrinks, unconfirmedShrinks } from "./settle-shrinks.ts";
import { confirmTurnOvers, untoldTurnOvers } from "./settle-turn-overs.ts";
import { buryTokens, forgetTombstones, tombstonesOf } from "./tombstones.ts";
import { voidGrants } from "./void-grants.ts";
import { withdrawEnded } from "./withdraw-ended.ts";

/** The ledger's operations for the tokens stage. */
export function quotaLedger(db: Db, bounds: LimitBounds) {
  return {
    raiseEpoch: (domain: string, expected: number | null) => raiseEpoch(db, domain, expected, bounds),
    readDomain: (domain: string, nowMs: number) => readDomain(db, domain, nowMs),
    endGrants: (domain: string, nowMs: number) =>
      domain === QUEUES_DOMAIN ? endGrants(db, nowMs) : Promise.resolve([]),
    readLimits: (domain: string) => readLimits(db, domain, bounds),
    readUsed: (domain: string) => readUsed(db, domain, bounds),
    readBoth: (domain: string, readCounters: ReadCounters) => readBoth(db, { domain, bounds, readCounters }),
    commit: (domain: string, epoch: number, grants: readonly LedgerGrant[], nowMs: number) =>
      commitGrants(db, { domain, epoch, grants, nowMs }, bounds),
    release: (requests: readonly ReleaseRequest[], nowMs: number) => releaseTokens(db, requests, nowMs),
    bury: (domain: string, requests: readonly ReleaseRequest[], nowMs: number) =>
      buryTokens(db, { domain, requests, nowMs }),
    tombstones: (domain: string, limit: number) => tombstonesOf(db, domain, limit),
    forgetTombstones: (domain: string, of: readonly Tombstone[]) => forgetTombstones(db, domain, of),
    voidGrants: (tokens: readonly HeldToken[], nowMs: number) => voidGrants(db, tokens, nowMs),
    untoldTurnOvers: (domain: string, limit: number) => untoldTurnOvers(db, domain, limit),
    confirmTurnOvers: (tokens: readonly AllocationRef[]) => confirmTurnOvers(db, tokens),
    withdrawEnded: (domain: string, nowMs: number) => withdrawEnded(db, domain, nowMs),
    unconfirmedReleases: (domain: string, limit: number) => unconfirmedReleases(db, domain, limit),
    confirmReleases: (refs: readonly AllocationRef[]) => confirmReleases(db, refs),
    unconfirmedShrinks: (domain: string, limit: number) => unconfirmedShrinks(db, domain, limit),
    confirmShrinks: (rests: readonly Rest[]) => confirmShrinks(db, rests),
    pruneReleases: (nowMs: number) => pruneReleases(db, nowMs),
    findLive: (tokens: readonly TokenName[]) => findLive(db, tokens),
  };
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

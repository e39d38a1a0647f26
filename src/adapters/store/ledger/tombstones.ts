import { holderKey, holderOfKey, sameHolder, tokenKey } from "../../../core/quota/allocations.ts";
import type { LedgerGrant, ReleaseOutcome, ReleaseRequest, Tombstone } from "../../../core/quota/ledger.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { takeDomain } from "./quota-domains.ts";
import { releaseTokensIn } from "./release-tokens.ts";
import { takeLeases } from "./take-leases.ts";

/**
 * The time for which tombstones are kept. No commit takes longer than this, and counters that come back are reconciled
 * sooner.
 */
const KEPT_MS = 3_600_000;

/**
 * Releases tokens of one domain, each independently. For a token that is not held it leaves a tombstone, which refuses
 * a grant that the ledger has not received yet. It locks the domain, so that a commit runs entirely before or after it.
 */
export function buryTokens(
  db: Db,
  of: { readonly domain: string; readonly requests: readonly ReleaseRequest[]; readonly nowMs: number },
): Promise<readonly ReleaseOutcome[]> {
  const { domain, requests, nowMs } = of;
  return db.tx(async (tx) => {
    const counts = await takeLeases(tx, requests);
    await takeDomain(tx, domain);
    const outcomes = await releaseTokensIn(tx, { requests, counts, nowMs });
    const buried = requests.filter((_request, at) => outcomes[at]?.kind === "notHeld");
    await tx.query(BURY, [domain, json(buried.flatMap(columnsOf)), nowMs, nowMs - KEPT_MS]);
    return outcomes;
  });
}

function columnsOf({ pool, token, holder, project, namespace }: ReleaseRequest | Tombstone) {
  if (holder === null) return [];
  return [{ pool, token, holder: holderKey(holder), project: project ?? "", namespace: namespace ?? "" }];
}

/** Also deletes old tombstones, except those that it writes anew, and notes whether the domain has any. */
const BURY = `
with grave as (
  select distinct pool, token, holder, project, namespace
    from json_to_recordset($2::json) as t (pool text, token text, holder text, project text, namespace text)
), cleared as (
  delete from token_tombstones t
   where t.domain = $1 and t.at_ms < $4
     and (t.pool, t.token, t.holder, t.project, t.namespace)
         not in (select pool, token, holder, project, namespace from grave)
), buried as (
  insert into token_tombstones (domain, pool, token, holder, project, namespace, at_ms)
  select $1, pool, token, holder, project, namespace, $3::bigint
    from grave order by pool, token, holder, project, namespace
  on conflict (pool, token, holder, project, namespace) do update set at_ms = excluded.at_ms
)
update quota_domains
   set buried = exists (select from grave)
             or exists (select from token_tombstones where domain = $1 and at_ms >= $4)
 where name = $1`;

/** Reads tombstones of a domain, oldest first. */
export async function tombstonesOf(executor: Executor, domain: string, limit: number): Promise<readonly Tombstone[]> {
  return (await executor.query<TombstoneRow>(READ, [domain, limit])).map(tombstone);
}

const READ = `
select pool, token, holder, project, namespace, at_ms as "atMs"
  from token_tombstones where domain = $1 order by at_ms, pool, token, holder limit $2`;

/** Deletes tombstones that no grant can meet any more. Keeps tombstones that were rewritten meanwhile. */
export function forgetTombstones(db: Db, domain: string, of: readonly Tombstone[]): Promise<void> {
  return of.length === 0
    ? Promise.resolve()
    : db.tx(async (tx) => {
        await takeDomain(tx, domain);
        await forgetTombstonesIn(tx, domain, of);
      });
}

/** Deletes tombstones of a domain that the caller has locked, and notes whether it has others. */
export async function forgetTombstonesIn(tx: Executor, domain: string, of: readonly Tombstone[]): Promise<void> {
  if (of.length === 0) return;
  const rows = of.flatMap((one) => columnsOf(one).map((columns) => ({ ...columns, at_ms: one.atMs })));
  await tx.query(FORGET, [domain, json(rows)]);
}

/** The statement does not see its own deletions, so it counts without them. */
const FORGET = `
with forgotten as (
  delete from token_tombstones t
   using json_to_recordset($2::json)
     as f (pool text, token text, holder text, project text, namespace text, at_ms bigint)
   where t.pool = f.pool and t.token = f.token and t.holder = f.holder
     and t.project = f.project and t.namespace = f.namespace and t.at_ms = f.at_ms
  returning t.pool, t.token, t.holder, t.project, t.namespace
)
update quota_domains set buried = exists (
         select from token_tombstones t
          where t.domain = $1 and not exists (
                  select from forgotten f
                   where (f.pool, f.token, f.holder, f.project, f.namespace)
                       = (t.pool, t.token, t.holder, t.project, t.namespace)
                )
       )
 where name = $1`;

/** Returns the tombstones that match an allocation of the grant. */
export function tombstonesOn({ allocations, holder }: LedgerGrant, all: readonly Tombstone[]): readonly Tombstone[] {
  return all.filter((one) =>
    allocations.some(
      (allocation) =>
        tokenKey(allocation) === tokenKey(one) &&
        sameHolder(one.holder, holder) &&
        (one.project ?? allocation.project) === allocation.project &&
        (one.namespace ?? allocation.namespace) === allocation.namespace,
    ),
  );
}

export type TombstoneRow = {
  readonly pool: string;
  readonly token: string;
  readonly holder: string;
  readonly project: string;
  readonly namespace: string;
  readonly atMs: number;
};

export function tombstone({ pool, token, holder, project, namespace, atMs }: TombstoneRow): Tombstone {
  const named = (name: string) => (name === "" ? null : name);
  return { pool, token, holder: holderOfKey(holder), project: named(project), namespace: named(namespace), atMs };
}

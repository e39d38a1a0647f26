import { type LedgerDomain, registeredDomain } from "../../../core/quota/ledger.ts";
import { type Executor, onlyRow } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";

/** The one domain in which queues, the pools of their quotas, and jobs are counted. */
export const QUEUES_DOMAIN = "default";

/** A domain's row, locked until the transaction ends. */
export type TakenDomain = {
  readonly epoch: number;
  readonly prunedFence: bigint;
};

/**
 * Locks a domain's row. Grants, changes of limits and new epochs therefore run one after the other, in the order of
 * their requests, and each grant meets the limits in force. To avoid deadlocks, lock queues before the domain and sums
 * after it. Of several domains, lock `default` first.
 */
export async function takeDomain(tx: Executor, domain: string): Promise<TakenDomain> {
  const row = onlyRow(await tx.query<{ epoch: number; pruned: string }>(TAKE_DOMAIN, [domain]));
  return { epoch: row.epoch, prunedFence: BigInt(row.pruned) };
}

const TAKE_DOMAIN = prepared(`
select epoch, pruned_fence::text as pruned from quota_domains where name = $1 for no key update`);

/** Locks the domains of these pools. */
export async function takeDomainsOf(tx: Executor, pools: readonly string[]): Promise<void> {
  await tx.query(TAKE_DOMAINS, [pools]);
}

const TAKE_DOMAINS = `
select 1 from quota_domains
 where name in (select domain from pools where name = any($1::text[]))
 order by name <> 'default', name for no key update`;

/** Raises the version of the domain's limits and locks its row. Later grants see the change. */
export async function raiseLimitsVersion(tx: Executor, domain: string): Promise<void> {
  await tx.query("update quota_domains set limits_version = limits_version + 1 where name = $1", [domain]);
}

/**
 * Reads what a domain is at, and whether it has work. Null: no pool is registered in the domain. The counters of a
 * domain's pools of durability REDIS have their own epoch, 0 before they are first opened, and share its version of the
 * limits.
 */
export async function readDomain(executor: Executor, name: string, nowMs: number): Promise<LedgerDomain | null> {
  const { domain } = registeredDomain(name);
  const [row] = await executor.query<LedgerDomain>(READ_DOMAIN, [domain, name, nowMs]);
  return row ?? null;
}

/**
 * Of allocations it looks at all domains, because they have no index by domain. Grants of quota are of the domain of
 * queues.
 */
const READ_DOMAIN = `
select coalesce((select epoch from quota_domains where name = $2), 0) as epoch, limits_version as "limitsVersion",
       not exists (select from token_tombstones where domain = $2)
       and not exists (select from token_heirs)
       and not exists (select from allocations where untold)
       and not exists (select from allocations where shrunk and released_ms is null)
       and not exists (select from allocations where released_ms is not null and not confirmed) as settled,
       $2 = '${QUEUES_DOMAIN}' and exists (select from quota_grants where until_ms <= $3) as "grantsDue"
  from quota_domains where name = $1`;

import { registeredDomain } from "../../core/quota/ledger.ts";
import { type Executor, onlyRow } from "./db.ts";

/** Queues are counted in one domain, with the pools that they have quotas for; jobs with them. */
export const QUEUES_DOMAIN = "default";

/** A domain's row, which its taker has until the transaction ends. */
export type TakenDomain = {
  readonly epoch: number;
  readonly prunedFence: bigint;
  /** It has tombstones. */
  readonly buried: boolean;
};

/**
 * Takes a domain's row. Grants and changes of limits or of the epoch follow each other by it, in the order in which they asked, so that each
 * grant is held against the limits in force. Whoever takes more takes queues before it and sums after it; of several domains, `default` first.
 */
export async function takeDomain(tx: Executor, domain: string): Promise<TakenDomain> {
  const row = onlyRow(await tx.query<{ epoch: number; pruned: string; buried: boolean }>(TAKE_DOMAIN, [domain]));
  return { epoch: row.epoch, prunedFence: BigInt(row.pruned), buried: row.buried };
}

const TAKE_DOMAIN = `
select epoch, pruned_fence::text as pruned, buried from quota_domains where name = $1 for no key update`;

/** Takes the domains that these pools are registered in. */
export async function takeDomainsOf(tx: Executor, pools: readonly string[]): Promise<void> {
  await tx.query(TAKE_DOMAINS, [pools]);
}

const TAKE_DOMAINS = `
select 1 from quota_domains
 where name in (select domain from pools where name = any($1::text[]))
 order by name <> 'default', name for no key update`;

/** Says that a limit of the domain has changed, and takes its row: grants that come later see the change. */
export async function raiseLimitsVersion(tx: Executor, domain: string): Promise<void> {
  await tx.query("update quota_domains set limits_version = limits_version + 1 where name = $1", [domain]);
}

/**
 * Null for a domain that nobody has registered a pool in. The counters of its pools of durability REDIS have an epoch of their own, 0 before
 * they were opened for the first time, and its version of the limits.
 */
export async function readEpoch(
  executor: Executor,
  name: string,
): Promise<{ readonly epoch: number; readonly limitsVersion: number } | null> {
  const { domain } = registeredDomain(name);
  const [row] = await executor.query<{ epoch: number; limitsVersion: number }>(READ_EPOCH, [domain, name]);
  return row ?? null;
}

const READ_EPOCH = `
select coalesce((select epoch from quota_domains where name = $2), 0) as epoch, limits_version as "limitsVersion"
  from quota_domains where name = $1`;

/**
 * Serves admins who suspect wrong counts: compares counters, ledger and jobs' records, reports differences, repairs.
 */

import type { QuotaDifference, ReconcileAnswer, ReconcileRequest } from "../../core/quota/admin.ts";
import { tokenKey } from "../../core/quota/allocations.ts";
import type { HeldToken, LedgerRow, Scope } from "../../core/quota/counters.ts";
import type { LedgerCheck } from "../../core/quota/ledger.ts";
import type { RegisteredDomain } from "../../core/quota/pools.ts";
import { scopeKey } from "../../core/quota/scopes.ts";
import { append } from "../../runtime/lists.ts";
import { confirmGivenBack } from "../confirm-given-back.ts";
import type { QuotaDomain } from "../domain/domain.ts";
import { byToken } from "../domain/domain-ledger.ts";
import { QUEUES_DOMAIN } from "../limit-changes.ts";
import { allHeld, differingSums, type SumDifference } from "../read-counters.ts";
import type { AdminPorts } from "./admin-ports.ts";

/** How long the answer waits for counters that are being rebuilt. */
const REBUILD_MS = 5_000;
const LIST_PAGE = 500;

type FoundDifference = Omit<QuotaDifference, "repaired">;

/**
 * Compares counters, ledger and the records of jobs, and makes them agree. The rows and the jobs' records decide what
 * the ledger says; counters that differ are rebuilt from the ledger. A token on its way from one to the other is no
 * difference.
 */
export async function reconcile(ports: AdminPorts, request: ReconcileRequest): Promise<ReconcileAnswer> {
  const { store, domains, cache, events } = ports;
  const { pool, dryRun, actor } = request;
  const only = pool === null ? null : await cache.pool(pool);
  if (pool !== null && only === null) return { kind: "unknownPool" };
  const check = dryRun ? await store.check(pool) : await store.repair(pool);
  const registered = only === null ? await store.listDomains() : [only];
  const inCounters = await compareDomains(ports, registered, request);
  const found = [...ledgerDifferences(check), ...inCounters];
  const shown = await domains.domain(registered.find(isQueuesDomain) ?? registered[0] ?? QUEUES_DOMAIN);
  const epoch = await shown.epochs.openEpoch(REBUILD_MS);
  const repaired = !dryRun && found.length > 0;
  const answer = { differences: found.map((one) => ({ ...one, repaired: !dryRun })), repaired, epoch };
  events.reconciled({ pool, differences: found.length, repaired });
  if (!dryRun) {
    await store.appendAudit({ actor, action: "ReconcileQuota", subject: pool ?? "", reason: "", details: answer });
  }
  return answer;
}

/** Compares each domain's counters with the ledger. Counters that differ are rebuilt. */
async function compareDomains(
  ports: AdminPorts,
  registered: readonly RegisteredDomain[],
  { pool, dryRun, actor }: ReconcileRequest,
): Promise<readonly FoundDifference[]> {
  const differences: FoundDifference[] = [];
  for (const one of registered) {
    // The ledger has no rows to compare with counters of durability REDIS.
    if (one.durability === "REDIS") continue;
    const domain = await ports.domains.domain(one);
    const epoch = await domain.epochs.openEpoch(0);
    const found = await compare(ports, domain, { epoch, pool });
    append(differences, found);
    if (!dryRun && found.length > 0) domain.epochs.lost(epoch, `${actor} reconciled it`);
  }
  return differences;
}

function isQueuesDomain({ domain, durability }: RegisteredDomain): boolean {
  return domain === QUEUES_DOMAIN.domain && durability === QUEUES_DOMAIN.durability;
}

function ledgerDifferences({ sums, orphans }: LedgerCheck): readonly FoundDifference[] {
  return [
    ...sums.map(({ scope, recorded, live }) => ({
      kind: "ledgerSumDiffers" as const,
      pool: scope.pool,
      subject: `${textOf(scope)}: its rows add up to ${live}`,
      counters: null,
      ledger: recorded,
    })),
    ...orphans.map(({ pool, token, amount }) => ({
      kind: "holderGone" as const,
      pool,
      subject: token,
      counters: null,
      ledger: amount,
    })),
  ];
}

type Comparison = { readonly epoch: number; readonly pool: string | null };

/** Compares sums at one moment. Compares tokens twice, because their pages are read one after the other. */
async function compare(ports: AdminPorts, domain: QuotaDomain, of: Comparison): Promise<readonly FoundDifference[]> {
  await confirmGivenBack(domain, of.epoch);
  const sums = await differingSums(domain, of.epoch);
  return [
    ...sums.filter(({ scope }) => of.pool === null || scope.pool === of.pool).map(sumDifference),
    ...(await compareTokens(ports, domain, of)),
  ];
}

function sumDifference({ scope, counters, ledger }: SumDifference): FoundDifference {
  return { kind: "sumDiffers", pool: scope.pool, subject: textOf(scope), counters, ledger };
}

/**
 * Returns the grants that one side alone has, in two comparisons. A grant on its way from one side to the other is
 * settled between them. Each grant has its own fence, so a later grant of the same token is not taken for it.
 */
async function compareTokens(
  ports: AdminPorts,
  domain: QuotaDomain,
  of: Comparison,
): Promise<readonly FoundDifference[]> {
  const first = await findOneSided(ports, domain, of.pool);
  if (first.size === 0) return [];
  await confirmGivenBack(domain, of.epoch);
  const second = await findOneSided(ports, domain, of.pool);
  return [...second].flatMap(([grant, difference]) => (first.has(grant) ? [difference] : []));
}

/** Maps each grant that one side alone has to the difference. */
async function findOneSided(
  ports: AdminPorts,
  domain: QuotaDomain,
  pool: string | null,
): Promise<ReadonlyMap<string, FoundDifference>> {
  const counterOnly = await heldByCountersOnly(domain, pool);
  const ledgerOnly = await heldByLedgerOnly(ports, domain, pool);
  return new Map([
    ...counterOnly.map((held) => oneSided(held, { kind: "counterOnly", counters: held.amount, ledger: null })),
    ...ledgerOnly.map((row) => oneSided(row, { kind: "ledgerOnly", counters: null, ledger: row.amount })),
  ]);
}

function oneSided(
  { pool, token, fence }: LedgerRow,
  of: Pick<FoundDifference, "kind" | "counters" | "ledger">,
): [string, FoundDifference] {
  return [JSON.stringify([of.kind, pool, token, fence.toString()]), { pool, subject: token, ...of }];
}

/** Skips unconfirmed tokens: their grants may be under way, and the reaper settles them. */
async function heldByCountersOnly(domain: QuotaDomain, pool: string | null): Promise<readonly HeldToken[]> {
  const countersOnly: HeldToken[] = [];
  let group: HeldToken[] = [];
  const compareGroup = async () => {
    const live = byToken(await domain.ledger.findLive(group));
    append(
      countersOnly,
      group.filter((held) => live.get(tokenKey(held))?.fence !== held.fence),
    );
    group = [];
  };
  for await (const held of allHeld(domain)) {
    if (held.confirmed && (pool === null || held.pool === pool)) group.push(held);
    if (group.length >= LIST_PAGE) await compareGroup();
  }
  if (group.length > 0) await compareGroup();
  return countersOnly;
}

async function heldByLedgerOnly(
  ports: AdminPorts,
  domain: QuotaDomain,
  pool: string | null,
): Promise<readonly LedgerRow[]> {
  const ledgerOnly: LedgerRow[] = [];
  const filter = { pool, project: null, namespace: null, holder: null, grantedBeforeMs: null };
  for (let after: string | null = null; ; ) {
    const page = await ports.store.listAllocations({ filter, pageSize: LIST_PAGE, after });
    if (page === "badCursor") throw new Error("the store refused its own cursor of allocations");
    const rows = await inDomain(ports, domain, page.allocations);
    const found = await domain.counters.find(rows);
    if (found === "closed") return [];
    append(
      ledgerOnly,
      rows.filter((row, at) => found[at]?.fence !== row.fence),
    );
    if (page.next === null) return ledgerOnly;
    after = page.next;
  }
}

async function inDomain(
  { cache }: AdminPorts,
  domain: QuotaDomain,
  rows: readonly LedgerRow[],
): Promise<readonly LedgerRow[]> {
  const pools = await Promise.all(rows.map((row) => cache.pool(row.pool)));
  return rows.filter((_row, at) => pools[at]?.domain === domain.name);
}

function textOf(scope: Scope): string {
  const [kind, ...names] = JSON.parse(scopeKey(scope)) as readonly string[];
  return `${kind} ${names.join(" / ")}`;
}

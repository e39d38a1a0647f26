import type { HeldToken, LedgerRow, Scope } from "../../core/quota/counters.ts";
import type { LedgerCheck } from "../../core/quota/ledger.ts";
import { tokenKey } from "../../core/quota/lines.ts";
import { scopeKey } from "../../core/quota/scopes.ts";
import type { AdminPorts } from "./admin-ports.ts";
import { allHeld } from "./all-held.ts";
import { differingSums, type SumDifference } from "./compare-sums.ts";
import type { Desk } from "./desk.ts";
import { byToken } from "./domain-ledger.ts";
import type { Whereabouts } from "./domains.ts";
import { settleReleases } from "./settle-releases.ts";

export type ReconcileRequest = { readonly pool: string | null; readonly dryRun: boolean; readonly actor: string };

export type QuotaDifference = {
  /** Of a token: only one side has it. Of a sum: counters and ledger, or the ledger and its own rows, differ. Of a row: its admission holds nothing. */
  readonly kind: "counterOnly" | "ledgerOnly" | "sumDiffers" | "ledgerSumDiffers" | "holderGone";
  readonly pool: string;
  /** A token, or a scope as text. */
  readonly subject: string;
  readonly counters: number | null;
  readonly ledger: number | null;
  readonly repaired: boolean;
};

export type ReconcileAnswer =
  | { readonly differences: readonly QuotaDifference[]; readonly repaired: boolean; readonly epoch: number }
  | { readonly kind: "unknownPool" };

/** How long the answer waits for counters that are rebuilt. */
const REBUILD_MS = 5_000;
const LIST_PAGE = 500;

type Difference = Omit<QuotaDifference, "repaired">;

/**
 * Compares counters, ledger and the records of jobs, and makes them agree: the ledger by its rows and the jobs' records, the counters by a
 * rebuild from the ledger. What is on its way from one to the other while they are read is no difference: each is looked at twice.
 */
export async function reconcile(ports: AdminPorts, request: ReconcileRequest): Promise<ReconcileAnswer> {
  const { store, domains, facts, events } = ports;
  const { pool, dryRun, actor } = request;
  const only = pool === null ? null : await facts.pool(pool);
  if (pool !== null && only === null) return { kind: "unknownPool" };
  const check = dryRun ? await store.check(pool) : await store.repair(pool);
  const wheres = only === null ? await store.listDomains() : [only];
  const live = await compareDomains(ports, wheres, request);
  const found = [...ledgerDifferences(check), ...live];
  const shown = await domains.desk(wheres.find(isDefault) ?? wheres[0] ?? QUEUES);
  const epoch = await shown.domain.openEpoch(REBUILD_MS);
  const repaired = !dryRun && found.length > 0;
  const answer = { differences: found.map((one) => ({ ...one, repaired: !dryRun })), repaired, epoch };
  events.reconciled({ pool, differences: found.length, repaired });
  if (!dryRun) {
    await store.appendAudit({ actor, action: "ReconcileQuota", subject: pool ?? "", reason: "", details: answer });
  }
  return answer;
}

const QUEUES = { domain: "default", durability: "LEDGER" } as const;

/** Each domain's counters against the ledger; those that differ are rebuilt. */
async function compareDomains(
  ports: AdminPorts,
  wheres: readonly Whereabouts[],
  { pool, dryRun, actor }: ReconcileRequest,
): Promise<readonly Difference[]> {
  const live: Difference[] = [];
  for (const where of wheres) {
    // Redis alone decides these: there is nothing to compare its counters with.
    if (where.durability === "REDIS") continue;
    const desk = await ports.domains.desk(where);
    const epoch = await desk.domain.openEpoch(0);
    const found = await compareTwice(ports, desk, { epoch, pool });
    live.push(...found);
    if (!dryRun && found.length > 0) desk.domain.lost(epoch, `${actor} reconciled it`);
  }
  return live;
}

function isDefault(where: Whereabouts): boolean {
  return where.domain === "default" && where.durability === "LEDGER";
}

function ledgerDifferences({ sums, orphans }: LedgerCheck): readonly Difference[] {
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

type Of = { readonly epoch: number; readonly pool: string | null };

async function compareTwice(ports: AdminPorts, desk: Desk, of: Of): Promise<readonly Difference[]> {
  await settleReleases(desk, of.epoch);
  const first = new Set((await compare(ports, desk, of)).map(keyOf));
  if (first.size === 0) return [];
  await settleReleases(desk, of.epoch);
  return (await compare(ports, desk, of)).filter((difference) => first.has(keyOf(difference)));
}

function keyOf(difference: Difference): string {
  return JSON.stringify(difference);
}

async function compare(ports: AdminPorts, desk: Desk, { pool }: Of): Promise<readonly Difference[]> {
  const [sums, counterOnly, ledgerOnly] = [
    await compareSums(desk, pool),
    await heldByCountersOnly(desk, pool),
    await heldByLedgerOnly(ports, desk, pool),
  ];
  return [
    ...sums.map(({ scope, counters, ledger }) => ({
      kind: "sumDiffers" as const,
      pool: scope.pool,
      subject: textOf(scope),
      counters,
      ledger,
    })),
    ...counterOnly.map((held) => ({
      kind: "counterOnly" as const,
      ...tokenOf(held),
      counters: held.amount,
      ledger: null,
    })),
    ...ledgerOnly.map((row) => ({ kind: "ledgerOnly" as const, ...tokenOf(row), counters: null, ledger: row.amount })),
  ];
}

function tokenOf({ pool, token }: LedgerRow): { readonly pool: string; readonly subject: string } {
  return { pool, subject: token };
}

async function compareSums(desk: Desk, pool: string | null): Promise<readonly SumDifference[]> {
  const differing = differingSums({ counters: await desk.counters.used(), ledger: await desk.ledger.readUsed() });
  return differing.filter(({ scope }) => pool === null || scope.pool === pool);
}

/** What is not confirmed is a grant under way, which the reaper sees to. */
async function heldByCountersOnly(desk: Desk, pool: string | null): Promise<readonly HeldToken[]> {
  const alone: HeldToken[] = [];
  let group: HeldToken[] = [];
  const look = async () => {
    const live = byToken(await desk.ledger.findLive(group));
    alone.push(...group.filter((held) => live.get(tokenKey(held))?.fence !== held.fence));
    group = [];
  };
  for await (const held of allHeld(desk)) {
    if (held.confirmed && (pool === null || held.pool === pool)) group.push(held);
    if (group.length >= LIST_PAGE) await look();
  }
  if (group.length > 0) await look();
  return alone;
}

async function heldByLedgerOnly(ports: AdminPorts, desk: Desk, pool: string | null): Promise<readonly LedgerRow[]> {
  const alone: LedgerRow[] = [];
  const filter = { pool, project: null, namespace: null, holder: null, grantedBeforeMs: null };
  for (let after: string | null = null; ; ) {
    const page = await ports.store.listAllocations({ filter, pageSize: LIST_PAGE, after });
    if (page === "badCursor") throw new Error("a page of allocations cannot be gone on from");
    const mine = await inDomain(ports, desk, page.allocations);
    const found = await desk.counters.find(mine);
    if (found === "closed") return [];
    alone.push(...mine.filter((row, at) => found[at]?.fence !== row.fence));
    if (page.next === null) return alone;
    after = page.next;
  }
}

async function inDomain({ facts }: AdminPorts, desk: Desk, rows: readonly LedgerRow[]): Promise<readonly LedgerRow[]> {
  const pools = await Promise.all(rows.map((row) => facts.pool(row.pool)));
  return rows.filter((_row, at) => pools[at]?.domain === desk.domain.name);
}

function textOf(scope: Scope): string {
  const [kind, ...names] = JSON.parse(scopeKey(scope)) as readonly string[];
  return `${kind} ${names.join(" / ")}`;
}

import { type AllocationPage, type AllocationQuery, isPoolShown } from "../../core/quota/admin.ts";
import { holderText, tokenKey } from "../../core/quota/allocations.ts";
import type { FoundToken, Holder, TokenName } from "../../core/quota/counters.ts";
import type { QuotaDomain } from "../domain/domain.ts";
import type { AdminPorts } from "./admin-ports.ts";

/** How long a listing waits for counters that are opening. */
const OPEN_MS = 500;

/**
 * Lists allocations from the ledger. If the filter names a pool of durability REDIS, lists that pool from its counters.
 * These keep no grant times: a filter by age, or of tokens that never lapse, is answered `noGrantTimes`.
 */
export async function listAllocations(
  ports: AdminPorts,
  query: AllocationQuery,
): Promise<AllocationPage | "badCursor" | "noGrantTimes"> {
  const { clock, store, cache, domains, events } = ports;
  const { pool, olderThanMs, ...filter } = query.filter;
  const settings = pool === null ? null : await cache.pool(pool);
  if (settings?.durability === "REDIS") {
    if (olderThanMs !== null || filter.neverLapses) return "noGrantTimes";
    return listFromCounters(await domains.domain(settings), query, clock.nowMs());
  }
  const grantedBeforeMs = olderThanMs === null ? null : clock.nowMs() - olderThanMs;
  const page = await store.listAllocations({ ...query, filter: { ...filter, pool, grantedBeforeMs } });
  if (page === "badCursor") return page;
  const found = await findAll(ports, page.allocations).catch((error: unknown) => {
    events.loopFailed({ loop: "quota listing", error });
    return new Map<string, FoundToken>();
  });
  const nowMs = clock.nowMs();
  const allocations = page.allocations.map(({ holderText: holder, holder: _holder, leaseMs: _leaseMs, ...row }) => {
    const token = found.get(tokenKey(row));
    const inMs = token?.fence === row.fence ? token.expiresInMs : null;
    return { ...row, holder, expireTimeMs: inMs === null ? null : nowMs + inMs };
  });
  // A renewal may have given a token a lease that the ledger does not know.
  const shown = filter.neverLapses ? allocations.filter(({ expireTimeMs }) => expireTimeMs === null) : allocations;
  return { allocations: shown, next: page.next };
}

async function findAll(
  { cache, domains }: AdminPorts,
  rows: readonly TokenName[],
): Promise<ReadonlyMap<string, FoundToken>> {
  const byDomain = new Map<QuotaDomain, TokenName[]>();
  for (const row of rows) {
    const pool = await cache.pool(row.pool);
    if (pool === null) continue;
    const domain = await domains.domain(pool);
    byDomain.set(domain, [...(byDomain.get(domain) ?? []), { pool: row.pool, token: row.token }]);
  }
  const found = new Map<string, FoundToken>();
  for (const [domain, tokens] of byDomain) {
    const answers = await domain.counters.find(tokens);
    if (answers === "closed") continue;
    for (const token of answers) if (token !== null) found.set(tokenKey(token), token);
  }
  return found;
}

/** Returns one page of the counters, filtered. So a page may be short or empty, even if more follow. */
async function listFromCounters(
  domain: QuotaDomain,
  query: AllocationQuery,
  nowMs: number,
): Promise<AllocationPage | "badCursor"> {
  const { pool, project, namespace, holder, shown } = query.filter;
  const after = query.after === null ? null : heldCursor(query.after);
  if (after === "badCursor") return after;
  await domain.epochs.openEpoch(OPEN_MS);
  const page = await domain.counters.held(after, query.pageSize);
  const matching = page.tokens.filter(
    (token) =>
      token.pool === pool &&
      (project ?? token.project) === token.project &&
      (namespace ?? token.namespace) === token.namespace &&
      (holder ?? holderText(token.holder)) === holderText(token.holder) &&
      (!shown || isPoolShown(token.pool, shown.pools) || isHeldBy(token.holder, shown.holder)),
  );
  const found = await domain.counters.find(matching);
  const allocations = matching.map(({ holder: held, leaseMs: _leaseMs, confirmed: _confirmed, ...token }, at) => {
    const inMs = found === "closed" ? null : (found[at]?.expiresInMs ?? null);
    return { ...token, holder: holderText(held), grantTimeMs: null, expireTimeMs: inMs === null ? null : nowMs + inMs };
  });
  return { allocations, next: page.next === null ? null : cursorText(page.next) };
}

function isHeldBy(holder: Holder, caller: string): boolean {
  return holder.kind === "caller" && holder.name === caller;
}

/** Wraps the counters' own cursor, so that a cursor of another list is refused. It is any number below 2^64. */
function cursorText(next: string): string {
  return Buffer.from(`held ${next}`).toString("base64url");
}

function heldCursor(text: string): string | "badCursor" {
  const [, next = ""] = /^held (\d{1,20})$/.exec(Buffer.from(text, "base64url").toString()) ?? [];
  return next === "" || BigInt(next) >= 2n ** 64n ? "badCursor" : next;
}

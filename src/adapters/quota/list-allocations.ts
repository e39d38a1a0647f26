import type { FoundToken } from "../../core/quota/counters.ts";
import { tokenKey } from "../../core/quota/lines.ts";
import type { AdminPorts } from "./admin-ports.ts";
import type { Desk } from "./desk.ts";
import { holderText } from "./holder.ts";
import type { AllocationFilter, Page } from "./ports.ts";

/** A listing waits so long for counters that are being opened. */
const OPEN_MS = 500;

export type ShownAllocation = {
  readonly pool: string;
  readonly token: string;
  readonly amount: number;
  readonly project: string;
  readonly namespace: string;
  readonly queue: string | null;
  readonly holder: string;
  readonly fence: bigint;
  /** Null for a pool of durability REDIS, whose counters do not keep it. */
  readonly grantTimeMs: number | null;
  /** Null: it does not lapse, or the counters do not know. */
  readonly expireTimeMs: number | null;
};

export type AllocationQuery = Page & {
  readonly filter: Omit<AllocationFilter, "grantedBeforeMs"> & { readonly olderThanMs: number | null };
};

type AllocationPage = { readonly allocations: readonly ShownAllocation[]; readonly next: string | null };

/**
 * From the ledger; those of a pool that Redis alone decides, only where the filter names it, from its counters, which do not know when they granted:
 * `noGrantTimes` where that is asked for.
 */
export async function listAllocations(
  ports: AdminPorts,
  query: AllocationQuery,
): Promise<AllocationPage | "badCursor" | "noGrantTimes"> {
  const { clock, store, facts, domains, events } = ports;
  const { pool, olderThanMs, ...filter } = query.filter;
  const settings = pool === null ? null : await facts.pool(pool);
  if (settings?.durability === "REDIS") {
    if (olderThanMs !== null) return "noGrantTimes";
    return listHeld(await domains.desk(settings), query, clock.nowMs());
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
  return { allocations, next: page.next };
}

async function findAll(
  { facts, domains }: AdminPorts,
  rows: readonly { readonly pool: string; readonly token: string }[],
): Promise<ReadonlyMap<string, FoundToken>> {
  const byDesk = new Map<Desk, { pool: string; token: string }[]>();
  for (const row of rows) {
    const pool = await facts.pool(row.pool);
    if (pool === null) continue;
    const desk = await domains.desk(pool);
    byDesk.set(desk, [...(byDesk.get(desk) ?? []), { pool: row.pool, token: row.token }]);
  }
  const found = new Map<string, FoundToken>();
  for (const [desk, tokens] of byDesk) {
    const answers = await desk.counters.find(tokens);
    if (answers === "closed") continue;
    for (const token of answers) if (token !== null) found.set(tokenKey(token), token);
  }
  return found;
}

/** A page of what the counters hold: as they page, so that a page may be short, or empty before the last. */
async function listHeld(desk: Desk, query: AllocationQuery, nowMs: number): Promise<AllocationPage | "badCursor"> {
  const { pool, project, namespace, holder } = query.filter;
  const after = query.after === null ? null : heldCursor(query.after);
  if (after === "badCursor") return after;
  await desk.domain.openEpoch(OPEN_MS);
  const page = await desk.counters.held(after, query.pageSize);
  const mine = page.tokens.filter(
    (token) =>
      token.pool === pool &&
      (project ?? token.project) === token.project &&
      (namespace ?? token.namespace) === token.namespace &&
      (holder ?? holderText(token.holder)) === holderText(token.holder),
  );
  const found = await desk.counters.find(mine);
  const allocations = mine.map(({ holder: held, leaseMs: _leaseMs, confirmed: _confirmed, ...token }, at) => {
    const inMs = found === "closed" ? null : (found[at]?.expiresInMs ?? null);
    return { ...token, holder: holderText(held), grantTimeMs: null, expireTimeMs: inMs === null ? null : nowMs + inMs };
  });
  return { allocations, next: page.next === null ? null : cursorText(page.next) };
}

/** Where counters go on, as a token of this list alone; counters take any number below 2^64. */
function cursorText(next: string): string {
  return Buffer.from(`held ${next}`).toString("base64url");
}

function heldCursor(text: string): string | "badCursor" {
  const [, next = ""] = /^held (\d{1,20})$/.exec(Buffer.from(text, "base64url").toString()) ?? [];
  return next === "" || BigInt(next) >= 2n ** 64n ? "badCursor" : next;
}

/**
 * Serves every request for tokens, of callers, of jobs' plugins and of waiters: asks the counters, records the grant in
 * the ledger, and only then answers that the tokens are granted.
 */

import { sameHolder, tokenKey } from "../core/quota/allocations.ts";
import type { Allocation, Conflict, Grant, GrantOutcome, HeldToken, Holder, Rest } from "../core/quota/counters.ts";
import type { LedgerGrant } from "../core/quota/ledger.ts";
import { TokenContendedError, UnavailableError } from "../runtime/unavailable-error.ts";
import type { QuotaDomain } from "./domain/domain.ts";
import { byToken, refOf } from "./domain/domain-ledger.ts";
import { NOT_OPENED } from "./domain/epochs.ts";
import { pushLimits } from "./limit-changes.ts";

/** How often a call asks the counters while an obstacle is repaired. */
const ATTEMPTS_MAX = 3;
/**
 * How long a call waits for a domain that closed during the call. A call that finds the domain closed does not wait.
 */
const PATIENCE_MS = 500;

/** A request for tokens, by whichever operation. */
export type TokenRequest = { readonly allocations: readonly Allocation[] } & Pick<LedgerGrant, "holder" | "lease">;

/** Another grant holds the token, so that this request cannot have it. */
type HeldOtherwise = {
  readonly kind: "heldOtherwise";
  readonly pool: string;
  readonly token: string;
  readonly holder: Holder;
  readonly amount: number;
  readonly fence: bigint;
};

type SettledGrant =
  | Pick<Grant, "kind" | "fence" | "held" | "expiresInMs">
  | Extract<GrantOutcome, { readonly kind: "exhausted" }>
  | HeldOtherwise
  | { readonly kind: "tooManyTokens"; readonly tokensMax: number }
  /**
   * The obstacle is being repaired, so that the counters may answer otherwise when asked again. If they do not,
   * `suspicious` says that they are wrong. `contended`: another call about the same token is the obstacle.
   */
  | { readonly kind: "again"; readonly why: string; readonly suspicious?: boolean; readonly contended?: boolean };

export type AllocateOutcome = Exclude<SettledGrant, { readonly kind: "again" }>;

/**
 * Takes all allocations or none. Throws `UnavailableError` if counters or ledger are away; the tokens may then be
 * granted, and the same request asked again finds out.
 */
export async function allocate(
  domain: QuotaDomain,
  request: TokenRequest & { readonly priority: number },
): Promise<AllocateOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    const epoch = await domain.epochs.openEpoch(attempt === 1 ? 0 : PATIENCE_MS);
    const outcome = await domain.counters.grant({ ...request, epoch, waiter: null });
    const settled = await confirmGrant(domain, epoch, request, outcome);
    if (settled.kind !== "again") return settled;
    if (attempt === ATTEMPTS_MAX) {
      if (settled.suspicious) domain.epochs.lost(epoch, settled.why);
      throw obstacle(settled);
    }
  }
}

function obstacle({ why, contended }: Extract<SettledGrant, { readonly kind: "again" }>): UnavailableError {
  return contended ? new TokenContendedError(why) : new UnavailableError(why);
}

/**
 * Turns an answer of the counters into one that holds: only tokens that the ledger has are granted. Throws
 * `UnavailableError` if that cannot be known now. Such a grant is freed later, or the next request finds it.
 */
export async function confirmGrant(
  domain: QuotaDomain,
  epoch: number,
  request: TokenRequest,
  outcome: GrantOutcome,
): Promise<SettledGrant> {
  switch (outcome.kind) {
    case "granted":
      if (outcome.held && outcome.confirmed) return acknowledgeHeld(domain, epoch, request, outcome);
      return commitGrant(domain, epoch, request, outcome);
    case "exhausted":
      return outcome;
    case "conflict":
      return resolveConflict(domain, request, outcome);
    case "full":
      return { kind: "tooManyTokens", tokensMax: outcome.tokensMax };
    case "closed":
      domain.epochs.countersClosed(epoch);
      return { kind: "again", why: NOT_OPENED };
  }
}

/** The counters say that the ledger has the grant. The answer waits until the ledger says so too. */
async function acknowledgeHeld(
  domain: QuotaDomain,
  epoch: number,
  request: TokenRequest,
  grant: Grant,
): Promise<SettledGrant> {
  const rows = await Promise.all(request.allocations.map((allocation) => domain.findLive(allocation)));
  const isOwn = rows.every((row) => row?.fence === grant.fence && sameHolder(row.holder, request.holder));
  const rests = rows.flatMap((row, at) =>
    row !== null && row.amount !== request.allocations[at]?.amount ? [row] : [],
  );
  if (isOwn && rests.length === 0) return grant;
  if (isOwn) return shrinkCounters(domain, epoch, rests);
  if (rows.some((row) => row !== null && row.fence !== grant.fence)) {
    const why = "the ledger has a token under another fence than the counters";
    domain.epochs.lost(epoch, why);
    return { kind: "again", why };
  }
  // The ledger has released the token, and the counters are about to free it.
  const released = heldTokens(request, grant.fence).filter((_token, at) => rows[at] === null);
  await domain.counters.free(epoch, released.map(refOf));
  return { kind: "again", why: "the token is being released", contended: true };
}

/** The ledger has taken back a part of the token. Once the counters know, they answer as the ledger does. */
async function shrinkCounters(domain: QuotaDomain, epoch: number, rests: readonly Rest[]): Promise<SettledGrant> {
  await domain.counters.shrink(
    epoch,
    rests.map((rest) => ({ ...refOf(rest), amount: rest.amount })),
  );
  return { kind: "again", why: "a part of the token is being given back", contended: true };
}

async function commitGrant(
  domain: QuotaDomain,
  epoch: number,
  request: TokenRequest,
  grant: Grant,
): Promise<SettledGrant> {
  const { allocations, holder, lease } = request;
  const { fence } = grant;
  const tokens = heldTokens(request, fence);
  const outcome = await domain.commit(epoch, { allocations, holder, fence, ...(lease === undefined ? {} : { lease }) });
  switch (outcome.kind) {
    case "committed":
      domain.confirm(epoch, tokens.map(refOf));
      return grant;
    case "over":
      return undoOver(domain, epoch, grant, tokens);
    case "taken": {
      if (outcome.fence === fence) return shrinkCounters(domain, epoch, [outcome]);
      const { pool, token } = outcome;
      const why = `the ledger has token "${token}" of pool "${pool}" under another fence than the counters`;
      domain.epochs.lost(epoch, why);
      return { kind: "again", why };
    }
    // No caller has holds.
    case "lacksHolds":
    case "gone":
      await domain.counters.free(epoch, tokens.map(refOf));
      if (grant.held) return { kind: "again", why: "an earlier grant of it was taken back", contended: true };
      // The holder may have taken it back, or another worker now has the job: a second grant would ignore either.
      throw new TokenContendedError("the grant was taken back before the ledger had it");
    case "epochMoved": {
      const why = "the ledger's epoch has moved on";
      domain.epochs.lost(epoch, why);
      return { kind: "again", why };
    }
  }
}

/**
 * The counters granted more than the ledger's limits allow: they did not know the newest limits, or they are wrong. A
 * second request for the same tokens may have found room a moment later. So only a grant that was voided is freed.
 */
async function undoOver(
  domain: QuotaDomain,
  epoch: number,
  grant: Grant,
  tokens: readonly HeldToken[],
): Promise<SettledGrant> {
  const outcomes = await domain.ledger.voidGrants(tokens);
  if (outcomes.includes("live")) return grant;
  await domain.counters.free(epoch, tokens.map(refOf));
  await pushLimits(domain, epoch);
  return { kind: "again", why: "the ledger's limits refused what the counters granted", suspicious: true };
}

/** A token that is being given back is an obstacle for a moment only. One that the ledger holds otherwise stays. */
async function resolveConflict(domain: QuotaDomain, request: TokenRequest, conflict: Conflict): Promise<SettledGrant> {
  const live = byToken(await domain.ledger.findLive(request.allocations));
  const requested = new Map(request.allocations.map((allocation) => [tokenKey(allocation), allocation]));
  const other = [...live.values()].find(
    (row) => !sameHolder(row.holder, request.holder) || row.amount !== requested.get(tokenKey(row))?.amount,
  );
  const fences = new Set([...live.values()].map((row) => row.fence));
  const isApart = live.size > 0 && (live.size < request.allocations.length || fences.size > 1);
  const row = other ?? (isApart ? (live.get(tokenKey(conflict)) ?? [...live.values()][0]) : undefined);
  if (row === undefined) {
    throw new TokenContendedError(
      `token "${conflict.token}" of pool "${conflict.pool}" is being given back; ask again`,
    );
  }
  const { pool, token, holder, amount, fence } = row;
  return { kind: "heldOtherwise", pool, token, holder, amount, fence };
}

/** The allocations of a grant as the counters hold them before the ledger has them. */
function heldTokens({ allocations, holder }: TokenRequest, fence: bigint): readonly HeldToken[] {
  return allocations.map(({ caps: _caps, ...allocation }) => ({ ...allocation, holder, fence, confirmed: false }));
}

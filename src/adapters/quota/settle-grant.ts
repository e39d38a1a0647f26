import type {
  AllocationLine,
  Conflict,
  Grant,
  GrantOutcome,
  HeldToken,
  Holder,
  Rest,
} from "../../core/quota/counters.ts";
import type { LedgerGrant } from "../../core/quota/ledger.ts";
import { sameHolder, tokenKey } from "../../core/quota/lines.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import type { Desk } from "./desk.ts";
import { NOT_OPENED } from "./domain.ts";
import { byToken, refOf } from "./domain-ledger.ts";
import { pushLimits } from "./push-limits.ts";

/** What a request asks for, whichever way. */
export type Wanted = { readonly lines: readonly AllocationLine[] } & Pick<LedgerGrant, "holder" | "lease">;

/** A token that its request cannot have as long as it is held. */
export type HeldOtherwise = {
  readonly kind: "heldOtherwise";
  readonly pool: string;
  readonly token: string;
  readonly holder: Holder;
  readonly amount: number;
  readonly fence: bigint;
};

export type Settled =
  | Pick<Grant, "kind" | "fence" | "held" | "expiresInMs">
  | Extract<GrantOutcome, { readonly kind: "exhausted" }>
  | HeldOtherwise
  | { readonly kind: "tooManyTokens"; readonly tokensMax: number }
  /** What stood in the way is being repaired: asked again, the counters may answer otherwise. Where they do not, `suspicious` says that they are wrong. */
  | { readonly kind: "again"; readonly why: string; readonly suspicious?: boolean };

/**
 * Makes an answer of the counters one that holds: only what the ledger has is granted. Throws `UnavailableError` where that cannot be known
 * now; a grant whose end is unknown then frees itself or is found by whoever asks again.
 */
export async function settleGrant(desk: Desk, epoch: number, wanted: Wanted, outcome: GrantOutcome): Promise<Settled> {
  switch (outcome.kind) {
    case "granted":
      if (outcome.held && outcome.confirmed) return acknowledgeHeld(desk, epoch, wanted, outcome);
      return commitGrant(desk, epoch, wanted, outcome);
    case "exhausted":
      return outcome;
    case "conflict":
      return resolveConflict(desk, wanted, outcome);
    case "full":
      return { kind: "tooManyTokens", tokensMax: outcome.tokensMax };
    case "closed":
      desk.domain.notOpened(epoch);
      return { kind: "again", why: NOT_OPENED };
  }
}

/** The counters say that the ledger has it; it is acknowledged only when the ledger says so too. */
async function acknowledgeHeld(desk: Desk, epoch: number, wanted: Wanted, grant: Grant): Promise<Settled> {
  const rows = await Promise.all(wanted.lines.map((line) => desk.findLive(line)));
  const isMine = rows.every((row) => row?.fence === grant.fence && sameHolder(row.holder, wanted.holder));
  const rests = rows.flatMap((row, at) => (row !== null && row.amount !== wanted.lines[at]?.amount ? [row] : []));
  if (isMine && rests.length === 0) return grant;
  if (isMine) return tellRests(desk, epoch, rests);
  if (rows.some((row) => row !== null && row.fence !== grant.fence)) {
    const why = "the ledger has a token under another fence than the counters";
    desk.domain.lost(epoch, why);
    return { kind: "again", why };
  }
  // Released in the ledger; its second half, the counters', is under way.
  const released = heldTokens(wanted, grant.fence).filter((_token, at) => rows[at] === null);
  await desk.counters.free(epoch, released.map(refOf));
  return { kind: "again", why: "the token is being released" };
}

/** A part of it was given back; the counters' half of that is under way, and told here lets them answer as the ledger would. */
async function tellRests(desk: Desk, epoch: number, rests: readonly Rest[]): Promise<Settled> {
  await desk.counters.shrink(
    epoch,
    rests.map((rest) => ({ ...refOf(rest), amount: rest.amount })),
  );
  return { kind: "again", why: "a part of the token is being given back" };
}

async function commitGrant(desk: Desk, epoch: number, wanted: Wanted, grant: Grant): Promise<Settled> {
  const { lines, holder, lease } = wanted;
  const { fence } = grant;
  const tokens = heldTokens(wanted, fence);
  const outcome = await desk.commit(epoch, { lines, holder, fence, ...(lease === undefined ? {} : { lease }) });
  switch (outcome.kind) {
    case "committed":
      desk.confirm(epoch, tokens.map(refOf));
      return grant;
    case "over":
      return undoOver(desk, epoch, grant, tokens);
    case "taken": {
      if (outcome.fence === fence) return tellRests(desk, epoch, [outcome]);
      const why = `the ledger has token "${outcome.token}" of pool "${outcome.pool}" under another fence than the counters`;
      desk.domain.lost(epoch, why);
      return { kind: "again", why };
    }
    case "gone":
      await desk.counters.free(epoch, tokens.map(refOf));
      if (grant.held) return { kind: "again", why: "an earlier grant of it was taken back" };
      // Whoever took it back may be its holder, or the job is another worker's by now: granting it once more would be against that.
      throw new UnavailableError("the grant was taken back before the ledger had it");
    case "epochMoved": {
      const why = "the ledger's epoch has moved on";
      desk.domain.lost(epoch, why);
      return { kind: "again", why };
    }
  }
}

/**
 * The counters granted what the ledger's limits do not allow: they did not know the newest limits, or they are wrong. Another call may
 * have asked for the same tokens and found room a moment later, so that only a voided grant is freed.
 */
async function undoOver(desk: Desk, epoch: number, grant: Grant, tokens: readonly HeldToken[]): Promise<Settled> {
  const voided = await desk.ledger.voidGrants(tokens);
  if (voided.includes("live")) return grant;
  await desk.counters.free(epoch, tokens.map(refOf));
  await pushLimits(desk, epoch);
  return { kind: "again", why: "the ledger's limits refused what the counters granted", suspicious: true };
}

/** A token that is about to go is in the way for a moment only; what is truly held otherwise stays. */
async function resolveConflict(desk: Desk, wanted: Wanted, conflict: Conflict): Promise<Settled> {
  const live = byToken(await desk.ledger.findLive(wanted.lines));
  const wantedLines = new Map(wanted.lines.map((line) => [tokenKey(line), line]));
  const other = [...live.values()].find(
    (row) => !sameHolder(row.holder, wanted.holder) || row.amount !== wantedLines.get(tokenKey(row))?.amount,
  );
  const isApart =
    live.size > 0 && (live.size < wanted.lines.length || new Set([...live.values()].map((row) => row.fence)).size > 1);
  const row = other ?? (isApart ? (live.get(tokenKey(conflict)) ?? [...live.values()][0]) : undefined);
  if (row === undefined) {
    throw new UnavailableError(`token "${conflict.token}" of pool "${conflict.pool}" is being given back; ask again`);
  }
  const { pool, token, holder, amount, fence } = row;
  return { kind: "heldOtherwise", pool, token, holder, amount, fence };
}

/** The lines of a grant as the counters hold them before the ledger has them. */
function heldTokens({ lines, holder }: Wanted, fence: bigint): readonly HeldToken[] {
  return lines.map(({ caps: _caps, ...line }) => ({ ...line, holder, fence, confirmed: false }));
}

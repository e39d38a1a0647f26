import { sameHolder } from "../core/quota/allocations.ts";
import type { Holder, RenewOutcome } from "../core/quota/counters.ts";
import { TokenContendedError, UnavailableError } from "../runtime/unavailable-error.ts";
import type { QuotaDomain } from "./domain/domain.ts";
import { NOT_OPENED } from "./domain/epochs.ts";
import { freeBriefly } from "./release.ts";

export type TokenRenewal = { readonly pool: string; readonly token: string; readonly leaseMs: number | null };

export type HolderRenewOutcome =
  | { readonly kind: "renewed"; readonly fence: bigint; readonly expiresInMs: number | null }
  | { readonly kind: "lost" }
  | { readonly kind: "otherHolder" };

/**
 * Renews leases, each on its own. `lost` is final: the ledger agrees. Throws `UnavailableError` if that cannot be known
 * now. The leases then run on as before, or were renewed.
 */
export async function renew(
  domain: QuotaDomain,
  of: { readonly holder: Holder; readonly allocations: readonly TokenRenewal[] },
): Promise<readonly HolderRenewOutcome[]> {
  const epoch = await domain.epochs.openEpoch(0);
  const outcomes = await domain.counters.renew(epoch, of);
  if (outcomes === "closed") throw closed(domain, epoch);
  return Promise.all(
    of.allocations.map((renewal, at) =>
      confirmRenewal(domain, { ...renewal, epoch, holder: of.holder }, outcomes[at] ?? { kind: "notHeld" }),
    ),
  );
}

/** A token to renew, with its holder and the epoch under which the counters were asked. */
type Renewal = TokenRenewal & { readonly epoch: number; readonly holder: Holder };

async function confirmRenewal(
  domain: QuotaDomain,
  renewal: Renewal,
  outcome: RenewOutcome,
): Promise<HolderRenewOutcome> {
  switch (outcome.kind) {
    case "renewed":
      return outcome.confirmed ? outcome : confirmUnconfirmed(domain, renewal, outcome);
    case "lapsed":
      return expire(domain, renewal, outcome.fence);
    case "notHeld":
      return voidMissing(domain, renewal);
    case "otherHolder":
      return { kind: "otherHolder" };
  }
}

/** The grant may never have reached the ledger. Then there is nothing to renew, but only the reaper can say so. */
async function confirmUnconfirmed(
  domain: QuotaDomain,
  renewal: Renewal,
  renewed: Extract<RenewOutcome, { readonly kind: "renewed" }>,
): Promise<HolderRenewOutcome> {
  const { pool, token, epoch } = renewal;
  const row = await domain.findLive(renewal);
  if (row?.fence !== renewed.fence) {
    throw new TokenContendedError(`the grant of token "${token}" of pool "${pool}" is not settled yet`);
  }
  domain.confirm(epoch, [{ pool, token, fence: renewed.fence }]);
  return renewed;
}

/** The ledger ends a lapsed token before the holder learns of it. */
async function expire(domain: QuotaDomain, renewal: Renewal, fence: bigint): Promise<HolderRenewOutcome> {
  const { pool, token, holder } = renewal;
  const request = { pool, token, holder, project: null, namespace: null, fence };
  const outcome = await domain.release({ ...request, reason: "expired" });
  if (outcome.kind === "released") {
    domain.events.expired({ pool, tokens: 1 });
    await freeBriefly(domain, [outcome.ref]);
  }
  return { kind: "lost" };
}

/** The counters do not hold the token. If the ledger does, they have lost it, or it was granted a moment ago. */
async function voidMissing(domain: QuotaDomain, renewal: Renewal): Promise<HolderRenewOutcome> {
  const { pool, token, holder, epoch } = renewal;
  const row = await domain.findLive(renewal);
  if (row === null) return { kind: "lost" };
  if (!sameHolder(row.holder, holder)) return { kind: "otherHolder" };
  const found = await domain.counters.find([renewal]);
  if (found === "closed") throw closed(domain, epoch);
  if (found[0] === null) {
    // The token may have been released after the first look into the ledger.
    if ((await domain.findLive(renewal))?.fence !== row.fence) return { kind: "lost" };
    domain.epochs.lost(epoch, `the counters have lost token "${token}" of pool "${pool}"`);
    throw new UnavailableError(`token "${token}" of pool "${pool}" cannot be renewed now`);
  }
  throw new TokenContendedError(`token "${token}" of pool "${pool}" is granted anew at this moment`);
}

function closed(domain: QuotaDomain, epoch: number): UnavailableError {
  domain.epochs.countersClosed(epoch);
  return new UnavailableError(`the quota domain "${domain.name}" is being rebuilt: ${NOT_OPENED}`);
}

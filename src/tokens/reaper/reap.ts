import type { AllocationRef, Holder } from "../../core/quota/counters.ts";
import { confirmGivenBack, freeReleased } from "../confirm-given-back.ts";
import type { QuotaDomain } from "../domain/domain.ts";
import { refOf } from "../domain/domain-ledger.ts";
import { pushLimits } from "../limit-changes.ts";
import { countByPool } from "../read-counters.ts";
import { confirmOrVoid, isHeldBy } from "../void-unconfirmed.ts";

/** How long, on the lease clock, a grant may be missing in the ledger before it is taken back. */
export const UNCONFIRMED_MS = 10_000;
/** No call still asks counters and ledger after this time. */
const TOMBSTONE_MS = 10_000;
/** Lapsed tokens of one round, and unconfirmed tokens of one round. */
const ROUND_MAX = 500;

/**
 * One round of a domain's reaper: advances the lease clock by the elapsed time, takes back lapsed tokens and grants
 * that never reached the ledger, ends grants of quota and withdraws nominations that have ended, settles releases, and
 * pushes limits. Each part may run twice, also in two reapers. Throws what ledger and counters throw.
 */
export async function reap(domain: QuotaDomain, elapsedMs: number): Promise<void> {
  const epoch = domain.epochs.current;
  // The next round reaps the domain once it is open.
  if (epoch === null) return domain.epochs.startOpening();
  const tick = await domain.counters.tick(epoch, { elapsedMs, unconfirmedMs: UNCONFIRMED_MS, limit: ROUND_MAX });
  if (tick.kind === "closed") {
    domain.epochs.countersClosed(epoch);
    return;
  }
  domain.events.ticked({ domain: domain.name, clockMs: tick.clockMs, advanced: tick.advanced });
  let stored = await domain.ledger.readDomain();
  if (stored?.grantsDue) {
    for (const grant of await domain.ledger.endGrants()) domain.events.quotaGrantEnded(grant);
    stored = await domain.ledger.readDomain();
  }
  if (stored !== null && stored.epoch > epoch) {
    domain.epochs.lost(epoch, "the ledger's epoch has moved on");
    return;
  }
  await expire(domain, epoch, tick.lapsed);
  await confirmOrVoid(domain, epoch, tick.unconfirmed);
  if (stored !== null && !stored.settled) {
    await settleTombstones(domain, epoch);
    await domain.ledger.withdrawEnded();
    await confirmGivenBack(domain, epoch);
  }
  if (stored !== null && stored.limitsVersion !== tick.limitsVersion) await pushLimits(domain, epoch);
}

/** Ends lapsed tokens in the ledger first. A token that it does not hold ended otherwise, or never reached it. */
async function expire(
  domain: QuotaDomain,
  epoch: number,
  lapsed: readonly (AllocationRef & { readonly holder: Holder })[],
): Promise<void> {
  if (lapsed.length === 0) return;
  const requests = lapsed.map(({ pool, token, fence, holder }) => ({ pool, token, fence, holder }));
  const outcomes = await domain.ledger.release(
    requests.map((request) => ({ ...request, project: null, namespace: null, reason: "expired" })),
  );
  const released = lapsed.filter((_allocation, at) => outcomes[at]?.kind === "released");
  await freeReleased(domain, epoch, released.map(refOf));
  for (const [pool, tokens] of countByPool(released)) domain.events.expired({ pool, tokens });
  const unknown = lapsed.filter((_allocation, at) => outcomes[at]?.kind === "notHeld");
  if (unknown.length === 0) return;
  const found = await domain.counters.find(unknown);
  if (found === "closed") return domain.epochs.countersClosed(epoch);
  const unsettled = found.flatMap((token, at) => (token?.fence === unknown[at]?.fence ? (token ?? []) : []));
  await confirmOrVoid(domain, epoch, unsettled);
}

/**
 * Voids the unconfirmed grants of tokens that were released while the counters did not answer. A tombstone stays until
 * no call that was under way when it was made can still run.
 */
async function settleTombstones(domain: QuotaDomain, epoch: number): Promise<void> {
  const tombstones = await domain.ledger.tombstones(ROUND_MAX);
  if (tombstones.length === 0) return;
  const found = await domain.counters.find(tombstones);
  if (found === "closed") return domain.epochs.countersClosed(epoch);
  const unconfirmed = tombstones.flatMap((tombstone, at) => {
    const held = found[at] ?? null;
    return held !== null && !held.confirmed && isHeldBy(held, tombstone) ? [held] : [];
  });
  await confirmOrVoid(domain, epoch, unconfirmed);
  const sinceMs = domain.clock.nowMs() - TOMBSTONE_MS;
  await domain.ledger.forgetTombstones(tombstones.filter(({ atMs }) => atMs <= sinceMs));
}

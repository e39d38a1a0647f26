import type { HeldToken, Holder, LineRef } from "../../core/quota/counters.ts";
import { countByPool } from "./by-pool.ts";
import type { Desk } from "./desk.ts";
import { refOf } from "./domain-ledger.ts";
import { pushLimits } from "./push-limits.ts";
import { settleReleases } from "./settle-releases.ts";
import { isOf } from "./void-phantom.ts";

/** A grant that the ledger does not have after so long, on the lease clock, is taken back. */
export const UNCONFIRMED_MS = 10_000;
/** No call asks counters and ledger again for so long. */
const TOMBSTONE_MS = 10_000;
/** So many lapsed and so many unconfirmed tokens are seen to in one round. */
const ROUND_MAX = 500;

/**
 * One round of a domain's reaper: advances the lease clock by the time that passed, takes back what lapsed and what nobody made good, settles
 * releases and pushes limits. Every part may be done twice, by two reapers too. Throws what ledger and counters throw.
 */
export async function reap(desk: Desk, elapsedMs: number): Promise<void> {
  const { epoch } = desk.domain;
  // It opens by itself, and is looked at again in the next round.
  if (epoch === null) return desk.domain.open();
  const tick = await desk.counters.tick(epoch, { elapsedMs, unconfirmedMs: UNCONFIRMED_MS, limit: ROUND_MAX });
  if (tick.kind === "closed") {
    desk.domain.notOpened(epoch);
    return;
  }
  desk.events.ticked({ domain: desk.domain.name, clockMs: tick.clockMs, advanced: tick.advanced });
  const stored = await desk.ledger.readEpoch();
  if (stored !== null && stored.epoch > epoch) {
    desk.domain.lost(epoch, "the ledger's epoch has moved on");
    return;
  }
  await expire(desk, epoch, tick.lapsed);
  await resolve(desk, epoch, tick.unconfirmed);
  await settleTombstones(desk, epoch);
  await settleReleases(desk, epoch);
  if (stored !== null && stored.limitsVersion !== tick.limitsVersion) await pushLimits(desk, epoch);
}

/** The ledger first: what it does not end here was ended otherwise, or was never there. */
async function expire(
  desk: Desk,
  epoch: number,
  lapsed: readonly (LineRef & { readonly holder: Holder })[],
): Promise<void> {
  if (lapsed.length === 0) return;
  const requests = lapsed.map(({ pool, token, fence, holder }) => ({ pool, token, fence, holder }));
  const outcomes = await desk.ledger.release(
    requests.map((request) => ({ ...request, project: null, namespace: null, reason: "expired" })),
  );
  const released = lapsed.filter((_line, at) => outcomes[at]?.kind === "released");
  await freeAndTell(desk, epoch, released.map(refOf));
  for (const [pool, tokens] of countByPool(released)) desk.events.expired({ pool, tokens });
  const unknown = lapsed.filter((_line, at) => outcomes[at]?.kind === "notHeld");
  if (unknown.length === 0) return;
  const found = await desk.counters.find(unknown);
  if (found === "closed") return desk.domain.notOpened(epoch);
  const doubtful = found.flatMap((token, at) => (token?.fence === unknown[at]?.fence ? (token ?? []) : []));
  await resolve(desk, epoch, doubtful);
}

/**
 * The counters are back: what they hold of what was released meanwhile is voided. A tombstone stays for as long as a call may be trying again that was under
 * way when it was made.
 */
async function settleTombstones(desk: Desk, epoch: number): Promise<void> {
  const tombstones = await desk.ledger.tombstones(ROUND_MAX);
  if (tombstones.length === 0) return;
  const found = await desk.counters.find(tombstones);
  if (found === "closed") return desk.domain.notOpened(epoch);
  const phantoms = tombstones.flatMap((tombstone, at) => {
    const held = found[at] ?? null;
    return held !== null && !held.confirmed && isOf(held, tombstone) ? [held] : [];
  });
  await resolve(desk, epoch, phantoms);
  const sinceMs = desk.clock.nowMs() - TOMBSTONE_MS;
  await desk.ledger.forgetTombstones(tombstones.filter(({ atMs }) => atMs <= sinceMs));
}

/** Tokens of which only the counters know: the ledger has them after all, or they are voided there and then freed. */
export async function resolve(desk: Desk, epoch: number, tokens: readonly HeldToken[]): Promise<void> {
  if (tokens.length === 0) return;
  const outcomes = await desk.ledger.voidGrants(tokens);
  const live = tokens.filter((_token, at) => outcomes[at] === "live");
  const dead = tokens.filter((_token, at) => outcomes[at] !== "live");
  if (live.length > 0 && (await desk.counters.confirm(epoch, live.map(refOf))) === "closed") {
    return desk.domain.notOpened(epoch);
  }
  await freeAndTell(desk, epoch, dead.map(refOf));
  desk.events.doubted({ domain: desk.domain.name, voided: dead.length, found: live.length });
}

async function freeAndTell(desk: Desk, epoch: number, refs: readonly LineRef[]): Promise<void> {
  if (refs.length === 0) return;
  const freed = await desk.counters.free(epoch, refs);
  if (freed === "closed") return desk.domain.notOpened(epoch);
  await desk.ledger.confirmReleases(refs);
}

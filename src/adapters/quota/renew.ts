import type { Holder, LineRef, RenewOutcome } from "../../core/quota/counters.ts";
import { sameHolder } from "../../core/quota/lines.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import type { Desk } from "./desk.ts";
import { NOT_OPENED } from "./domain.ts";
import { freeBriefly } from "./release.ts";

export type RenewLine = { readonly pool: string; readonly token: string; readonly leaseMs: number | null };

export type Renewed =
  | { readonly kind: "renewed"; readonly fence: bigint; readonly expiresInMs: number | null }
  | { readonly kind: "lost" }
  | { readonly kind: "otherHolder" };

/**
 * Renews leases, each by itself. `lost` is final and said only where the ledger agrees; throws `UnavailableError` where that cannot be
 * known now: the leases run on as before, or were renewed.
 */
export async function renew(
  desk: Desk,
  of: { readonly holder: Holder; readonly lines: readonly RenewLine[] },
): Promise<readonly Renewed[]> {
  const epoch = await desk.domain.openEpoch(0);
  const outcomes = await desk.counters.renew(epoch, of);
  if (outcomes === "closed") throw closed(desk, epoch);
  return Promise.all(
    of.lines.map((line, at) =>
      settle(desk, { ...line, epoch, holder: of.holder }, outcomes[at] ?? { kind: "notHeld" }),
    ),
  );
}

type Asked = RenewLine & { readonly epoch: number; readonly holder: Holder };

async function settle(desk: Desk, asked: Asked, outcome: RenewOutcome): Promise<Renewed> {
  switch (outcome.kind) {
    case "renewed":
      return outcome.confirmed ? outcome : settleUnconfirmed(desk, asked, outcome);
    case "lapsed":
      return expire(desk, asked, outcome.fence);
    case "notHeld":
      return settleMissing(desk, asked);
    case "otherHolder":
      return { kind: "otherHolder" };
  }
}

/** Its grant may never have been acknowledged: then there is nothing to renew, but that is for the reaper to say. */
async function settleUnconfirmed(
  desk: Desk,
  asked: Asked,
  renewed: Extract<RenewOutcome, { readonly kind: "renewed" }>,
): Promise<Renewed> {
  const row = await desk.findLive(asked);
  if (row?.fence !== renewed.fence) {
    throw new UnavailableError(`the grant of token "${asked.token}" of pool "${asked.pool}" is not settled yet`);
  }
  desk.confirm(asked.epoch, [{ pool: asked.pool, token: asked.token, fence: renewed.fence }]);
  return renewed;
}

/** What lapsed is the ledger's to end before anybody hears of it. */
async function expire(desk: Desk, asked: Asked, fence: bigint): Promise<Renewed> {
  const { pool, token } = asked;
  const request = { pool, token, holder: asked.holder, project: null, namespace: null, fence };
  const outcome = await desk.release({ ...request, reason: "expired" });
  if (outcome.kind === "released") {
    desk.events.expired({ pool, tokens: 1 });
    await freeBriefly(desk, [outcome.ref]);
  }
  return { kind: "lost" };
}

/** Nothing to renew, unless the ledger has it: then the counters have lost it, or it was granted a moment ago. */
async function settleMissing(desk: Desk, asked: Asked): Promise<Renewed> {
  const row = await desk.findLive(asked);
  if (row === null) return { kind: "lost" };
  if (!sameHolder(row.holder, asked.holder)) return { kind: "otherHolder" };
  const found = await desk.counters.find([asked]);
  if (found === "closed") throw closed(desk, asked.epoch);
  if (found[0] === null) {
    const ref: LineRef = row;
    // Released since the ledger was asked?
    if ((await desk.findLive(asked))?.fence !== ref.fence) return { kind: "lost" };
    desk.domain.lost(asked.epoch, `the counters have lost token "${asked.token}" of pool "${asked.pool}"`);
  }
  throw new UnavailableError(`token "${asked.token}" of pool "${asked.pool}" cannot be renewed now`);
}

function closed(desk: Desk, epoch: number): UnavailableError {
  desk.domain.notOpened(epoch);
  return new UnavailableError(`the quota domain "${desk.domain.name}" is being rebuilt: ${NOT_OPENED}`);
}

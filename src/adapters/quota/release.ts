import type { Holder, LineRef } from "../../core/quota/counters.ts";
import type { ReleaseOutcome, ReleaseRequest } from "../../core/quota/ledger.ts";
import type { Desk } from "./desk.ts";
import { voidPhantom } from "./void-phantom.ts";

/** The answer waits for the counters so long at most; the reaper makes up for what they did not hear. */
const FREE_MS_MAX = 100;

export type ReleaseLine = {
  readonly pool: string;
  readonly token: string;
  readonly holder: Holder;
  /** Null: not compared; so of the namespace. */
  readonly project: string | null;
  readonly namespace: string | null;
} & Pick<ReleaseRequest, "lease">;

export type Released =
  | { readonly kind: "released"; readonly fence: bigint }
  | Exclude<ReleaseOutcome, { readonly kind: "released" }>;

/**
 * Gives tokens back, each by itself: the ledger first, which works while the counters are away, then the counters. A token whose grant was
 * never acknowledged is given back too: after this it cannot come to be granted by that earlier request.
 */
export async function release(desk: Desk, lines: readonly ReleaseLine[]): Promise<readonly Released[]> {
  const outcomes = await Promise.all(
    lines.map((line) =>
      desk.release({ ...line, fence: null, reason: "released" }).then((out) => withPhantom(desk, line, out)),
    ),
  );
  const refs = outcomes.flatMap((outcome) => (outcome.kind === "released" ? [outcome.ref] : []));
  await freeBriefly(desk, refs);
  return outcomes.map((outcome) =>
    outcome.kind === "released" ? { kind: "released", fence: outcome.ref.fence } : outcome,
  );
}

type WithRef = Exclude<Released, { readonly kind: "released" }> | { readonly kind: "released"; readonly ref: LineRef };

/** What the ledger does not hold the counters may, under a grant whose answer was lost. */
async function withPhantom(desk: Desk, line: ReleaseLine, outcome: ReleaseOutcome): Promise<WithRef> {
  if (outcome.kind !== "notHeld") return outcome;
  const phantom = await voidPhantom(desk, line);
  switch (phantom.kind) {
    case "none":
      return outcome;
    case "unknown":
      return desk.bury({ ...line, fence: null, reason: "released" });
    case "voided":
      return { kind: "released", ref: phantom.ref };
    case "live":
      return desk.release({ ...line, fence: phantom.ref.fence, reason: "released" });
    case "otherScope":
      return phantom;
  }
}

/**
 * Frees in the counters what the ledger has released and tells the ledger so; waits for that a moment at most. Never throws: the reaper
 * repeats it until it has worked.
 */
export async function freeBriefly(desk: Desk, refs: readonly LineRef[]): Promise<void> {
  const { epoch } = desk.domain;
  if (refs.length === 0 || epoch === null) return;
  const stop = new AbortController();
  const freed = freeNow(desk, epoch, refs).catch((error: unknown) => {
    desk.events.loopFailed({ loop: "quota release", error });
  });
  await Promise.race([freed, desk.clock.sleep(FREE_MS_MAX, stop.signal)]);
  stop.abort();
}

async function freeNow(desk: Desk, epoch: number, refs: readonly LineRef[]): Promise<void> {
  const freed = await desk.counters.free(epoch, refs);
  if (freed === "closed") desk.domain.notOpened(epoch);
  else void confirmSoon(desk, refs);
}

async function confirmSoon(desk: Desk, refs: readonly LineRef[]): Promise<void> {
  await desk.confirmReleases(refs).catch((error: unknown) => {
    desk.events.loopFailed({ loop: "quota release", error });
  });
}

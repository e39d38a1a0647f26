import type { AllocationRef, Holder } from "../core/quota/counters.ts";
import type { ReleaseOutcome, ReleaseRequest } from "../core/quota/ledger.ts";
import { confirmGivenBack } from "./confirm-given-back.ts";
import type { QuotaDomain } from "./domain/domain.ts";
import { voidUnconfirmed } from "./void-unconfirmed.ts";

/** How long an answer waits for the counters. The reaper later repeats what did not reach them. */
const FREE_MS_MAX = 100;

/** A token to release, with the holder that asks for it. */
export type HolderRelease = {
  readonly pool: string;
  readonly token: string;
  readonly holder: Holder;
  /** Null: any project. */
  readonly project: string | null;
  /** Null: any namespace. */
  readonly namespace: string | null;
} & Pick<ReleaseRequest, "lease">;

type ReleaseRefusal = Exclude<ReleaseOutcome, { readonly kind: "released" }>;

export type HolderReleaseOutcome = { readonly kind: "released"; readonly fence: bigint } | ReleaseRefusal;

/**
 * Gives tokens back, each on its own: first in the ledger, which works while the counters are away, then in the
 * counters. Also gives back a token whose grant was never acknowledged. The earlier request for it then cannot be
 * granted any more.
 */
export async function release(
  domain: QuotaDomain,
  allocations: readonly HolderRelease[],
): Promise<readonly HolderReleaseOutcome[]> {
  const outcomes = await Promise.all(allocations.map((allocation) => releaseOne(domain, allocation)));
  const refs = outcomes.flatMap((outcome) => (outcome.kind === "released" ? [outcome.ref] : []));
  await freeBriefly(domain, refs);
  return outcomes.map((outcome) =>
    outcome.kind === "released" ? { kind: "released", fence: outcome.ref.fence } : outcome,
  );
}

type ReleasedToken = { readonly kind: "released"; readonly ref: AllocationRef } | ReleaseRefusal;

async function releaseOne(domain: QuotaDomain, allocation: HolderRelease): Promise<ReleasedToken> {
  const outcome = await domain.release({ ...allocation, fence: null, reason: "released" });
  if (outcome.kind !== "notHeld") return outcome;
  // The counters may hold a token that the ledger does not, by a grant whose answer was lost.
  const unconfirmed = await voidUnconfirmed(domain, allocation);
  switch (unconfirmed.kind) {
    case "none":
      return outcome;
    case "unknown":
      return domain.bury({ ...allocation, fence: null, reason: "released" });
    case "voided":
      return { kind: "released", ref: unconfirmed.ref };
    case "live":
      return domain.release({ ...allocation, fence: unconfirmed.ref.fence, reason: "released" });
    case "otherScope":
      return unconfirmed;
  }
}

/**
 * Frees in the counters what the ledger has released, tells the ledger so, and waits a moment for it. Never throws: the
 * reaper repeats it until it succeeds. Only for tokens without heirs, so not for those of jobs.
 */
export async function freeBriefly(domain: QuotaDomain, refs: readonly AllocationRef[]): Promise<void> {
  if (refs.length === 0) return;
  if (domain.ledger.releaseFrees) domain.confirmReleases(refs);
  else await tellBriefly(domain, (epoch) => freeNow(domain, epoch, refs));
}

/**
 * Tells the counters everything that the ledger has released or turned over to heirs, and waits a moment for it. Never
 * throws: the reaper repeats it until it succeeds.
 */
export function confirmBriefly(domain: QuotaDomain): Promise<void> {
  return tellBriefly(domain, (epoch) => confirmGivenBack(domain, epoch));
}

async function tellBriefly(domain: QuotaDomain, tell: (epoch: number) => Promise<unknown>): Promise<void> {
  const epoch = domain.epochs.current;
  if (epoch === null) return;
  const stop = new AbortController();
  const told = tell(epoch).catch((error: unknown) => {
    domain.events.loopFailed({ loop: "quota release", error });
  });
  await Promise.race([told, domain.clock.sleep(FREE_MS_MAX, stop.signal)]);
  // Without a reason it would make an error with a stack, at each release.
  stop.abort("told");
}

async function freeNow(domain: QuotaDomain, epoch: number, refs: readonly AllocationRef[]): Promise<void> {
  const freed = await domain.counters.free(epoch, refs);
  if (freed === "closed") domain.epochs.countersClosed(epoch);
  else domain.confirmReleases(refs);
}

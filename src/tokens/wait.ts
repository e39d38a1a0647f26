/** Serves callers that wait for tokens in a pool's waiting line, as `WaitForResource` and `gangway alloc --wait` do. */
import type { Allocation, Holder, StandOutcome, Violation } from "../core/quota/counters.ts";
import { UnavailableError } from "../runtime/unavailable-error.ts";
import { type AllocateOutcome, confirmGrant } from "./allocate.ts";
import type { QuotaDomain } from "./domain/domain.ts";
import { freeBriefly } from "./release.ts";
import { voidUnconfirmed } from "./void-unconfirmed.ts";

/** How often a waiter repeats its place: three repeats may get lost before it lapses. A lost offer costs this long. */
const STAND_AGAIN_MS = 2_500;
/** How often a waiter looks at a closed domain. */
const CLOSED_MS_MAX = 1_000;
/** The pause while an obstacle is repaired. */
const AGAIN_MS = 50;

export type WaitRequest = {
  readonly allocation: Allocation;
  readonly holder: Holder;
  readonly priority: number;
  /** The waiter's name, which no other waiter ever has. */
  readonly waiter: string;
};

export type WaitStep =
  | { readonly kind: "waiting"; readonly position: number; readonly violation: Violation | null }
  | { readonly kind: "never"; readonly violation: Violation }
  | { readonly kind: "lineFull"; readonly waitersMax: number }
  | Exclude<AllocateOutcome, { readonly kind: "exhausted" }>;

/**
 * Waits in the pool's waiting line until the tokens are granted. Yields the place whenever it changes, and the outcome
 * at the end. If the domain closes, the waiter joins again with its age once the domain is open. The waiter leaves if
 * the loop ends or `signal` is aborted. A grant that arrives then is given back. Throws what the ledger throws.
 */
export async function* wait(domain: QuotaDomain, request: WaitRequest, signal: AbortSignal): AsyncGenerator<WaitStep> {
  const place = new PlaceInWaitingLine(domain, request);
  let shown = "";
  try {
    while (!signal.aborted) {
      const step = await place.stand(signal);
      if (step === "again") continue;
      if (step.kind !== "waiting") return yield* place.end(step, signal);
      const text = JSON.stringify(step);
      if (text !== shown) yield step;
      shown = text;
      await place.untilOffer(signal);
    }
  } finally {
    await place.leave();
  }
}

class PlaceInWaitingLine {
  readonly #domain: QuotaDomain;
  readonly #request: WaitRequest;
  readonly #sinceMs: number;
  readonly #stopListening: () => void;
  #offered = false;
  #wake = () => {};
  /** The epoch of the place. Null: the waiter has no place. */
  #epoch: number | null = null;
  /** The holder held the token before it waited. */
  #wasHeld = false;
  #ended = false;

  constructor(domain: QuotaDomain, request: WaitRequest) {
    this.#domain = domain;
    this.#request = request;
    this.#sinceMs = domain.clock.nowMs();
    this.#stopListening = domain.offers.listen(request.waiter, () => {
      this.#offered = true;
      this.#wake();
    });
  }

  /** Takes or repeats the place, and records a grant. Returns `again` while an obstacle is repaired. */
  async stand(signal: AbortSignal): Promise<WaitStep | "again"> {
    const { epochs, counters, clock } = this.#domain;
    const { allocation, holder, priority, waiter } = this.#request;
    this.#offered = false;
    const epoch = await epochs.openEpoch(CLOSED_MS_MAX, signal).catch(() => null);
    if (epoch === null) {
      await clock.sleep(AGAIN_MS, signal);
      return "again";
    }
    let outcome: StandOutcome;
    try {
      this.#epoch = epoch;
      const sinceMs = this.#sinceMs;
      outcome = await counters.stand({
        epoch,
        waiter,
        holder,
        allocations: [allocation],
        priority,
        sinceMs,
        grants: true,
      });
    } catch (error) {
      // The next attempt finds the place if this one took it.
      if (!(error instanceof UnavailableError)) throw error;
      await clock.sleep(AGAIN_MS, signal);
      return "again";
    }
    return this.#settle(epoch, outcome, signal);
  }

  async #settle(epoch: number, outcome: StandOutcome, signal: AbortSignal): Promise<WaitStep | "again"> {
    const { epochs, clock } = this.#domain;
    if (outcome.kind === "waiting" || outcome.kind === "never" || outcome.kind === "lineFull") return outcome;
    if (outcome.kind === "closed") {
      epochs.countersClosed(epoch);
      return "again";
    }
    const { allocation, holder } = this.#request;
    this.#wasHeld = outcome.kind === "granted" && outcome.confirmed;
    try {
      const settled = await confirmGrant(this.#domain, epoch, { allocations: [allocation], holder }, outcome);
      if (settled.kind !== "again" && settled.kind !== "exhausted") return settled;
    } catch (error) {
      // The next attempt finds the held token, or takes a place again.
      if (!(error instanceof UnavailableError)) throw error;
    }
    await clock.sleep(AGAIN_MS, signal);
    return "again";
  }

  /** Resolves when the waiting line has news, or when it is time to repeat the place. */
  async untilOffer(signal: AbortSignal): Promise<void> {
    if (this.#offered || signal.aborted) return;
    const stop = new AbortController();
    const end = () => stop.abort();
    this.#wake = end;
    signal.addEventListener("abort", end, { once: true });
    await this.#domain.clock.sleep(STAND_AGAIN_MS, stop.signal);
    signal.removeEventListener("abort", end);
  }

  /** Yields the outcome. If the caller has gone, gives a grant back instead. */
  async *end(step: WaitStep, signal: AbortSignal): AsyncGenerator<WaitStep> {
    this.#ended = true;
    if (!signal.aborted) yield step;
    else if (step.kind === "granted") await this.#giveBack(step.fence);
  }

  async #giveBack(fence: bigint): Promise<void> {
    if (this.#wasHeld) return;
    const { allocation, holder } = this.#request;
    const request = { pool: allocation.pool, token: allocation.token, holder, project: null, namespace: null, fence };
    const outcome = await this.#domain.release({ ...request, reason: "released" });
    if (outcome.kind === "released") await freeBriefly(this.#domain, [outcome.ref]);
  }

  /** Never throws: a place that is not repeated lapses, and the reaper takes back a grant that is not recorded. */
  async leave(): Promise<void> {
    this.#stopListening();
    if (this.#ended || this.#epoch === null) return;
    try {
      const left = await this.#domain.counters.leave(this.#epoch, this.#request.waiter);
      if (left === "notThere") await this.#takeBack();
    } catch (error) {
      this.#domain.events.loopFailed({ loop: "waiting line", error });
    }
  }

  /** The waiting line may have granted the tokens just before the waiter left. */
  async #takeBack(): Promise<void> {
    const { allocation, holder } = this.#request;
    const unconfirmed = await voidUnconfirmed(this.#domain, { ...allocation, holder });
    if (unconfirmed.kind === "voided") await freeBriefly(this.#domain, [unconfirmed.ref]);
  }
}

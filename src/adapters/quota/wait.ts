import type { AllocationLine, Holder, StandOutcome, Violation } from "../../core/quota/counters.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import type { Allocated } from "./allocate.ts";
import type { Desk } from "./desk.ts";
import { freeBriefly } from "./release.ts";
import { settleGrant } from "./settle-grant.ts";
import { voidPhantom } from "./void-phantom.ts";

/** A place is held again so often: three may be lost before it lapses. It is also what a lost offer costs at most. */
const STAND_AGAIN_MS = 2_500;
/** A domain that is closed is looked at again so often. */
const CLOSED_MS_MAX = 1_000;
/** What stood in the way is being repaired for so long at least. */
const AGAIN_MS = 50;

export type WaitRequest = {
  readonly line: AllocationLine;
  readonly holder: Holder;
  readonly priority: number;
  /** Names this waiter for ever. */
  readonly waiter: string;
};

export type WaitStep =
  | { readonly kind: "waiting"; readonly position: number; readonly violation: Violation | null }
  | { readonly kind: "never"; readonly violation: Violation }
  | { readonly kind: "lineFull"; readonly waitersMax: number }
  | Exclude<Allocated, { readonly kind: "exhausted" }>;

/**
 * Stands in the pool's line until the tokens are granted: yields the place whenever it changes, and at the end what came of it. A domain that
 * closes is waited out, and the place is taken again by the same age. Leaving the loop, or aborting `signal`, leaves the line; a grant that
 * came meanwhile is given back. Throws what the ledger throws.
 */
export async function* wait(desk: Desk, request: WaitRequest, signal: AbortSignal): AsyncGenerator<WaitStep> {
  const place = new Place(desk, request);
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

class Place {
  readonly #desk: Desk;
  readonly #request: WaitRequest;
  readonly #sinceMs: number;
  readonly #stopListening: () => void;
  #offered = false;
  #wake = () => {};
  /** The epoch that it stands under; null where it does not. */
  #epoch: number | null = null;
  /** The holder had it before it stood here, and was told so. */
  #wasHeld = false;
  #ended = false;

  constructor(desk: Desk, request: WaitRequest) {
    this.#desk = desk;
    this.#request = request;
    this.#sinceMs = desk.clock.nowMs();
    this.#stopListening = desk.offers.listen(request.waiter, () => {
      this.#offered = true;
      this.#wake();
    });
  }

  /** Stands, and makes a grant good; `again` where something is being repaired. */
  async stand(signal: AbortSignal): Promise<WaitStep | "again"> {
    const { domain, counters, clock } = this.#desk;
    const { line, holder, priority, waiter } = this.#request;
    this.#offered = false;
    const epoch = await domain.openEpoch(CLOSED_MS_MAX, signal).catch(() => null);
    if (epoch === null) {
      await clock.sleep(AGAIN_MS, signal);
      return "again";
    }
    let outcome: StandOutcome;
    try {
      this.#epoch = epoch;
      outcome = await counters.stand({
        epoch,
        waiter,
        holder,
        lines: [line],
        priority,
        sinceMs: this.#sinceMs,
        grants: true,
      });
    } catch (error) {
      // Asked again, it finds the place that it may have taken.
      if (!(error instanceof UnavailableError)) throw error;
      await clock.sleep(AGAIN_MS, signal);
      return "again";
    }
    return this.#settle(epoch, outcome, signal);
  }

  async #settle(epoch: number, outcome: StandOutcome, signal: AbortSignal): Promise<WaitStep | "again"> {
    const { domain, clock } = this.#desk;
    if (outcome.kind === "waiting" || outcome.kind === "never" || outcome.kind === "lineFull") return outcome;
    if (outcome.kind === "closed") {
      domain.notOpened(epoch);
      return "again";
    }
    const { line, holder } = this.#request;
    this.#wasHeld = outcome.kind === "granted" && outcome.confirmed;
    try {
      const settled = await settleGrant(this.#desk, epoch, { lines: [line], holder }, outcome);
      if (settled.kind !== "again" && settled.kind !== "exhausted") return settled;
    } catch (error) {
      // The next attempt finds what is held, or stands again.
      if (!(error instanceof UnavailableError)) throw error;
    }
    await clock.sleep(AGAIN_MS, signal);
    return "again";
  }

  /** Until the line has news, or it is time to stand again. */
  async untilOffer(signal: AbortSignal): Promise<void> {
    if (this.#offered || signal.aborted) return;
    const stop = new AbortController();
    const end = () => stop.abort();
    this.#wake = end;
    signal.addEventListener("abort", end, { once: true });
    await this.#desk.clock.sleep(STAND_AGAIN_MS, stop.signal);
    signal.removeEventListener("abort", end);
  }

  /** Says what came of it; a grant that nobody is there to hear of any more is given back. */
  async *end(step: WaitStep, signal: AbortSignal): AsyncGenerator<WaitStep> {
    this.#ended = true;
    if (!signal.aborted) yield step;
    else if (step.kind === "granted") await this.#giveBack(step.fence);
  }

  async #giveBack(fence: bigint): Promise<void> {
    if (this.#wasHeld) return;
    const { line, holder } = this.#request;
    const request = { pool: line.pool, token: line.token, holder, project: null, namespace: null, fence };
    const outcome = await this.#desk.release({ ...request, reason: "released" });
    if (outcome.kind === "released") await freeBriefly(this.#desk, [outcome.ref]);
  }

  /** Never throws: a place that nobody repeats lapses, and so does a grant that nobody makes good. */
  async leave(): Promise<void> {
    this.#stopListening();
    if (this.#ended || this.#epoch === null) return;
    try {
      const left = await this.#desk.counters.leave(this.#epoch, this.#request.waiter);
      if (left === "notThere") await this.#takeBack();
    } catch (error) {
      this.#desk.events.loopFailed({ loop: "quota line", error });
    }
  }

  /** The line may have granted it in the moment that it was left. */
  async #takeBack(): Promise<void> {
    const { line, holder } = this.#request;
    const phantom = await voidPhantom(this.#desk, { ...line, holder });
    if (phantom.kind === "voided") await freeBriefly(this.#desk, [phantom.ref]);
  }
}

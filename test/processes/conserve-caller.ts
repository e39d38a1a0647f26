import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { GangwayClient } from "../../src/cli/rpc/client.ts";
import {
  AllocationStatus,
  ReleaseOutcome,
  RenewResult_Outcome,
  ResourceManager,
} from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { waitUntil } from "../support/bounded.ts";

const API = ResourceManager.method;
/** A caller leaves a waiting line after this time. */
const PATIENCE_MS = 300;
const PAUSE_MS = 20;
const HELD_MAX = 4;

/** A token that a server granted to a caller. */
export type Belief = { readonly pool: string; readonly token: string; readonly amount: number; readonly fence: bigint };

/** Counts over all callers. */
export type Tally = { calls: number; granted: number; refused: number; released: number; unavailable: number };

/** One external caller. It allocates, repeats, renews, waits and releases at random, and keeps each grant it gets. */
export class Caller {
  readonly holder: string;
  readonly held: Belief[] = [];
  /** Tokens of waiting lines that it left without an answer. */
  readonly left: Belief[] = [];
  readonly #pools: readonly string[];
  readonly #client: () => GangwayClient;
  readonly #random: () => number;
  readonly #tally: Tally;
  #tokens = 0;

  constructor(of: {
    readonly holder: string;
    readonly pools: readonly string[];
    /** Returns a client of some server. */
    readonly client: () => GangwayClient;
    readonly random: () => number;
    readonly tally: Tally;
  }) {
    this.holder = of.holder;
    this.#pools = of.pools;
    this.#client = of.client;
    this.#random = of.random;
    this.#tally = of.tally;
  }

  /** Acts this many times, and then until `isEnough`. */
  async act(times: number, isEnough: () => boolean): Promise<void> {
    for (let time = 0; time < times || !isEnough(); time += 1) await this.#choose()();
  }

  /** Releases the tokens that it may hold without knowing. Returns how many it held. */
  async settle(): Promise<number> {
    let found = 0;
    for (const belief of this.left.splice(0)) if (await this.#giveBack(belief)) found += 1;
    return found;
  }

  #choose(): () => Promise<void> {
    const chance = this.#random();
    const [belief] = this.held;
    if (belief === undefined) {
      if (chance < 0.12) return () => this.#wait();
      return chance < 0.3 ? () => this.#allocateTogether() : () => this.#allocate();
    }
    if (chance < 0.15 && this.held.length < HELD_MAX) return () => this.#allocate();
    if (chance < 0.27) return () => this.#renew(belief);
    return chance < 0.4 ? () => this.#repeat(belief) : () => this.#release(belief);
  }

  #next(pool: string): Omit<Belief, "fence"> {
    this.#tokens += 1;
    return { pool, token: `${this.holder}/${this.#tokens}`, amount: 1 };
  }

  #pick(): string {
    return this.#pools[Math.floor(this.#random() * this.#pools.length)] ?? "";
  }

  async #allocate(): Promise<void> {
    const line = this.#next(this.#pick());
    const answer = await this.#ask((client) =>
      client.call(API.allocateResource, { ...lineOf(line), holder: this.holder }),
    );
    this.#believe(answer.status, [{ ...line, fence: answer.fence }]);
  }

  async #allocateTogether(): Promise<void> {
    const lines = this.#pools.map((pool) => this.#next(pool));
    const request = { lines: lines.map(lineOf), holder: this.holder };
    const answer = await this.#ask((client) => client.call(API.batchAllocateResources, request));
    this.#believe(
      answer.status,
      lines.map((line) => ({ ...line, fence: answer.fence })),
    );
  }

  /** Requests a held token again: it is granted with the same fence. */
  async #repeat(belief: Belief): Promise<void> {
    const answer = await this.#ask((client) =>
      client.call(API.allocateResource, { ...lineOf(belief), holder: this.holder }),
    );
    assert.equal(answer.status, AllocationStatus.GRANTED, `${belief.token} was acknowledged`);
    assert.equal(answer.fence, belief.fence, `${belief.token} has one fence`);
  }

  async #wait(): Promise<void> {
    const line = this.#next(this.#pick());
    const enough = AbortSignal.timeout(PATIENCE_MS);
    this.#tally.calls += 1;
    try {
      const answers = this.#client().stream(API.waitForResource, { ...lineOf(line), holder: this.holder }, enough);
      for await (const { update } of answers) {
        if (update.case === "granted")
          return this.#believe(AllocationStatus.GRANTED, [{ ...line, fence: update.value.fence }]);
      }
    } catch (error) {
      if (
        !isPassing(error) &&
        !enough.aborted &&
        codeOf(error) !== status.RESOURCE_EXHAUSTED &&
        codeOf(error) !== status.FAILED_PRECONDITION
      )
        throw error;
    }
    const unknown = { ...line, fence: 0n };
    await this.#giveBack(unknown);
    this.left.push(unknown);
  }

  async #renew(belief: Belief): Promise<void> {
    const lines = [{ resourceNamespace: belief.pool, allocationToken: belief.token }];
    const { results } = await this.#ask((client) => client.call(API.renewAllocations, { lines, holder: this.holder }));
    assert.equal(results[0]?.outcome, RenewResult_Outcome.RENEWED, `${belief.token} was acknowledged`);
    assert.equal(results[0]?.fence, belief.fence);
  }

  async #release(belief: Belief): Promise<void> {
    this.held.splice(this.held.indexOf(belief), 1);
    const asked = this.#tally.unavailable;
    const wasHeld = await this.#giveBack(belief);
    // If the first answer was lost, the repeated release finds nothing.
    assert.ok(wasHeld || this.#tally.unavailable > asked, `${belief.token} was acknowledged`);
    this.#tally.released += 1;
  }

  async #giveBack({ pool, token }: Belief): Promise<boolean> {
    const request = { resourceNamespace: pool, allocationToken: token, holder: this.holder };
    const { outcome } = await this.#ask((client) => client.call(API.releaseResource, request));
    assert.ok(
      outcome === ReleaseOutcome.RELEASED || outcome === ReleaseOutcome.NOT_HELD,
      `a release answered ${outcome}`,
    );
    return outcome === ReleaseOutcome.RELEASED;
  }

  #believe(answer: AllocationStatus, lines: readonly Belief[]): void {
    if (answer !== AllocationStatus.GRANTED) {
      this.#tally.refused += 1;
      return;
    }
    this.#tally.granted += 1;
    this.held.push(...lines);
  }

  /** Repeats a call until some server answers. Every call may be repeated. */
  async #ask<T>(call: (client: GangwayClient) => Promise<T>): Promise<T> {
    const answers: T[] = [];
    const isAnswered = async () => {
      try {
        this.#tally.calls += 1;
        answers.push(await call(this.#client()));
        return true;
      } catch (error) {
        if (!isPassing(error)) throw error;
        this.#tally.unavailable += 1;
        return false;
      }
    };
    await waitUntil(`a server answers ${this.holder}`, isAnswered, { pollMs: PAUSE_MS * (1 + this.#random()) });
    return answers[0] as T;
  }
}

function lineOf({ pool, token, amount }: Omit<Belief, "fence">) {
  return { resourceNamespace: pool, allocationToken: token, amount: BigInt(amount) };
}

function codeOf(error: unknown): number | undefined {
  return (error as { readonly code?: number }).code;
}

/** True if the call may or may not have been carried out, and may be repeated. */
export function isPassing(error: unknown): boolean {
  return [status.UNAVAILABLE, status.DEADLINE_EXCEEDED].includes(codeOf(error) ?? status.OK);
}

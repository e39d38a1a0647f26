import { invariant } from "../../runtime/assert.ts";
import type { AllocationLine, GrantOutcome, Holder, LedgerRow, QueueLimit, Scope, Violation } from "./counters.ts";
import { AMOUNT_MAX, checkLines, FENCES_PER_EPOCH, tokenKey } from "./lines.ts";
import { scopeKey, scopesOf } from "./scopes.ts";

type HeldLine = AllocationLine & { readonly holder: Holder; readonly fence: bigint };
type Sum = { readonly scope: Scope; readonly used: number };

export type GrantRequest = {
  readonly epoch: number;
  readonly holder: Holder;
  readonly lines: readonly AllocationLine[];
};

/**
 * The counters of one quota domain as plain state: the executable specification of `Counters`. The cost of an operation follows
 * its own lines, never the tokens that are held; only `open` and `used` read everything.
 */
export class CounterState {
  /** Null until the ledger was loaded: everything is closed. */
  #epoch: number | null = null;
  #grants = 0n;
  #limits = new Map<string, number>();
  #sums = new Map<string, Sum>();
  #byToken = new Map<string, HeldLine>();
  #byFence = new Map<bigint, HeldLine[]>();

  /** Replaces everything by what the ledger holds. An epoch older than the present one changes nothing: its caller finds itself closed. */
  open(epoch: number, rows: readonly LedgerRow[], limits: readonly QueueLimit[]): void {
    if (this.#epoch !== null && epoch < this.#epoch) return;
    if (this.#epoch !== epoch) this.#grants = 0n;
    this.#epoch = epoch;
    this.#sums.clear();
    this.#byToken.clear();
    this.#byFence.clear();
    this.#replaceLimits(limits);
    for (const row of rows) {
      this.#hold(row);
      // Rows granted under this very epoch keep their fences: new grants count on from the highest.
      const counter = row.fence - BigInt(epoch) * FENCES_PER_EPOCH;
      if (counter > this.#grants && counter < FENCES_PER_EPOCH) this.#grants = counter;
    }
  }

  /** Throws if there is no line or an amount is not a whole number of 1 to 2^53 − 1: a caller's bug. */
  grant(request: GrantRequest): GrantOutcome {
    checkLines(request.lines);
    if (request.epoch !== this.#epoch) return { kind: "closed" };
    const known = this.#knownGrant(request);
    if (known !== null) return known;
    const violation = this.#firstViolation(request.lines);
    if (violation !== null) return { kind: "exhausted", violation };
    // An epoch whose fences are used up is as good as closed: its caller raises it and goes on.
    if (this.#grants + 1n >= FENCES_PER_EPOCH) return { kind: "closed" };
    this.#grants += 1n;
    const fence = BigInt(request.epoch) * FENCES_PER_EPOCH + this.#grants;
    for (const line of request.lines) this.#hold({ ...line, holder: request.holder, fence });
    return { kind: "granted", fence, held: false };
  }

  free(epoch: number, fence: bigint): "freed" | "notHeld" | "closed" {
    if (epoch !== this.#epoch) return "closed";
    const lines = this.#byFence.get(fence);
    if (lines === undefined) return "notHeld";
    this.#byFence.delete(fence);
    for (const line of lines) {
      this.#byToken.delete(tokenKey(line));
      for (const scope of scopesOf(line)) this.#add(scope, -line.amount);
    }
    return "freed";
  }

  /** Replaces all limits: a queue that is not named for a pool may use nothing more of it. */
  setLimits(epoch: number, limits: readonly QueueLimit[]): "set" | "closed" {
    if (epoch !== this.#epoch) return "closed";
    this.#replaceLimits(limits);
    return "set";
  }

  used(): readonly Sum[] {
    return [...this.#sums.values()];
  }

  /** The answer for a request of which at least one token is held; null if none is. */
  #knownGrant(request: GrantRequest): GrantOutcome | null {
    const held = request.lines.map((line) => this.#byToken.get(tokenKey(line)));
    const first = held.find((line) => line !== undefined);
    if (first === undefined) return null;
    const other = request.lines.find((line, at) => !sameGrant(line, request.holder, held[at], first.fence));
    if (other !== undefined) return { kind: "conflict", token: other.token };
    return { kind: "granted", fence: first.fence, held: true };
  }

  #firstViolation(lines: readonly AllocationLine[]): Violation | null {
    const pending = new Map<string, number>();
    const charges = lines.flatMap((line) => scopesOf(line).map((scope) => ({ scope, requested: line.amount })));
    for (const { scope, requested } of charges) {
      const key = scopeKey(scope);
      const earlier = pending.get(key) ?? 0;
      const used = (this.#sums.get(key)?.used ?? 0) + earlier;
      const limit = scope.kind === "queue" ? (this.#limits.get(key) ?? 0) : AMOUNT_MAX;
      if (requested > limit - used) return { scope, used, limit, requested };
      pending.set(key, earlier + requested);
    }
    return null;
  }

  #hold(line: HeldLine): void {
    this.#byToken.set(tokenKey(line), line);
    const together = this.#byFence.get(line.fence);
    if (together === undefined) this.#byFence.set(line.fence, [line]);
    else together.push(line);
    for (const scope of scopesOf(line)) this.#add(scope, line.amount);
  }

  #add(scope: Scope, amount: number): void {
    const key = scopeKey(scope);
    const used = (this.#sums.get(key)?.used ?? 0) + amount;
    invariant(used >= 0, `the sum of ${key} is ${used}`);
    if (used === 0) this.#sums.delete(key);
    else this.#sums.set(key, { scope, used });
  }

  #replaceLimits(limits: readonly QueueLimit[]): void {
    this.#limits = new Map(limits.map(({ queue, pool, limit }) => [scopeKey({ kind: "queue", pool, queue }), limit]));
  }
}

function sameGrant(line: AllocationLine, holder: Holder, held: HeldLine | undefined, fence: bigint): boolean {
  return (
    held !== undefined &&
    held.fence === fence &&
    held.amount === line.amount &&
    held.holder.jobUid === holder.jobUid &&
    held.holder.admission === holder.admission
  );
}

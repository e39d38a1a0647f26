import { compareText, tokenKey } from "./allocations.ts";
import type { AllocationRef, HeldToken, LedgerRow } from "./counters.ts";

/** A held token. Its times are on the lease clock. */
export type Held = {
  readonly row: LedgerRow;
  readonly key: string;
  readonly confirmed: boolean;
  readonly grantedMs: number;
  /** Null: never. */
  readonly expiresMs: number | null;
  /** Grows with every grant. */
  readonly order: number;
};

/**
 * All held tokens. Tokens with leases and unconfirmed tokens are indexed separately, so that a search for them costs no
 * more than their number.
 */
export class Tokens {
  readonly #all = new Map<string, Held>();
  readonly #leased = new Map<string, Held>();
  readonly #unconfirmed = new Map<string, Held>();
  #order = 0;

  get size(): number {
    return this.#all.size;
  }

  get(of: Pick<AllocationRef, "pool" | "token">): Held | undefined {
    return this.#all.get(tokenKey(of));
  }

  /** Returns the token only if its fence matches. */
  find(ref: AllocationRef): Held | undefined {
    const held = this.get(ref);
    return held?.row.fence === ref.fence ? held : undefined;
  }

  hold(row: LedgerRow, of: { readonly confirmed: boolean; readonly nowMs: number }): void {
    this.#order += 1;
    this.#put({
      row,
      key: tokenKey(row),
      confirmed: of.confirmed,
      grantedMs: of.nowMs,
      expiresMs: expiryOf(row.leaseMs, of.nowMs),
      order: this.#order,
    });
  }

  drop({ key }: Held): void {
    for (const map of [this.#all, this.#leased, this.#unconfirmed]) map.delete(key);
  }

  confirm(held: Held): void {
    this.#put({ ...held, confirmed: true });
  }

  shrink(held: Held, amount: number): void {
    this.#put({ ...held, row: { ...held.row, amount } });
  }

  renew(held: Held, of: { readonly leaseMs: number | null; readonly nowMs: number }): Held {
    const renewed = {
      ...held,
      row: { ...held.row, leaseMs: of.leaseMs },
      expiresMs: expiryOf(of.leaseMs, of.nowMs),
    };
    this.#put(renewed);
    return renewed;
  }

  unconfirmed(): readonly Held[] {
    return [...this.#unconfirmed.values()];
  }

  /** Returns lapsed tokens. The token that lapsed first comes first. */
  lapsed(nowMs: number, limit: number): readonly Held[] {
    return firstOf(this.#leased, (held) => held.expiresMs ?? 0, nowMs, limit);
  }

  /** Returns unconfirmed tokens that were granted at `sinceMs` or earlier, oldest first. */
  unconfirmedSince(sinceMs: number, limit: number): readonly Held[] {
    return firstOf(this.#unconfirmed, (held) => held.grantedMs, sinceMs, limit);
  }

  /** Returns tokens in the order of their grants, starting after `after`. */
  page(after: number, count: number): readonly Held[] {
    const page: Held[] = [];
    for (const held of this.#all.values()) {
      if (held.order <= after) continue;
      page.push(held);
      if (page.length >= count) break;
    }
    return page;
  }

  #put(held: Held): void {
    this.#all.set(held.key, held);
    if (held.expiresMs === null) this.#leased.delete(held.key);
    else this.#leased.set(held.key, held);
    if (held.confirmed) this.#unconfirmed.delete(held.key);
    else this.#unconfirmed.set(held.key, held);
  }
}

export function hasLapsed(held: Held, nowMs: number): boolean {
  return held.expiresMs !== null && held.expiresMs <= nowMs;
}

export function leftMs(held: Pick<Held, "expiresMs">, nowMs: number): number | null {
  return held.expiresMs === null ? null : held.expiresMs - nowMs;
}

export function tokenView(held: Held): HeldToken {
  return { ...held.row, confirmed: held.confirmed };
}

function expiryOf(leaseMs: number | null, nowMs: number): number | null {
  return leaseMs === null ? null : nowMs + leaseMs;
}

function firstOf(
  map: ReadonlyMap<string, Held>,
  timeOf: (held: Held) => number,
  untilMs: number,
  limit: number,
): readonly Held[] {
  const due = [...map.values()].filter((held) => timeOf(held) <= untilMs);
  return due.sort((a, b) => timeOf(a) - timeOf(b) || compareText(a.key, b.key)).slice(0, limit);
}

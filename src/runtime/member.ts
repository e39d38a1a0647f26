import type { Clock } from "./clock.ts";

/** Another member, as it was at the moment. */
type Other = { readonly name: string; readonly counter: number; readonly leaseMs: number };

/** What a member asks of the store that all members share. */
export type MemberStore = {
  /** Makes this name a member; it was never one before. Others may take it for dead when its counter stands still for `leaseMs`. */
  readonly join: (member: {
    readonly name: string;
    readonly takesBuckets: boolean;
    readonly leaseMs: number;
  }) => Promise<void>;
  /** Raises the member's counter; `alive` is false where others took it for dead and it holds nothing any more. */
  readonly renew: (name: string) => Promise<{
    readonly alive: boolean;
    readonly others: readonly Other[];
    readonly leases: readonly { readonly name: string; readonly epoch: number }[];
  }>;
  /** Takes another for dead unless its counter has moved on. */
  readonly declareDead: (seen: { readonly name: string; readonly counter: number }) => Promise<void>;
  readonly leave: (name: string) => Promise<void>;
  /** The lease's new epoch; null where a member that lives holds it. */
  readonly takeLease: (lease: string, holder: string) => Promise<number | null>;
};

export type MemberOptions = {
  /** Begins the member's names; no other process's may begin with it. */
  readonly name: string;
  /** Whether it takes a share of the buckets. */
  readonly takesBuckets: boolean;
  /** Others take a member for dead whose counter has not moved for so long on their own monotonic clock. */
  readonly leaseMs: number;
  /** Told of what goes wrong; nothing stops for it. */
  readonly onError: (error: unknown) => void;
};

/** A time during which the member was sure of what it holds; `signal` is aborted when it ends. */
export type Term = { readonly name: string; readonly signal: AbortSignal };

/** A lease that this member wants. */
export type Lease = {
  /** Null while it is another's, or this member is not sure of it. */
  readonly epoch: () => number | null;
};

/** This process among those that share a database: it renews one row, and holds leases as long as it does. */
export type Member = {
  /** The same object for as long as nothing was lost in between; null while this member is not sure that others hold it alive. */
  readonly term: () => Term | null;
  /** Wants a lease from now on; `onTaken` is called each time that it was taken, or is sure again. */
  readonly lease: (name: string, onTaken?: () => void) => Lease;
  /** Renews, judges the others and takes what is free; for the start, for hints and for simulations. Throws what the store throws. */
  readonly look: () => Promise<void>;
  /** Looks again and again until the signal is aborted. Never rejects. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Hands over at once what it holds, and is no member any more. Whoever works under its leases must have stopped. */
  readonly leave: () => Promise<void>;
};

/** So many renewals fit into a lease: a few may fail. */
const RENEWALS = 10;
/** A member stops by its own clock after this part of the lease: clocks may run at rates that differ by half. */
const OWN_PART = 2 / 3;
/** Where a member's own looks were further apart than this part of the lease, the silence may have been its own or the store's. */
const SILENCE_PART = 1 / 2;

export function createMember(
  ports: { readonly clock: Clock; readonly store: MemberStore },
  options: MemberOptions,
): Member {
  const loop = new MemberLoop(ports.clock, ports.store, options);
  return {
    term: () => loop.term(),
    lease: (name, onTaken) => loop.lease(name, onTaken),
    look: () => loop.look(),
    run: (signal) => loop.run(signal),
    leave: () => loop.leave(),
  };
}

type Seen = { readonly counter: number; readonly sinceMs: number };

class MemberLoop {
  readonly #clock: Clock;
  readonly #store: MemberStore;
  readonly #options: MemberOptions;
  readonly #wanted = new Map<string, () => void>();
  /** Epochs of the leases that are held, by name. */
  #held = new Map<string, number>();
  #others = new Map<string, Seen>();
  #judgedAtMs = Number.NEGATIVE_INFINITY;
  #incarnation = 0;
  #name: string | null = null;
  /** When the last renewal that succeeded began. */
  #renewedAtMs = Number.NEGATIVE_INFINITY;
  #term: { readonly name: string; readonly signal: AbortSignal; readonly end: () => void } | null = null;
  #looking: Promise<void> = Promise.resolve();
  #hasLeft = false;

  constructor(clock: Clock, store: MemberStore, options: MemberOptions) {
    this.#clock = clock;
    this.#store = store;
    this.#options = options;
  }

  term(): Term | null {
    if (this.#term !== null && this.#clock.monotonicMs() >= this.#sureUntilMs()) this.#endTerm();
    return this.#term;
  }

  lease(name: string, onTaken: () => void = () => {}): Lease {
    this.#wanted.set(name, onTaken);
    return { epoch: () => (this.term() === null ? null : (this.#held.get(name) ?? null)) };
  }

  /** Looks never overlap. */
  look(): Promise<void> {
    const mine = this.#looking.then(() => this.#look());
    this.#looking = mine.catch(() => undefined);
    return mine;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#renewing(signal), this.#watching(signal)]);
  }

  async leave(): Promise<void> {
    this.#hasLeft = true;
    await this.#looking;
    const name = this.#name;
    this.#lose();
    if (name !== null) await this.#store.leave(name);
  }

  async #renewing(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.look().catch((error: unknown) => this.#options.onError(error));
      await this.#clock.sleep(this.#options.leaseMs / RENEWALS, signal);
    }
  }

  /** Ends the term in time also while a renewal gets no answer. */
  async #watching(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.term();
      const leftMs = this.#sureUntilMs() - this.#clock.monotonicMs();
      const mostMs = this.#options.leaseMs / RENEWALS;
      await this.#clock.sleep(leftMs > 0 ? Math.min(leftMs, mostMs) : mostMs, signal);
    }
  }

  async #look(): Promise<void> {
    if (this.#hasLeft) return;
    const startedMs = this.#clock.monotonicMs();
    const name = this.#name ?? (await this.#join());
    const { alive, others, leases } = await this.#store.renew(name);
    if (!alive) {
      // The next look joins under another name: what this one held is not taken up again by mistake.
      this.#lose();
      return;
    }
    this.term();
    this.#renewedAtMs = startedMs;
    this.#held = new Map(leases.map((lease) => [lease.name, lease.epoch]));
    if (this.#term === null && this.#clock.monotonicMs() < this.#sureUntilMs()) this.#beginTerm(name);
    await this.#judge(others);
    await this.#takeLeases(name);
  }

  async #join(): Promise<string> {
    this.#incarnation += 1;
    const name = `${this.#options.name}/${this.#incarnation}`;
    const { takesBuckets, leaseMs } = this.#options;
    await this.#store.join({ name, takesBuckets, leaseMs });
    this.#name = name;
    return name;
  }

  /** Takes those for dead whose counters have stood still for a whole lease while this member was looking. */
  async #judge(others: readonly Other[]): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const { leaseMs: ownMs } = this.#options;
    const before = nowMs - this.#judgedAtMs > ownMs * SILENCE_PART ? new Map<string, Seen>() : this.#others;
    this.#judgedAtMs = nowMs;
    this.#others = new Map();
    for (const { name, counter, leaseMs } of others) {
      const known = before.get(name);
      const seen = known?.counter === counter ? known : { counter, sinceMs: nowMs };
      this.#others.set(name, seen);
      if (nowMs - seen.sinceMs >= leaseMs) await this.#store.declareDead({ name, counter });
    }
  }

  async #takeLeases(name: string): Promise<void> {
    for (const [lease, onTaken] of this.#wanted) {
      if (this.#held.has(lease)) continue;
      const epoch = await this.#store.takeLease(lease, name);
      if (epoch === null) continue;
      this.#held.set(lease, epoch);
      onTaken();
    }
  }

  #sureUntilMs(): number {
    return this.#renewedAtMs + this.#options.leaseMs * OWN_PART;
  }

  #beginTerm(name: string): void {
    this.#term = newTerm(name);
    for (const [lease, onTaken] of this.#wanted) if (this.#held.has(lease)) onTaken();
  }

  #endTerm(): void {
    this.#term?.end();
    this.#term = null;
  }

  #lose(): void {
    this.#endTerm();
    this.#name = null;
    this.#held = new Map();
    this.#others = new Map();
  }
}

function newTerm(name: string) {
  const controller = new AbortController();
  return { name, signal: controller.signal, end: () => controller.abort() };
}

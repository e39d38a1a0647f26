/** Serves operators who run several processes: membership and leases, without comparing two machines' clocks. */
import type { Clock } from "./clock.ts";
import type { DecisionClock, RenewedTime } from "./decision-clock.ts";
import type { SharedTime } from "./decision-time.ts";

/** Another member, as the last read showed it. */
type OtherMember = { readonly name: string; readonly counter: number; readonly leaseMs: number };

/** The store that all members share. */
export type MemberStore = {
  /** Makes a new name a member. Others may declare it dead if its counter stands still for `leaseMs`. */
  readonly join: (member: {
    readonly name: string;
    readonly takesBuckets: boolean;
    readonly leaseMs: number;
  }) => Promise<void>;
  /** Raises the member's counter. `alive` is false if others have declared it dead: then it holds nothing any more. */
  readonly renew: (name: string) => Promise<{
    readonly alive: boolean;
    readonly others: readonly OtherMember[];
    readonly leases: readonly { readonly name: string; readonly epoch: number }[];
    readonly time: SharedTime;
  }>;
  /** Declares another member dead unless its counter has moved. */
  readonly declareDead: (seen: { readonly name: string; readonly counter: number }) => Promise<void>;
  readonly leave: (name: string) => Promise<void>;
  /** The lease's new epoch; null if a live member holds it. */
  readonly takeLease: (lease: string, holder: string) => Promise<number | null>;
  /** Notes the correction of the clock, unless the lease of the clock has another epoch by now. */
  readonly noteCorrection: (of: {
    readonly epoch: number;
    readonly correctionMs: number;
    readonly notedMs: number;
  }) => Promise<void>;
};

/** The clock that this member keeps right, and the lease whose holder notes its correction for all. */
export type KeptClock = { readonly clock: Pick<DecisionClock, "renewed">; readonly lease: string };

export type MemberOptions = {
  /** The beginning of the member's names. No name of another process begins with it. */
  readonly name: string;
  /** Takes a share of the buckets. */
  readonly takesBuckets: boolean;
  /** Others declare a member dead if its counter has not moved for this long on their own monotonic clock. */
  readonly leaseMs: number;
  /** Reports an error. The member continues. */
  readonly onError: (error: unknown) => void;
};

/** A time in which the member is sure of what it holds. `signal` is aborted when it ends. */
export type Term = { readonly name: string; readonly signal: AbortSignal };

/** A lease that this member wants. */
export type MemberLease = {
  /** Null while another member holds the lease, or while this member is not sure. */
  readonly epoch: () => number | null;
};

/** This process among the processes that share a database. It renews one row, and holds leases while it does so. */
export type Member = {
  /** The same object until something may have been lost. Null while others may have declared this member dead. */
  readonly term: () => Term | null;
  /** Tries to take and keep a lease from now on. Calls `onTaken` each time that it is taken, or sure again. */
  readonly lease: (name: string, onTaken?: () => void) => MemberLease;
  /** Renews, declares dead members dead, and takes free leases, once. Throws what the store throws. */
  readonly look: () => Promise<void>;
  /** Looks repeatedly until the signal is aborted. Never rejects. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Hands over everything at once and ends the membership. Work under its leases must have stopped before. */
  readonly leave: () => Promise<void>;
};

/** Renewals in the time of a lease, so that a few may fail. */
const RENEWALS_PER_LEASE = 10;
/** A member stops after this part of the lease on its own clock: the rates of two clocks may differ by half. */
const OWN_LEASE_PART = 2 / 3;
/** If its own looks are further apart than this part of the lease, the silence may be this member's or the store's. */
const SILENCE_PART = 1 / 2;

export function createMember(
  ports: {
    readonly clock: Clock;
    readonly store: MemberStore;
    /** Omitted: the member keeps no clock, and notes no correction. */
    readonly kept?: KeptClock;
  },
  options: MemberOptions,
): Member {
  const loop = new MemberLoop(ports, options);
  return {
    term: () => loop.term(),
    lease: (name, onTaken) => loop.lease(name, onTaken),
    look: () => loop.look(),
    run: (signal) => loop.run(signal),
    leave: () => loop.leave(),
  };
}

type SeenCounter = { readonly counter: number; readonly sinceMs: number };

class MemberLoop {
  readonly #clock: Clock;
  readonly #store: MemberStore;
  readonly #kept: KeptClock | undefined;
  readonly #options: MemberOptions;
  readonly #wanted = new Map<string, () => void>();
  /** Epochs of the leases that are held, by name. */
  #held = new Map<string, number>();
  #others = new Map<string, SeenCounter>();
  #judgedAtMs = Number.NEGATIVE_INFINITY;
  #incarnation = 0;
  #name: string | null = null;
  /** When the last successful renewal began. */
  #renewedAtMs = Number.NEGATIVE_INFINITY;
  #term: { readonly name: string; readonly signal: AbortSignal; readonly end: () => void } | null = null;
  #looking: Promise<void> = Promise.resolve();
  #hasLeft = false;

  constructor({ clock, store, kept }: Parameters<typeof createMember>[0], options: MemberOptions) {
    this.#clock = clock;
    this.#store = store;
    this.#kept = kept;
    this.#options = options;
    if (kept !== undefined) this.#wanted.set(kept.lease, () => {});
  }

  term(): Term | null {
    if (this.#term !== null && this.#clock.monotonicMs() >= this.#sureUntilMs()) this.#endTerm();
    return this.#term;
  }

  lease(name: string, onTaken: () => void = () => {}): MemberLease {
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
      await this.#clock.sleep(this.#options.leaseMs / RENEWALS_PER_LEASE, signal);
    }
  }

  /** Ends the term in time, even while a renewal gets no answer. */
  async #watching(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.term();
      const leftMs = this.#sureUntilMs() - this.#clock.monotonicMs();
      const mostMs = this.#options.leaseMs / RENEWALS_PER_LEASE;
      await this.#clock.sleep(leftMs > 0 ? Math.min(leftMs, mostMs) : mostMs, signal);
    }
  }

  async #look(): Promise<void> {
    if (this.#hasLeft) return;
    const startedMs = this.#clock.monotonicMs();
    const name = this.#name ?? (await this.#join());
    const sentMs = this.#clock.monotonicMs();
    const { alive, others, leases, time } = await this.#store.renew(name);
    if (!alive) {
      // The next look joins under a new name: it must not continue what the old name held.
      this.#lose();
      return;
    }
    // First of all: a member that stood still must not decide by the time of before.
    const note = this.#renewClock({ read: time, sentMs, answeredMs: this.#clock.monotonicMs() }, leases);
    this.term();
    this.#renewedAtMs = startedMs;
    this.#held = new Map(leases.map((lease) => [lease.name, lease.epoch]));
    if (this.#term === null && this.#clock.monotonicMs() < this.#sureUntilMs()) this.#beginTerm(name);
    if (note !== null) await this.#store.noteCorrection(note);
    await this.#judge(others);
    await this.#takeLeases(name);
  }

  /** Returns the correction that this member has to note. Null: another member notes it. */
  #renewClock(
    renewed: Pick<RenewedTime, "read" | "sentMs" | "answeredMs">,
    leases: readonly { readonly name: string; readonly epoch: number }[],
  ): Parameters<MemberStore["noteCorrection"]>[0] | null {
    if (this.#kept === undefined) return null;
    const { clock, lease } = this.#kept;
    const { leaseMs } = this.#options;
    const held = leases.find(({ name }) => name === lease);
    const note = clock.renewed({ ...renewed, holds: held !== undefined, leaseMs });
    return held === undefined || note === null ? null : { epoch: held.epoch, ...note };
  }

  async #join(): Promise<string> {
    this.#incarnation += 1;
    const name = `${this.#options.name}/${this.#incarnation}`;
    const { takesBuckets, leaseMs } = this.#options;
    await this.#store.join({ name, takesBuckets, leaseMs });
    this.#name = name;
    return name;
  }

  /** Declares members dead whose counters stood still for a whole lease while this member was looking. */
  async #judge(others: readonly OtherMember[]): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const { leaseMs: ownMs } = this.#options;
    const before = nowMs - this.#judgedAtMs > ownMs * SILENCE_PART ? new Map<string, SeenCounter>() : this.#others;
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
    return this.#renewedAtMs + this.#options.leaseMs * OWN_LEASE_PART;
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

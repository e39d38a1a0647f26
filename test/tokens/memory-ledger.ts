import { holderKey, tokenKey } from "../../src/core/quota/allocations.ts";
import type { AllocationRef, HeldToken, LedgerRow, Limits } from "../../src/core/quota/counters.ts";
import { firstViolation } from "../../src/core/quota/decide.ts";
import type {
  CommitOutcome,
  Ledger,
  LedgerGrant,
  ReleaseOutcome,
  ReleaseRequest,
  Tombstone,
} from "../../src/core/quota/ledger.ts";
import { limitBook } from "../../src/core/quota/limits.ts";
import { Sums } from "../../src/core/quota/sums.ts";

export type MemoryRow = LedgerRow & {
  released: boolean;
  confirmed: boolean;
  shrunk: boolean;
  /** What it was taken from, of which the counters do not know yet. */
  untold?: { readonly token: string; readonly kept: number } | null;
};

/**
 * The ledger of one domain in memory. Like the SQL ledger it keeps ended rows, and each operation is one transaction.
 */
export class MemoryLedger implements Ledger {
  rows: MemoryRow[] = [];
  epoch = 0;
  #tombstones: readonly Tombstone[] = [];
  #buriedMs = 0;
  readonly #limits: () => Limits;
  readonly #nowMs: () => number;

  constructor(limits: () => Limits, nowMs = () => 0) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  get live(): readonly MemoryRow[] {
    return this.rows.filter((row) => !row.released);
  }

  raiseEpoch: Ledger["raiseEpoch"] = async (expected) => {
    if (expected !== null && expected !== this.epoch) return { kind: "moved", epoch: this.epoch };
    this.epoch += 1;
    for (const row of this.rows) {
      if (row.released) row.confirmed = true;
      row.shrunk = false;
      row.untold = null;
    }
    return { kind: "raised", epoch: this.epoch, rows: this.live, limits: this.#limits() };
  };

  endGrants: Ledger["endGrants"] = async () => [];
  readDomain: Ledger["readDomain"] = async () => {
    return { epoch: this.epoch, limitsVersion: this.#limits().version, settled: false, grantsDue: false };
  };

  readLimits: Ledger["readLimits"] = async () => this.#limits();

  readUsed: Ledger["readUsed"] = async () => this.#sums().list();

  readBoth: Ledger["readBoth"] = async (readCounters) => {
    const moment = await readCounters(this.rows.filter((row) => !row.confirmed || row.shrunk || row.untold));
    if (moment === "closed") return moment;
    const sums = this.#sums();
    for (const held of moment.tokens) {
      const row = this.live.find((one) => one.fence === held.fence && tokenKey(one) === tokenKey(held));
      const beside = held.amount - (row?.amount ?? 0);
      if (beside > 0) sums.add({ ...held, amount: beside });
    }
    const held = new Set(moment.tokens.map(tokenKey));
    for (const row of this.live) if (row.untold && !held.has(tokenKey(row))) sums.remove(row);
    const sameLimits = moment.limitsVersion === this.#limits().version;
    return { counters: moment.used, ledger: sums.list(), sameLimits };
  };

  commit: Ledger["commit"] = async (epoch, grants) => grants.map((grant) => this.commitOne(epoch, grant));

  commitOne(epoch: number, grant: LedgerGrant): CommitOutcome {
    if (epoch !== this.epoch) return { kind: "epochMoved" };
    const own = grant.allocations.map((allocation) => this.#rowOf({ ...allocation, fence: grant.fence }));
    if (own.some((row) => row?.released)) return { kind: "gone" };
    for (const allocation of grant.allocations) {
      const live = this.live.find((row) => tokenKey(row) === tokenKey(allocation));
      if (live === undefined || (live.fence === grant.fence && live.amount === allocation.amount)) continue;
      const { pool, token, holder, amount, fence } = live;
      return { kind: "taken", pool, token, holder, amount, fence };
    }
    if (own.every((row) => row !== undefined)) return { kind: "committed" };
    if (this.#isBuried(grant)) return { kind: "gone" };
    const book = limitBook(this.#limits());
    const found = firstViolation(grant.allocations, { usedOf: this.#sums().usedOf, book });
    if (found !== null) return { kind: "over", violation: found.violation };
    for (const { caps: _caps, ...allocation } of grant.allocations) {
      this.rows.push({
        ...allocation,
        holder: grant.holder,
        fence: grant.fence,
        released: false,
        confirmed: false,
        shrunk: false,
      });
    }
    return { kind: "committed" };
  }

  release: Ledger["release"] = async (requests) => requests.map((request) => this.#releaseOne(request));

  bury: Ledger["bury"] = async (requests) =>
    requests.map((request) => {
      const outcome = this.#releaseOne(request);
      const { pool, token, holder, project, namespace } = request;
      if (outcome.kind !== "notHeld" || holder === null) return outcome;
      const isAnother = (other: Tombstone) =>
        tokenKey(other) !== tokenKey(request) ||
        holderKey(other.holder) !== holderKey(holder) ||
        other.project !== project ||
        other.namespace !== namespace;
      this.#tombstones = this.#tombstones.filter(isAnother);
      this.#buriedMs = Math.max(this.#buriedMs + 1, this.#nowMs());
      this.#tombstones = [...this.#tombstones, { pool, token, holder, project, namespace, atMs: this.#buriedMs }];
      return outcome;
    });

  tombstones: Ledger["tombstones"] = async (limit) => this.#tombstones.slice(0, limit);

  forgetTombstones: Ledger["forgetTombstones"] = async (of) => {
    const forgotten = new Set(of.map(({ atMs }) => atMs));
    this.#tombstones = this.#tombstones.filter(({ atMs }) => !forgotten.has(atMs));
  };

  voidGrants: Ledger["voidGrants"] = async (tokens: readonly HeldToken[]) =>
    tokens.map((token) => {
      const row = this.#rowOf(token);
      if (row?.released) return this.#isTellable(row) ? "gone" : "turnedOver";
      if (row !== undefined) return "live";
      const { pool, amount, project, namespace, queue, leaseMs, holder, fence } = token;
      const allocation = { pool, token: token.token, amount, project, namespace, queue, leaseMs, holder, fence };
      this.rows.push({ ...allocation, released: true, confirmed: false, shrunk: false });
      return "voided";
    });

  unconfirmedReleases: Ledger["unconfirmedReleases"] = async (limit) =>
    this.rows.filter((row) => row.released && !row.confirmed && this.#isTellable(row)).slice(0, limit);

  confirmReleases: Ledger["confirmReleases"] = async (refs) => {
    for (const ref of refs) {
      const row = this.#rowOf(ref);
      if (row?.released) row.confirmed = true;
    }
  };

  unconfirmedShrinks: Ledger["unconfirmedShrinks"] = async (limit) =>
    this.live.filter((row) => row.shrunk && this.#isTellable(row)).slice(0, limit);

  confirmShrinks: Ledger["confirmShrinks"] = async (rests) => {
    for (const rest of rests) {
      const row = this.#rowOf(rest);
      if (row?.amount === rest.amount) row.shrunk = false;
    }
  };

  /** Shrinks a row, like a record that gives up some members of its admission. */
  shrink = async (of: { pool: string; token: string; amount: number }): Promise<"shrunk" | "asItIs"> => {
    const at = this.rows.findIndex((row) => !row.released && tokenKey(row) === tokenKey(of));
    const row = this.rows[at];
    if (row === undefined || row.amount <= of.amount) return "asItIs";
    this.rows[at] = { ...row, amount: of.amount, shrunk: true };
    return "shrunk";
  };

  untoldTurnOvers: Ledger["untoldTurnOvers"] = async (limit) =>
    this.rows
      .flatMap(({ untold: unreported, ...to }) => {
        return unreported ? [{ from: { pool: to.pool, fence: to.fence, ...unreported }, to }] : [];
      })
      .slice(0, limit);

  confirmTurnOvers: Ledger["confirmTurnOvers"] = async (tokens) => {
    for (const row of tokens.flatMap((ref) => this.#rowOf(ref) ?? [])) row.untold = null;
  };

  withdrawEnded: Ledger["withdrawEnded"] = async () => 0;

  /** Releases a part of a row, up to `lacks` of it for an heir, like a record that ends a victim's members. */
  turnOver = async (of: {
    readonly pool: string;
    readonly token: string;
    readonly amount: number;
    /** The heir's token. */
    readonly heir: string;
    readonly lacks: number;
    /** The heir's job. Omitted: one of the token's name. */
    readonly jobUid?: string;
  }): Promise<"turnedOver" | "asItIs"> => {
    const at = this.rows.findIndex((row) => !row.released && tokenKey(row) === tokenKey(of));
    const row = this.rows[at];
    const amount = Math.min(of.lacks, (row?.amount ?? 0) - of.amount);
    if (row === undefined || amount <= 0) return "asItIs";
    const unreported = { token: row.token, kept: row.amount - amount };
    const heir = { kind: "admission", jobUid: of.jobUid ?? of.heir, admission: 1 } as const;
    if (of.amount === 0) row.released = true;
    else this.rows[at] = { ...row, amount: of.amount, shrunk: true };
    const made = { released: false, confirmed: false, shrunk: false, leaseMs: null };
    this.rows.push({ ...row, ...made, token: of.heir, amount, holder: heir, project: "heirs", untold: unreported });
    return "turnedOver";
  };

  pruneReleases: Ledger["pruneReleases"] = async () => 0;

  findLive: Ledger["findLive"] = async (tokens) => {
    const wanted = new Set(tokens.map(tokenKey));
    return this.live.filter((row) => wanted.has(tokenKey(row)));
  };

  #releaseOne(request: ReleaseRequest): ReleaseOutcome {
    const row = this.live.find((one) => tokenKey(one) === tokenKey(request));
    if (row === undefined || (request.fence !== null && request.fence !== row.fence)) return { kind: "notHeld" };
    if (request.holder !== null && holderKey(request.holder) !== holderKey(row.holder)) {
      return { kind: "otherHolder", holder: row.holder };
    }
    row.released = true;
    return { kind: "released", ref: row, allocation: row };
  }

  /** Deletes the tombstones that refuse a grant and voids it. Returns false if there is none. */
  #isBuried(grant: LedgerGrant): boolean {
    const found = this.#tombstones.filter((one) =>
      grant.allocations.some(
        (allocation) =>
          tokenKey(allocation) === tokenKey(one) &&
          holderKey(one.holder) === holderKey(grant.holder) &&
          (one.project ?? allocation.project) === allocation.project &&
          (one.namespace ?? allocation.namespace) === allocation.namespace,
      ),
    );
    if (found.length === 0) return false;
    this.#tombstones = this.#tombstones.filter((one) => !found.includes(one));
    for (const { caps: _caps, ...allocation } of grant.allocations) {
      const { holder, fence } = grant;
      this.rows.push({ ...allocation, holder, fence, released: true, confirmed: false, shrunk: false });
    }
    return true;
  }

  #isTellable(row: MemoryRow): boolean {
    const isCut = (other: MemoryRow) =>
      other.untold?.token === row.token && other.pool === row.pool && other.fence === row.fence;
    return !row.untold && !this.rows.some(isCut);
  }

  #rowOf(ref: AllocationRef): MemoryRow | undefined {
    return this.rows.find((row) => row.fence === ref.fence && tokenKey(row) === tokenKey(ref));
  }

  #sums(): Sums {
    const sums = new Sums(limitBook(this.#limits()));
    for (const row of this.live) sums.add(row);
    return sums;
  }
}

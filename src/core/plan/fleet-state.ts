/**
 * The state that the planner keeps in memory between rounds. Changes move it, and a round decides from it. Its
 * decisions depend on its facts alone, not on the order or the number of the changes that led there.
 */

import { type EntityHash, HashSum } from "../../runtime/hash-text.ts";
import { type ApplyOutcome, type Change, entryFact } from "./facts/changes.ts";
import { type HashedEntities, hashOf, isCompared } from "./facts/compare-states.ts";
import { type Cursor, type Fact, factKey, factText, isNothing, noFact } from "./facts/facts.ts";
import type { ListedKind } from "./facts/fleet-read.ts";
import { LiveFleet } from "./live-fleet.ts";
import type { EntryChange } from "./model/capacity-entry.ts";
import type { RoundBounds } from "./model/round-bounds.ts";
import { noteReported } from "./queues/class-state.ts";
import { type FleetPlan, type ReadRound, runRound } from "./round/run-round.ts";

/** A fact with the version of its record. */
type FactRecord = { readonly fact: Fact; readonly version: number; hash: EntityHash | null };

/** A record that a change has replaced. Undefined: there was none; `goneAt` is the version at which it went. */
type Replaced = {
  readonly key: string;
  readonly before: FactRecord | undefined;
  readonly goneAt: number | undefined;
  readonly fact: Fact;
};

/** So many records that are gone are remembered, the latest ones, so that a late change does not bring one back. */
const GONE_MAX = 100_000;

type CapacityChange = Extract<Change, { readonly kind: "capacity" }>;

export class FleetState implements HashedEntities {
  readonly parts = new LiveFleet();
  readonly #records = new Map<string, FactRecord>();
  readonly #gone = new Map<string, number>();
  /** The facts of each list that a store can tell as a whole, by key. */
  readonly #lists = new Map<string, Map<string, Fact>>();
  /** The records that changes after the oldest mark replaced, by key. */
  readonly #journal: Replaced[] = [];
  #marks = 0;
  #rounds = 0;
  #changedFacts = 0;

  /** How many facts have changed since the last round. */
  get changedFacts(): number {
    return this.#changedFacts;
  }

  /** Applies a change if it is newer than the state's record of the same entity. */
  apply(change: Change): ApplyOutcome {
    if (change.kind === "capacity" || change.kind === "unobserved") {
      return finish(this.applyInSlices(change, Number.POSITIVE_INFINITY));
    }
    const { version, ...fact } = change;
    return this.#put(fact, version);
  }

  /**
   * The same, but yields after every `slice` entries of a cluster's capacity. Until it has returned, the state has a
   * part of them.
   */
  *applyInSlices(change: Change, slice: number): Generator<void, ApplyOutcome> {
    if (change.kind === "capacity") return yield* this.#applyCapacity(change, slice);
    if (change.kind === "unobserved") return yield* this.#forgetCapacity(change.cluster, slice);
    return this.apply(change);
  }

  /** Removes the entities of a kind that these changes, which name all of them, leave out. */
  keepOnly(kind: ListedKind, changes: readonly Change[], version: number): void {
    const named = new Set<string>();
    for (const change of changes) if (change.kind === kind) named.add(factKey(change as Fact));
    for (const [key, fact] of [...(this.#lists.get(kind) ?? [])]) {
      if (!named.has(key)) this.#put(noFact(fact), version);
    }
  }

  /** Marks a point to which `rollback` returns. Marks nest. */
  mark(): number {
    this.#marks += 1;
    return this.#journal.length;
  }

  /** Undoes every change since a mark, and the marks after it. */
  rollback(mark: number): void {
    while (this.#journal.length > mark) {
      const { key, before, goneAt, fact } = this.#journal.pop() as Replaced;
      this.#store(key, before ?? { fact: noFact(fact), version: 0, hash: null });
      this.#gone.delete(key);
      if (goneAt !== undefined) this.#gone.set(key, goneAt);
    }
    this.#marks -= 1;
  }

  /** Keeps every change since a mark. */
  release(): void {
    this.#marks -= 1;
    if (this.#marks === 0) this.#journal.length = 0;
  }

  /**
   * Decides about every gang for which something may have changed since the last round. Leaves the facts as they are.
   * `read` sees the capacity that the round has left, before the round gives back what it took.
   */
  round(nowMs: number, bounds: RoundBounds, read: ReadRound = () => undefined): FleetPlan {
    this.#rounds += 1;
    this.#changedFacts = 0;
    this.parts.sync(nowMs);
    const round = this.parts.newRound({ nowMs, number: this.#rounds, bounds });
    return runRound(round, read, { isPreview: false });
  }

  /**
   * Decides as a round would, for `read` alone: the next round decides again about every gang that this one refuses.
   * So changes that are rolled back afterwards leave no trace.
   */
  preview(nowMs: number, read: ReadRound): void {
    this.#rounds += 1;
    const bounds = { admissionsMax: Number.POSITIVE_INFINITY };
    this.parts.sync(nowMs);
    const round = this.parts.newRound({ nowMs, number: this.#rounds, bounds });
    this.parts.quota.whileReserved(null, () => runRound(round, read, { isPreview: true }));
  }

  /** Records reasons that were reported of gangs before this state was made, by their `reasonKey`. */
  noteReported(jobUid: string, key: number): void {
    const gang = this.parts.queues.gangs.get(jobUid);
    if (gang !== undefined) noteReported(gang, key);
  }

  /** Lets a later round report the reasons of these gangs again. */
  reportAgain(jobUids: Iterable<string>): void {
    for (const uid of jobUids) this.parts.queues.reportAgain(uid);
  }

  /** 16 digits, equal for states with equal facts. */
  hash(): string {
    const sum = new HashSum();
    for (const record of this.#records.values()) sum.add(this.#hashOf(record), 1);
    return sum.text;
  }

  /** Calls back with every entity that there is, and the hash of its facts. */
  eachEntity(visit: (key: string, of: { readonly hash: EntityHash }) => void): void {
    for (const [key, record] of this.#records) {
      const hash = this.#hashOf(record);
      if (hash !== NOTHING) visit(key, { hash });
    }
  }

  /** The place in the numbering of a cluster's observer up to which its capacity is known. Null: none. */
  cursorOf(cluster: string): Cursor | null {
    const record = this.#records.get(`cursor ${cluster}`);
    return record?.fact.kind === "cursor" ? record.fact.at : null;
  }

  *#applyCapacity(change: CapacityChange, slice: number): Generator<void, ApplyOutcome> {
    const { cluster, epoch, since, sequence, changes } = change;
    const at = this.cursorOf(cluster);
    if (at !== null && (epoch < at.epoch || (epoch === at.epoch && sequence <= at.sequence))) return "stale";
    if (since === null) yield* this.#removeOthers(cluster, changes, slice);
    else if (at === null || epoch > at.epoch || since > at.sequence) return "gap";
    for (const [place, entry] of changes.entries()) {
      if (place % slice === slice - 1) yield;
      this.#replaceFact(entryFact(cluster, entry), 0);
    }
    this.#replaceFact({ kind: "cursor", cluster, at: { epoch, sequence } }, 0);
    return "applied";
  }

  *#forgetCapacity(cluster: string, slice: number): Generator<void, ApplyOutcome> {
    if (this.cursorOf(cluster) === null) return "stale";
    yield* this.#removeOthers(cluster, [], slice);
    this.#replaceFact({ kind: "cursor", cluster, at: null }, 0);
    return "applied";
  }

  /** Removes the entries that a full list does not name. */
  *#removeOthers(cluster: string, changes: readonly EntryChange[], slice: number): Generator<void> {
    const named = new Set(changes.map((change) => factKey(entryFact(cluster, change))));
    const others = [...(this.#lists.get(capacityList(cluster)) ?? [])].filter(([key]) => !named.has(key));
    for (const [place, [, fact]] of others.entries()) {
      if (place % slice === slice - 1) yield;
      this.#replaceFact(noFact(fact), 0);
    }
  }

  #put(fact: Fact, version: number): "applied" | "stale" {
    const key = factKey(fact);
    const known = this.#records.get(key)?.version ?? this.#gone.get(key) ?? Number.NEGATIVE_INFINITY;
    if (version <= known) return "stale";
    this.#replace(key, { fact, version, hash: null });
    // What an observer saw is of use only while the cluster is registered.
    if (fact.kind === "cluster" && fact.facts === null)
      finish(this.#forgetCapacity(fact.name, Number.POSITIVE_INFINITY));
    return "applied";
  }

  #replaceFact(fact: Fact, version: number): void {
    this.#replace(factKey(fact), { fact, version, hash: null });
  }

  #replace(key: string, record: FactRecord): void {
    if (this.#marks > 0) {
      const before = this.#records.get(key);
      this.#journal.push({ key, before, goneAt: this.#gone.get(key), fact: record.fact });
    }
    this.#store(key, record);
  }

  #store(key: string, record: FactRecord): void {
    const { fact, version } = record;
    if (!isSameListed(this.#records.get(key)?.fact, fact)) {
      this.#changedFacts += 1;
      this.parts.set(fact);
    }
    this.#noteInList(key, fact);
    if (isNothing(fact)) {
      this.#records.delete(key);
      this.#remember(key, version);
    } else {
      this.#gone.delete(key);
      this.#records.set(key, record);
    }
  }

  #remember(key: string, version: number): void {
    this.#gone.delete(key);
    this.#gone.set(key, version);
    if (this.#gone.size <= GONE_MAX) return;
    for (const oldest of this.#gone.keys()) {
      this.#gone.delete(oldest);
      break;
    }
  }

  #noteInList(key: string, fact: Fact): void {
    const name = listOf(fact);
    if (name === null) return;
    const list = this.#lists.get(name) ?? new Map<string, Fact>();
    this.#lists.set(name, list);
    if (isNothing(fact)) list.delete(key);
    else list.set(key, fact);
  }

  #hashOf(record: FactRecord): EntityHash {
    record.hash ??= isCompared(record.fact) ? hashOf(record.fact) : NOTHING;
    return record.hash;
  }
}

/** Runs the slices of a change to their end. */
function finish(slices: Generator<void, ApplyOutcome>): ApplyOutcome {
  for (;;) {
    const { done, value } = slices.next();
    if (done === true) return value;
  }
}

/**
 * True if a fact of a list that readers get as a whole, again and again, says the same as before: it must not make the
 * next round look at anything.
 */
function isSameListed(before: Fact | undefined, fact: Fact): boolean {
  if (before === undefined || fact.kind === "node" || fact.kind === "unbound" || listOf(fact) === null) return false;
  return factText(before) === factText(fact);
}

const NOTHING: EntityHash = { low: 0, high: 0 };

/** The list that a fact is in. Null: its entities are told one by one. */
function listOf(fact: Fact): string | null {
  switch (fact.kind) {
    case "node":
    case "unbound":
      return capacityList(fact.cluster);
    case "gang":
    case "cursor":
      return null;
    default:
      return fact.kind;
  }
}

function capacityList(cluster: string): string {
  return `capacity ${cluster}`;
}

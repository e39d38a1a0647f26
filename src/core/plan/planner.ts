/**
 * The planner: facts go in, and plans come out. It keeps its state in memory between rounds. It has no input or output.
 */

import { invariant } from "../../runtime/assert.ts";
import type { EntityHash } from "../../runtime/hash-text.ts";
import type { Job } from "../job/job.ts";
import type { Scope } from "../quota/counters.ts";
import { type AskedWhy, clustersAsked, explain, refusalsIn } from "./explain/explain.ts";
import type { ReportedRefusal } from "./explain/kept-reason.ts";
import type { ApplyOutcome, Change } from "./facts/changes.ts";
import type { HashedEntities } from "./facts/compare-states.ts";
import type { Cursor } from "./facts/facts.ts";
import type { ListedKind } from "./facts/fleet-read.ts";
import { FleetState } from "./fleet-state.ts";
import { neverRuns } from "./foresee.ts";
import type { HashedAsk } from "./model/ask.ts";
import type { GangHolds, PlanGang } from "./model/plan-gang.ts";
import type { PlannedGang, Refusal } from "./model/plan-types.ts";
import type { RoundBounds } from "./model/round-bounds.ts";
import type { NeverRuns, Simulation } from "./model/simulation.ts";
import type { HeldByCaller, PlanQueue } from "./model/snapshot.ts";
import type { FleetPlan } from "./round/run-round.ts";
import { type SimulateAt, simulate, waitingGang } from "./simulate.ts";

/** The decisions of a round, with messages for its new refusals. */
type ReportedPlan = FleetPlan & { readonly refusals: readonly ReportedRefusal[] };

type ExplainAt = { readonly callers: readonly HeldByCaller[]; readonly nowMs: number };

export class Planner implements HashedEntities {
  readonly #state = new FleetState();

  /** Applies a change if it is newer than the record of the same entity. */
  apply(change: Change): ApplyOutcome {
    return this.#state.apply(change);
  }

  /** The same, but yields after every `slice` entries of a cluster's capacity. */
  applyInSlices(change: Change, slice: number): Generator<void, ApplyOutcome> {
    return this.#state.applyInSlices(change, slice);
  }

  /** Removes the entities of a kind that these changes, which name all of them, leave out. */
  keepOnly(kind: ListedKind, changes: readonly Change[], version: number): void {
    this.#state.keepOnly(kind, changes, version);
  }

  /**
   * Runs one round: decides about every gang for which something may have changed since the last one. `callers`: those
   * that hold tokens, for the messages of refusals. If it throws, make a new planner.
   */
  plan(nowMs: number, bounds: RoundBounds, callers: readonly HeldByCaller[] = []): ReportedPlan {
    let refusals: readonly ReportedRefusal[] = [];
    const made = this.#state.round(nowMs, bounds, (plan, round) => {
      refusals = refusalsIn(plan, round, callers);
    });
    return { ...made, refusals };
  }

  /**
   * Says why a job waits, from its recorded reason and the state as it is. Yields between two clusters; nobody may move
   * the state meanwhile.
   */
  *explain(asked: AskedWhy, { callers, nowMs }: ExplainAt): Generator<void, Refusal> {
    const { parts } = this.#state;
    const round = parts.newRound({ nowMs, number: 0, bounds: { admissionsMax: 0 } });
    for (const cluster of clustersAsked(round, asked)) {
      parts.syncCapacity(cluster);
      yield;
    }
    return explain(round, asked, callers);
  }

  /** Judges a job as if it were submitted now. Leaves nothing behind. */
  simulate(job: Job, at: SimulateAt): Simulation {
    return simulate(this.#state, job, at);
  }

  /** Judges a job as if nothing else ran. Null: it can run, or that is not known yet. Leaves nothing behind. */
  foresee(job: Job, asked: HashedAsk, mayUse: (queue: string) => boolean): NeverRuns | null {
    return neverRuns(this.#state, waitingGang(job, asked), mayUse);
  }

  /** Records the reason that was reported of a gang before this planner was made, by its key. */
  noteReported(jobUid: string, key: number): void {
    this.#state.noteReported(jobUid, key);
  }

  /** Lets a later round report the reasons of these gangs again. */
  reportAgain(jobUids: Iterable<string>): void {
    this.#state.reportAgain(jobUids);
  }

  /** How many facts have changed since the last round. */
  get changedFacts(): number {
    return this.#state.changedFacts;
  }

  /** The known gangs. */
  gangs(): readonly PlanGang[] {
    return [...this.#state.parts.queues.gangs.values()].map(({ facts }) => facts);
  }

  /** Null: no such gang is known. */
  gangOf(uid: string): PlanGang | null {
    return this.#state.parts.queues.gangs.get(uid)?.facts ?? null;
  }

  /** Null: no such queue is known. */
  queueOf(name: string): PlanQueue | null {
    return this.#state.parts.quota.queues.get(name) ?? null;
  }

  /** The names of the clusters of which something is known. */
  clusterNames(): readonly string[] {
    return [...this.#state.parts.clusters.keys()];
  }

  /** A gang as a plan's carrier needs it. The plan must name it. */
  plannedGang(uid: string): PlannedGang {
    const { queues } = this.#state.parts;
    const gang = queues.gangs.get(uid);
    invariant(gang !== undefined, "a plan names gangs of its state");
    const { generation, namespace, name, queue, priority, createTimeMs, waitsSinceMs, traceParent } = gang.facts;
    const isChained = gang.gangClass !== null && this.#state.parts.isStrict(queue);
    const facts = { uid, generation, namespace, name, queue, priority, createTimeMs, waitsSinceMs, isChained };
    const holds = this.holdsOf(uid);
    return {
      ...facts,
      ...(traceParent === undefined ? {} : { traceParent }),
      ...(holds === null ? {} : { holds }),
    };
  }

  /** The tokens that a waiting gang holds for the admission that it would get now, by pool. Null: none. */
  holdsOf(uid: string): GangHolds["amounts"] | null {
    return this.#state.parts.holdsOf(uid);
  }

  /** The recorded use of a scope. */
  usedOf(scope: Scope): number {
    return this.#state.parts.quota.sumOf(scope);
  }

  /** Up to where the capacity of a cluster is known. Null: not at all. */
  cursorOf(cluster: string): Cursor | null {
    return this.#state.cursorOf(cluster);
  }

  /** How many gangs wait in each queue, queues without any included. */
  depths(): ReadonlyMap<string, number> {
    const { queues, quota } = this.#state.parts;
    const depths = new Map([...quota.queues.keys()].map((name) => [name, 0]));
    for (const { name, waiting } of queues.all.values()) if (waiting > 0) depths.set(name, waiting);
    return depths;
  }

  /** How many gangs have a reservation. */
  reservations(): number {
    const { nominees } = this.#state.parts.queues;
    return [...nominees].filter(({ facts }) => facts.nomination?.reservation !== undefined).length;
  }

  /** 16 digits, equal for equal facts. */
  hash(): string {
    return this.#state.hash();
  }

  /** Calls back with every entity that there is, and the hash of its facts. */
  eachEntity(visit: (key: string, of: { readonly hash: EntityHash }) => void): void {
    this.#state.eachEntity(visit);
  }
}

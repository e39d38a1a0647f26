import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { carryOut, fillHalf } from "../../tools/bench/plan.ts";
import { Fleet, gangChange } from "../../tools/bench/plan-fleet.ts";
import { Draw, randomPolicy } from "./random-world.ts";

/** Of as many, one at least shows a gang that waits for what leaves for another one. */
const HISTORIES = 8;
const ROUNDS = 20;
const NOW = 1_800_000_000_000;
/** Of as many fleets at rest, some show what a gang lets others of its queue take. */
const FLEETS_AT_REST = 60;
const ARRIVALS = 12;
const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };

/** A fleet whose queues have random policies and little quota, so that gangs of several queues want one victim. */
class PolicyFleet {
  readonly fleet: Fleet;
  readonly #draw: Draw;
  readonly #reserveAfterMs: number;
  readonly #queues: ReadonlyMap<string, { readonly policy: QueuePolicy; readonly nominal: number }>;

  constructor(draw: Draw) {
    const gangs = 20 + draw.upTo(150);
    const size = { nodes: 8 + 4 * draw.upTo(30), clusters: 1 + draw.upTo(3), asks: 5 + draw.upTo(40) };
    this.fleet = new Fleet({ gangs, ...size, queues: 2 + draw.upTo(40), policies: true });
    this.#draw = draw;
    this.#queues = new Map(
      this.fleet.queues.map(({ name }) => [name, { policy: randomPolicy(draw), nominal: draw.upTo(20) }]),
    );
    this.#reserveAfterMs = draw.of([0, 1]);
    fillHalf(this.fleet);
    for (let at = 0; at < gangs; at++) this.fleet.newGang();
  }

  load(): readonly Change[] {
    return this.fleet.load().map((change) => {
      if (change.kind !== "queue" || change.queue === null) return change;
      const { policy, nominal } = this.#queues.get(change.name) as { policy: QueuePolicy; nominal: number };
      const quotas = change.queue.quotas.map((quota) => ({ ...quota, nominal }));
      const reserves = { ...policy, reserveAfterMs: this.#reserveAfterMs };
      return { ...change, queue: { ...change.queue, policy: reserves, quotas } };
    });
  }

  /** A few gangs are new. */
  arrive(): readonly Change[] {
    return this.#draw.list(1 + this.#draw.upTo(2), () => this.#arrives());
  }

  /** A gang that waits is gone. */
  leave(uid: string): Change {
    const gang = this.fleet.gangs.get(uid) as PlanGang;
    this.fleet.gangs.delete(uid);
    return { kind: "gang", uid, version: gang.version + 1, gang: null };
  }

  #arrives(): Change {
    return this.#set({ ...this.fleet.newGang(), priority: this.#draw.of([-10, 0, 10, 100]) });
  }

  /** Gangs that are new, end, or are asked to leave and have not left yet. */
  happens(): readonly Change[] {
    return this.#draw.list(this.#draw.of([1, 2, 2, 4, 10]), () => this.#happens()).flat();
  }

  #happens(): readonly Change[] {
    const running = [...this.fleet.gangs.values()].filter(({ waits }) => !waits);
    if (running.length === 0 || this.#draw.chance(0.5)) return [this.#arrives()];
    const gang = this.#draw.of(running);
    if (this.#draw.chance(0.6)) return this.fleet.end(gang);
    return [this.#set({ ...gang, version: gang.version + 1, generation: gang.generation + 1, evicted: true })];
  }

  #set(gang: PlanGang): Change {
    this.fleet.gangs.set(gang.uid, gang);
    return gangChange(gang);
  }
}

function loaded(fleet: PolicyFleet): FleetState {
  const state = new FleetState();
  for (const change of fleet.load()) state.apply(change);
  return state;
}

const decided = ({ admissions, preemptions, withdrawn }: FleetPlan) => ({ admissions, preemptions, withdrawn });

test("where queues preempt each other, a state that was moved decides as one that was just loaded", () => {
  let victims = 0;
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const draw = new Draw(seed);
    const fleet = new PolicyFleet(draw);
    const state = loaded(fleet);
    const nowMs = NOW;
    for (let round = 0; round < ROUNDS; round++) {
      const bounds = { admissionsMax: draw.of([1, 16, 256]) };
      const other = draw.chance(0.4) ? loaded(fleet) : null;
      const plan = state.round(nowMs, bounds);
      if (other !== null)
        assert.deepEqual(decided(other.round(nowMs, bounds)), decided(plan), `seed ${seed}, ${round}`);
      victims += plan.preemptions.reduce((sum, one) => sum + one.victims.length, 0);
      for (const change of [...carryOut(fleet.fleet, plan), ...fleet.happens()]) state.apply(change);
    }
  }
  assert.ok(victims > 0, "nobody was preempted");
});

/** Rounds until one changes nothing, or so many that a fleet does not come to rest. */
function comeToRest(fleet: PolicyFleet, state: FleetState): void {
  for (let round = 0; round < ROUNDS; round++) {
    const plan = state.round(NOW, UNBOUNDED);
    if (plan.admissions.length + plan.preemptions.length + plan.withdrawn.length === 0) return;
    for (const change of carryOut(fleet.fleet, plan)) state.apply(change);
  }
}

test("gangs that arrive at a fleet at rest, or leave it again, get what a state that was just loaded gives", () => {
  let given = 0;
  for (let seed = 1; seed <= FLEETS_AT_REST; seed++) {
    const fleet = new PolicyFleet(new Draw(seed));
    const state = loaded(fleet);
    for (let at = 0; at < ARRIVALS; at++) {
      comeToRest(fleet, state);
      for (const change of fleet.arrive()) state.apply(change);
      const plan = state.round(NOW, UNBOUNDED);
      assert.deepEqual(decided(plan), decided(loaded(fleet).round(NOW, UNBOUNDED)), `seed ${seed}, arrival ${at}`);
      given += plan.admissions.length + plan.preemptions.length;
      const [first] = [...plan.preemptions.map(({ planned }) => planned), ...plan.admissions];
      if (first === undefined) continue;
      state.apply(fleet.leave(first.jobUid));
      const again = state.round(NOW, UNBOUNDED);
      assert.deepEqual(decided(again), decided(loaded(fleet).round(NOW, UNBOUNDED)), `seed ${seed}, without ${at}`);
    }
  }
  assert.ok(given > FLEETS_AT_REST, `${given} gangs were given something`);
});

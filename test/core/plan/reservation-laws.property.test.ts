/** Laws that must hold with reservations, backfill and jobs whose end is known: order, rest and that nobody starves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { queue } from "./plan-world.ts";
import { Draw } from "./random-world.ts";
import { SmallFleet, type SmallGang } from "./small-fleet.ts";

const WORLDS = Number(process.env["GANGWAY_WORLDS"] ?? 150);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);
const ROUNDS_MAX = 120;
/** The most reservations of a pool, from which one is drawn. */
const PER_POOL = [1, 1, 2, 8];
const LEAVES = ["left", "right"];
const met = { reserved: 0, takenBack: 0, preempted: 0, beside: 0 };

const policy = (parts: Partial<QueuePolicy>): QueuePolicy => ({ ...DEFAULT_POLICY, reserveAfterMs: 2, ...parts });

function randomTree(draw: Draw, preempts: boolean): readonly PlanQueue[] {
  const leaf = (): Partial<QueuePolicy> => ({
    withinQueue: preempts ? draw.of(["NEVER", "LOWER_PRIORITY"]) : "NEVER",
    reclaimWithinTree: preempts ? draw.of(["NEVER", "LOWER_PRIORITY", "ANY"]) : "NEVER",
    weight: draw.of([1, 2]),
  });
  const fairSharing = draw.chance(0.5) ? FAIR_SHARING_STRATEGIES : null;
  const strategy = () => draw.of(["STRICT_FIFO", "BEST_EFFORT_FIFO"] as const);
  return [
    queue("all", { h100: draw.upTo(4) }, { policy: policy({ fairSharing }) }),
    ...LEAVES.map((name) =>
      queue(name, { h100: 2 + draw.upTo(12) }, { parent: "all", strategy: strategy(), policy: policy(leaf()) }),
    ),
  ];
}

function randomGang(draw: Draw, name: string): SmallGang {
  const pods = 1 + draw.upTo(2);
  return {
    name,
    queue: draw.of(LEAVES),
    pods,
    gpus: 1 + draw.upTo(3),
    priority: draw.upTo(2),
    ...(draw.chance(0.3) ? { maxRuntimeMs: 1 + draw.upTo(20) } : {}),
    ...(draw.chance(0.3) ? { backfill: true } : {}),
  };
}

function randomFleet(draw: Draw, preempts: boolean): SmallFleet {
  const nodes = draw.list(2 + draw.upTo(2), () => 4 + draw.upTo(4));
  const fleet = new SmallFleet(randomTree(draw, preempts), nodes, true);
  fleet.reservationsPerPool = draw.of(PER_POOL);
  return fleet;
}

/** All gangs of a fleet use one pool. */
function requireAtMost(fleet: SmallFleet, seed: number): void {
  const count = fleet.reserving().length;
  assert.ok(count <= fleet.reservationsPerPool, `seed ${seed}: ${count} of ${fleet.reservationsPerPool} reservations`);
  if (count > 1) met.beside += 1;
}

function note({ preemptions }: FleetPlan): void {
  for (const { reservation, victims } of preemptions) {
    if (reservation !== undefined) met.reserved += 1;
    if (reservation !== undefined && victims.length > 0) met.takenBack += 1;
    if (reservation === undefined) met.preempted += 1;
  }
}

test("with the clock still and nothing arriving, rounds with reservations come to rest", () => {
  for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
    const draw = new Draw(seed);
    const fleet = randomFleet(draw, true);
    for (let wave = 0; wave < 4; wave++) {
      for (let at = draw.upTo(5); at >= 0; at--) {
        fleet.submit({ ...randomGang(draw, `g${wave}-${at}`), createTimeMs: fleet.nowMs });
      }
      fleet.nowMs += draw.upTo(4);
      for (const { uid } of fleet.running().filter(() => draw.chance(0.2))) fleet.end(uid);
      const { nowMs } = fleet;
      const last: string[] = [];
      for (let quiet = 0, rounds = 0; quiet < 5; rounds++) {
        const words = last.slice(-6).join("\n");
        assert.ok(rounds < ROUNDS_MAX, `seed ${seed}, wave ${wave}: no rest after ${rounds} rounds:\n${words}`);
        const plan = fleet.step();
        note(plan);
        requireAtMost(fleet, seed);
        fleet.nowMs = nowMs;
        const { admissions, preemptions, withdrawn } = plan;
        quiet = admissions.length + preemptions.length + withdrawn.length === 0 ? quiet + 1 : 0;
        last.push(wordsOf(plan));
      }
    }
  }
  assert.ok(
    met.reserved > WORLDS / 2 && met.takenBack > WORLDS / 10 && met.preempted > WORLDS / 10 && met.beside > WORLDS / 10,
    JSON.stringify(met),
  );
});

function wordsOf({ admissions, preemptions, withdrawn }: FleetPlan): string {
  const names = (of: readonly { readonly jobUid: string }[]) => of.map(({ jobUid }) => jobUid).join(", ");
  const nominated = preemptions.map(({ planned, victims, reservation }) => {
    const how = reservation === undefined ? "preempts" : `reserves after ${names(reservation.awaits)}, takes back`;
    return `${planned.jobUid} ${how} ${names(victims)}`;
  });
  return `admitted ${names(admissions)}; ${nominated.join("; ")}; withdrawn ${withdrawn.join(", ")}`;
}

/** True for a gang that may board before others that wait: it can be taken back, or its end is known. */
function mayPass({ backfill, maxRuntimeMs }: PlanGang): boolean {
  return backfill === true || maxRuntimeMs !== undefined;
}

/** The order within a queue. */
function isBefore(one: PlanGang, other: PlanGang): boolean {
  if (one.priority !== other.priority) return one.priority > other.priority;
  return one.createTimeMs < other.createTimeMs;
}

/** Gangs that boarded in a round in which an older one stayed behind that lacked the same. */
function passedIn(fleet: SmallFleet, before: ReadonlyMap<string, PlanGang>, strict: ReadonlySet<string>) {
  const boarded = [...before.values()].filter(({ uid, waits }) => waits && fleet.gangs.get(uid)?.waits === false);
  const left = [...before.values()].filter(({ uid, waits }) => waits && fleet.gangs.get(uid)?.waits === true);
  return (
    boarded
      // One with a reservation boards on what was kept for it.
      .filter((gang) => !mayPass(gang) && gang.nomination === undefined)
      .flatMap((gang) =>
        left
          .filter((first) => first.queue === gang.queue && isBefore(first, gang))
          // Others may take what a nominee leaves, for whom gangs give way already.
          .filter(({ nomination }) => nomination === undefined || nomination.reservation !== undefined)
          .filter((first) => strict.has(gang.queue) || (isAlike(first, gang) && first.priority === gang.priority))
          .map((first) => `${gang.uid} passed ${first.uid}`),
      )
  );
}

function isAlike(one: PlanGang, other: PlanGang): boolean {
  return one.askHash === other.askHash;
}

test("no later gang is admitted with what an earlier one of its class, or of its strict queue, lacked", () => {
  let [boarded, waited] = [0, 0];
  for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
    const draw = new Draw(seed);
    const preempts = draw.chance(0.5);
    const nodes = draw.list(2 + draw.upTo(2), () => 4 + draw.upTo(4));
    const tree = randomTree(draw, preempts);
    const fleet = new SmallFleet(tree, nodes, true);
    fleet.reservationsPerPool = draw.of(PER_POOL);
    const strict = new Set(tree.filter(({ strategy }) => strategy === "STRICT_FIFO").map(({ name }) => name));
    for (let step = 0; step < 25; step++) {
      for (let at = draw.upTo(2); at > 0; at--) {
        fleet.submit({ ...randomGang(draw, `g${step}-${at}`), createTimeMs: fleet.nowMs });
        fleet.nowMs += 1;
      }
      for (const { uid } of fleet.running().filter(() => draw.chance(0.15))) fleet.end(uid);
      const before = new Map(fleet.gangs);
      boarded += fleet.step().admissions.length;
      waited += [...fleet.gangs.values()].filter(({ waits }) => waits).length;
      assert.deepEqual(passedIn(fleet, before, strict), [], `seed ${seed}, step ${step}`);
    }
  }
  assert.ok(boarded > 3 * WORLDS && waited > 10 * WORLDS, `${boarded} boarded, ${waited} waited`);
});

/** A running gang ends after so many rounds at most. */
const ENDS_AFTER = 6;
/** The gangs that ran when the reservation began end, then what the reservation moved to, then it boards. */
const BOARDS_WITHIN = 12 * ENDS_AFTER;

/** The others neither backfill nor have a known end. */
test("a gang that fits its queue's quota and an empty cluster boards, whatever streams of others arrive", () => {
  let most = 0;
  for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
    const draw = new Draw(seed);
    const nodes = draw.list(2 + draw.upTo(2), () => 4 + draw.upTo(4));
    const pods = 2 + draw.upTo(nodes.length - 2);
    const gpus = Math.min(...nodes) - draw.upTo(2);
    const tree = randomTree(draw, draw.chance(0.3)).map((one) => {
      const quotas = one.quotas.map((quota) => ({
        ...quota,
        nominal: Math.max(quota.nominal, pods * gpus),
      }));
      return one.name === "left" ? { ...one, quotas } : one;
    });
    const fleet = new SmallFleet(tree, nodes, true);
    fleet.reservationsPerPool = draw.of(PER_POOL);
    const endsAt = new Map<string, number>();
    const isOn = (uid: string) => fleet.gangs.get(uid)?.waits === false;
    const priority = draw.upTo(2);
    let left = BOARDS_WITHIN;
    for (let round = 0; round < 8 + BOARDS_WITHIN && left > 0; round++) {
      for (let at = 1 + draw.upTo(2); at > 0; at--) {
        const { backfill: _, maxRuntimeMs: __, ...other } = randomGang(draw, `g${round}-${at}`);
        fleet.submit({ ...other, createTimeMs: fleet.nowMs, priority: Math.min(other.priority ?? 0, priority) });
      }
      if (round === 8) {
        const wide = { name: "wide", queue: "left", pods, gpus, priority, createTimeMs: 0 };
        fleet.submit(wide);
      }
      fleet.step();
      for (const { uid } of fleet.running()) {
        if (!endsAt.has(uid)) endsAt.set(uid, round + 1 + draw.upTo(ENDS_AFTER - 1));
      }
      for (const { uid } of fleet.running().filter((gang) => (endsAt.get(gang.uid) ?? 0) <= round)) {
        if (uid !== "uid-wide") fleet.end(uid);
      }
      if (round >= 8) left = isOn("uid-wide") ? 0 : left - 1;
      if (round >= 8) most = Math.max(most, round - 8);
    }
    assert.ok(isOn("uid-wide"), `seed ${seed}: it waits for ${BOARDS_WITHIN} rounds: ${fleet.causeOf("uid-wide")}`);
  }
  assert.ok(most > 3, `no world made it wait for more than ${most} rounds`);
});

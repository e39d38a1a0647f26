import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { demandOf, leavesOf, missOf, offsOf, type Vessel } from "../../support/water-filling.ts";
import { queue } from "./plan-world.ts";
import { Draw } from "./random-world.ts";
import { SmallFleet } from "./small-fleet.ts";

const WORLDS = 150;
const ROUNDS_MAX = 120;
const QUEUES_MAX = 6;

const policy = (parts: Partial<QueuePolicy>): QueuePolicy => ({ ...DEFAULT_POLICY, ...parts });

type World = {
  /** The GPUs of the tree. No queue has a quota of its own. */
  readonly total: number;
  /** The GPUs of each gang. */
  readonly gpus: number;
  readonly queues: readonly Vessel[];
};

/** A fleet in which queues submit all their gangs one after the other, and come to rest after each. */
function settled({ total, gpus, queues }: World, order: readonly Vessel[], name: string): SmallFleet {
  const root = queue("all", { h100: total }, { policy: policy({ fairSharing: FAIR_SHARING_STRATEGIES }) });
  const fleet = new SmallFleet([root, ...queues.flatMap((one) => planQueues(one, "all"))]);
  for (const { name: leaf, demand } of order) {
    for (let at = 0; at < demand / gpus; at++) fleet.submit({ name: `${leaf}-${at}`, queue: leaf, gpus });
    for (let quiet = 0, rounds = 0; quiet < 3; rounds++) {
      assert.ok(rounds < ROUNDS_MAX, `${name}: no rest after ${ROUNDS_MAX} rounds`);
      const { admissions, preemptions, withdrawn } = fleet.step();
      quiet = admissions.length + preemptions.length + withdrawn.length === 0 ? quiet + 1 : 0;
    }
  }
  return fleet;
}

function planQueues({ name, weight, below }: Vessel, parent: string): readonly PlanQueue[] {
  const own = policy({ reclaimWithinTree: "ANY", weight });
  return [queue(name, { h100: 0 }, { parent, policy: own }), ...below.flatMap((one) => planQueues(one, name))];
}

function randomWorld(draw: Draw): World {
  const gpus = 1 + draw.upTo(1);
  const gangs = 4 + draw.upTo(12);
  const demand = () => gpus * (draw.chance(0.7) ? gangs : 1 + draw.upTo(gangs));
  let count = 0;
  const vesselsOf = (leaves: number, depth: number): readonly Vessel[] => {
    const made: Vessel[] = [];
    for (let left = leaves; left > 0; ) {
      const size = depth < 2 && left > 2 && draw.chance(0.4) ? 2 + draw.upTo(left - 3) : 1;
      count += 1;
      const of = { name: `q${count}`, weight: draw.of([1, 1, 2, 3]) };
      if (size === 1) made.push({ ...of, demand: demand(), below: [] });
      else made.push({ ...of, demand: 0, below: vesselsOf(size, depth + 1) });
      left -= size;
    }
    return made;
  };
  return { total: gpus * gangs, gpus, queues: vesselsOf(2 + draw.upTo(QUEUES_MAX - 2), 0) };
}

const met = { uneven: 0, nested: 0, many: 0, satisfied: 0, heavy: 0 };

test("shares of equal gangs come to weights within one gang at every queue of a tree, whoever came first", () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const draw = new Draw(seed);
    const world = randomWorld(draw);
    const leaves = leavesOf(world.queues);
    const name = `seed ${seed}`;
    const fleet = settled(world, shuffled(leaves, draw), name);
    const used = leaves.reduce((sum, leaf) => sum + fleet.used(leaf.name), 0);
    const wanted = world.queues.reduce((sum, one) => sum + demandOf(one), 0);
    assert.equal(used, Math.min(world.total, wanted), `${name}: nothing is left that is wanted`);
    const offs = offsOf(world.queues, { used: (leaf) => fleet.used(leaf), gpus: world.gpus });
    for (const off of offs) {
      assert.equal(missOf(off), null, name);
      if (off.keeps > 1) met.heavy += 1;
    }
    if (new Set(leaves.map(({ weight }) => weight)).size > 1) met.uneven += 1;
    if (leaves.length > world.queues.length) met.nested += 1;
    if (leaves.length > 2) met.many += 1;
    if (leaves.some(({ demand }) => demand < world.total)) met.satisfied += 1;
  }
});

test("the worlds had uneven weights, inner queues, many queues, small demands and heavy queues", () => {
  for (const [what, count] of Object.entries(met)) assert.ok(count > WORLDS / 10, `${what}: ${JSON.stringify(met)}`);
});

test("a queue that weighs as much as its three siblings together keeps one gang and a half above its part", () => {
  const leaf = (name: string, weight: number): Vessel => ({ name, weight, demand: 9, below: [] });
  const queues = [leaf("heavy", 3), leaf("a", 1), leaf("b", 1), leaf("c", 1)];
  const fleet = settled({ total: 9, gpus: 1, queues }, queues, "heavy first");
  // Of 9, its part is 4.5. For one more gang each light queue would stand at 2 for its weight, and it stands at 6 / 3.
  assert.deepEqual(
    queues.map(({ name }) => fleet.used(name)),
    [6, 1, 1, 1],
  );
});

function shuffled<T>(items: readonly T[], draw: Draw): readonly T[] {
  const left = [...items];
  return items.map(() => left.splice(draw.upTo(left.length - 1), 1)[0] as T);
}

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { queue } from "./plan-world.ts";
import { Draw } from "./random-world.ts";
import { SmallFleet } from "./small-fleet.ts";

const WORLDS = 150;
const ROUNDS_MAX = 120;
const met = { preempted: 0, spared: 0 };

const policy = (parts: Partial<QueuePolicy>): QueuePolicy => ({ ...DEFAULT_POLICY, ...parts });

/** Rounds until five in a row have changed nothing. */
function settle(fleet: SmallFleet, name: string): void {
  for (let quiet = 0, rounds = 0; quiet < 5; rounds++) {
    assert.ok(rounds < ROUNDS_MAX, `${name}: no rest after ${ROUNDS_MAX} rounds`);
    const { admissions, preemptions, withdrawn } = fleet.step();
    met.preempted += preemptions.length;
    quiet = admissions.length + preemptions.length + withdrawn.length === 0 ? quiet + 1 : 0;
  }
}

/** A tree of two queues that lend each other everything, and one of which has gangs first. */
function randomTree(draw: Draw): readonly PlanQueue[] {
  const preempts: Partial<QueuePolicy> = {
    withinQueue: draw.of(["NEVER", "LOWER_PRIORITY", "LOWER_OR_NEWER_EQUAL_PRIORITY"]),
    reclaimWithinTree: draw.of(["LOWER_PRIORITY", "ANY"]),
    borrowWithin: { policy: draw.of(["NEVER", "LOWER_PRIORITY"]), maxPriority: draw.maybe(1) },
  };
  const fairSharing = draw.chance(0.5) ? FAIR_SHARING_STRATEGIES : null;
  return [
    queue("all", { h100: draw.upTo(6) }, { policy: policy({ fairSharing }) }),
    ...["left", "right"].map((name) => {
      const weight = draw.of([1, 2, 3]);
      const maxPreemptions = draw.maybe(2);
      const own = policy({ ...preempts, weight, maxPreemptions });
      return queue(name, { h100: draw.upTo(8) }, { parent: "all", policy: own });
    }),
  ];
}

test("with the clock still and nothing arriving, rounds come to rest, and no limit is exceeded", () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const draw = new Draw(seed);
    const nodes = draw.chance(0.5) ? draw.list(1 + draw.upTo(3), () => 4 + draw.upTo(4)) : undefined;
    const tree = randomTree(draw);
    const fleet = new SmallFleet(tree, nodes, draw.chance(0.5));
    for (let wave = 0; wave < 3; wave++) {
      for (let at = draw.upTo(5); at >= 0; at--) {
        const name = `g${wave}-${at}`;
        const of = { priority: draw.upTo(2), createTimeMs: draw.upTo(5), gpus: 1 + draw.upTo(3) };
        fleet.submit({ name, queue: draw.of(["left", "right"]), ...of });
      }
      settle(fleet, `seed ${seed}`);
      const total = tree.reduce((sum, { quotas }) => sum + (quotas[0]?.nominal ?? 0), 0);
      assert.ok(fleet.used("left") + fleet.used("right") <= total, `seed ${seed}`);
      for (const { queue: name, preemptions = 0 } of fleet.gangs.values()) {
        const max = tree.find((one) => one.name === name)?.policy?.maxPreemptions ?? Number.POSITIVE_INFINITY;
        assert.ok(preemptions <= max, `seed ${seed}: preempted ${preemptions} times of ${max}`);
        if (preemptions === max) met.spared += 1;
      }
    }
  }
  assert.ok(met.preempted > WORLDS / 2, `${met.preempted} preemptions`);
});

test("a queue that may reclaim from all reaches its own quota in a bounded number of rounds", () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const draw = new Draw(seed);
    const own = 1 + draw.upTo(8);
    const fairSharing = draw.chance(0.5) ? FAIR_SHARING_STRATEGIES : null;
    const reclaims = policy({ reclaimWithinTree: "ANY" });
    const fleet = new SmallFleet([
      queue("all", { h100: draw.upTo(8) }, { policy: policy({ fairSharing }) }),
      queue("first", { h100: draw.upTo(8) }, { parent: "all", policy: reclaims }),
      queue("later", { h100: own }, { parent: "all", policy: reclaims }),
    ]);
    for (let at = 0; at < 24; at++) {
      fleet.submit({ name: `f${at}`, queue: "first", gpus: 1 + draw.upTo(2), priority: draw.upTo(2) });
    }
    settle(fleet, `seed ${seed}`);
    for (let at = 0; at < own; at++) fleet.submit({ name: `l${at}`, queue: "later", gpus: 1 });
    for (let round = 0; round <= 2 * own; round++) fleet.step();
    assert.ok(fleet.used("later") >= own, `seed ${seed}: ${fleet.used("later")} of ${own}`);
  }
});

test("some gangs were preempted as often as their queues allow", () => {
  assert.ok(met.spared > WORLDS / 10, `${met.spared} gangs that were preempted often enough`);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { changesOf } from "../../support/load-snapshot.ts";
import { AT } from "./plan-world.ts";
import { Draw, randomSnapshot } from "./random-world.ts";

const WORLDS = 600;
const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };

function admits(from: PlanSnapshot): boolean {
  const state = new FleetState();
  for (const change of changesOf(from)) state.apply(change);
  return state.round(AT.nowMs, UNBOUNDED).admissions.length > 0;
}

/** The same with more use of some quotas, and less room on some nodes. */
function withMoreUse(from: PlanSnapshot, draw: Draw): PlanSnapshot {
  const sums = from.sums.map((sum) => ({ ...sum, used: sum.used + draw.upTo(3) }));
  const clusters = from.clusters.map((cluster) => {
    if (cluster.capacity === null) return cluster;
    const nodes = cluster.capacity.nodes.map((node) => {
      const free = Object.entries(node.free).map(([name, amount]) => [name, amount - draw.upTo(2) * 1000]);
      return { ...node, free: Object.fromEntries(free) };
    });
    return { ...cluster, capacity: { ...cluster.capacity, nodes } };
  });
  return { ...from, sums, clusters };
}

test("more use never turns the refusal of a gang of one pod class into an admission", () => {
  let refused = 0;
  for (let seed = 1; seed <= WORLDS; seed++) {
    const draw = new Draw(seed + WORLDS);
    const all = randomSnapshot(seed, { jobs: 1, nodes: 5, alike: true });
    const from = { ...all, waiting: all.waiting.slice(0, 1), admitted: [] };
    if (admits(from)) continue;
    refused += 1;
    assert.ok(!admits(withMoreUse(from, draw)), `seed ${seed}`);
  }
  assert.ok(refused > WORLDS / 10, `${refused} of ${WORLDS} were refused`);
});

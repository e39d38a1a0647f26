import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change } from "../../../../src/core/plan/facts/changes.ts";
import { compareStates, FactHashes, lastingDifference } from "../../../../src/core/plan/facts/compare-states.ts";
import { FleetState } from "../../../../src/core/plan/fleet-state.ts";
import { changesOf } from "../../../support/load-snapshot.ts";
import { cluster, job, node, planGang, queue, snapshot } from "../plan-world.ts";

const from = snapshot({
  waiting: [job({ name: "a", roles: { Worker: { replicas: 1, gpus: 1 } } })],
  queues: [queue("q", { h100: 8 }, { used: { "gpu/h100": 2 } })],
  clusters: [cluster("east", { nodes: [node("n", "h100")] })],
});
const gang = { ...planGang(job({ name: "a", roles: { Worker: { replicas: 1, gpus: 1 } } })), priority: 7 };
const scope = { kind: "queue", pool: "gpu/h100", queue: "q" } as const;
const bare = { ...node("n", "h100"), free: {} };
const key = { kind: "node", name: "n" } as const;

function stateWith(...changes: readonly Change[]): FleetState {
  const state = new FleetState();
  for (const change of [...changesOf(from), ...changes]) state.apply(change);
  return state;
}

/** A state that was told something else than `from` says. */
function wrongState(change: Change): FleetState {
  const state = new FleetState();
  for (const one of [change, ...changesOf(from)]) state.apply(one);
  return state;
}

const differing = (followed: FleetState, loaded = stateWith()) => [...compareStates(followed, loaded).keys()];

test("states with equal facts do not differ, whatever led there", () => {
  assert.deepEqual(differing(stateWith()), []);
  const sum: Change = { kind: "sum", scope, version: 7, used: 2 };
  assert.deepEqual(differing(stateWith(sum)), []);
});

const wrong: Record<string, { readonly state: FleetState; readonly name: string }> = {
  "a gang": { state: wrongState({ kind: "gang", uid: gang.uid, version: gang.version, gang }), name: "gang uid-a" },
  "a sum": {
    state: wrongState({ kind: "sum", scope, version: 1, used: 3 }),
    name: 'sum ["queue","gpu/h100","q"]',
  },
  "a queue": {
    state: wrongState({ kind: "queue", name: "q", version: 1, queue: queue("q", { h100: 9 }) }),
    name: "queue q",
  },
  "a node": {
    state: stateWith({
      ...{ kind: "capacity", cluster: "east", epoch: 1, since: 1, sequence: 2 },
      changes: [{ key, entry: { kind: "node", name: "n", node: bare, members: [] } }],
    }),
    name: "node east n",
  },
  "a queue that is gone": {
    state: stateWith({ kind: "queue", name: "q", version: 2, queue: null }),
    name: "queue q",
  },
};
for (const [name, of] of Object.entries(wrong)) {
  test(`${name} differs, in either direction`, () => {
    assert.deepEqual(differing(of.state), [of.name]);
    assert.deepEqual(differing(stateWith(), of.state), [of.name]);
    assert.notEqual(of.state.hash(), stateWith().hash());
  });
}

test("only a difference that stays as it is lasts", () => {
  const [three, four] = [3, 4].map((used) => stateWith({ kind: "sum", scope, version: 2, used }));
  assert.ok(three !== undefined && four !== undefined);
  const before = compareStates(three, stateWith());
  assert.deepEqual(
    [...lastingDifference(before, compareStates(three, stateWith())).keys()],
    ['sum ["queue","gpu/h100","q"]'],
  );
  assert.deepEqual([...lastingDifference(before, compareStates(three, three)).keys()], []);
  assert.deepEqual(
    [...lastingDifference(before, compareStates(four, stateWith())).keys()],
    [],
    "the state has moved meanwhile",
  );
  assert.deepEqual(
    [...lastingDifference(before, compareStates(three, four)).keys()],
    [],
    "the store has moved meanwhile",
  );
  assert.deepEqual([...lastingDifference(new Map(), before).keys()], []);
});

test("hashes of changes without a state are those of the state", () => {
  const hashes = new FactHashes();
  for (const change of changesOf(from)) hashes.apply(change);
  assert.deepEqual([...compareStates(stateWith(), hashes)], []);
});

test("the state takes a record that is older than its own, or that is gone, for stale", () => {
  const state = stateWith();
  const older: Change = { kind: "gang", uid: gang.uid, version: gang.version, gang };
  assert.equal(state.apply(older), "stale");
  assert.equal(state.apply({ ...older, version: 9, gang: null }), "applied");
  assert.equal(state.apply(older), "stale");
});

test("the state asks for a cluster's full list after a gap, and once another observer leads", () => {
  const state = stateWith();
  const step = { kind: "capacity", cluster: "east", changes: [] } as const;
  assert.equal(state.apply({ ...step, epoch: 1, since: 2, sequence: 3 }), "gap");
  assert.equal(state.apply({ ...step, epoch: 2, since: 1, sequence: 2 }), "gap");
  assert.equal(state.apply({ ...step, epoch: 1, since: 0, sequence: 1 }), "stale");
  assert.deepEqual(state.cursorOf("east"), { epoch: 1, sequence: 1 });
  assert.equal(state.apply({ ...step, epoch: 2, since: null, sequence: 1 }), "applied");
  assert.deepEqual(differing(state), ["node east n"]);
});

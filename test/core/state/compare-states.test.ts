import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change } from "../../../src/core/plan/state/changes.ts";
import { compareStates } from "../../../src/core/plan/state/compare-states.ts";
import { FleetState } from "../../../src/core/plan/state/fleet-state.ts";
import { changesOf } from "../../../src/core/plan/state/load-snapshot.ts";
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

test("states with equal facts do not differ", () => {
  assert.deepEqual(compareStates(stateWith(), stateWith()), { wrong: [], moved: [] });
});

const wrong: Record<string, { readonly state: FleetState; readonly names: string }> = {
  "a gang": { state: wrongState({ kind: "gang", uid: gang.uid, version: gang.version, gang }), names: "gang uid-a" },
  "a sum": {
    state: wrongState({ kind: "sum", scope, version: 1, used: 3 }),
    names: 'sum ["queue","gpu/h100","q"]',
  },
  "a queue": {
    state: wrongState({ kind: "queue", name: "q", version: 1, queue: queue("q", { h100: 9 }) }),
    names: "queue q",
  },
  "a node": {
    state: stateWith({
      ...{ kind: "capacity", cluster: "east", epoch: 1, since: 1, sequence: 2 },
      changes: [{ key, entry: { kind: "node", name: "n", node: bare, members: [] } }],
    }),
    names: "node east n",
  },
};
for (const [name, { state, names }] of Object.entries(wrong)) {
  test(`${name} that differs at the same version is wrong`, () => {
    assert.deepEqual(compareStates(state, stateWith()), { wrong: [names], moved: [] });
    assert.notEqual(state.hash(), stateWith().hash());
  });
}

test("an entity of another version, and one that only one state has, may be on their way", () => {
  const later = stateWith({ kind: "gang", uid: gang.uid, version: gang.version + 1, gang });
  const gone = stateWith({ kind: "queue", name: "q", version: 2, queue: null });
  assert.deepEqual(compareStates(later, stateWith()), { wrong: [], moved: ["gang uid-a"] });
  assert.deepEqual(compareStates(gone, stateWith()), { wrong: [], moved: ["queue q"] });
  assert.deepEqual(compareStates(stateWith(), gone), { wrong: [], moved: ["queue q"] });
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
  assert.deepEqual(compareStates(stateWith(), state).moved, ["node east n"]);
});

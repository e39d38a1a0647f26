import assert from "node:assert/strict";
import { test } from "node:test";
import { Holders } from "../../../../src/core/plan/explain/holders.ts";
import type { PlannedAdmission } from "../../../../src/core/plan/model/plan-types.ts";
import type { Scope } from "../../../../src/core/quota/counters.ts";
import { stateOf } from "../../../support/load-snapshot.ts";
import { amounts, cluster, job, NOW, node, queue, snapshot } from "../plan-world.ts";

const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };
const POOL = "gpu/h100";
const NOMINEE = "uid-nominee";

const SCOPES: readonly Scope[] = [
  { kind: "pool", pool: POOL },
  { kind: "queue", pool: POOL, queue: "q" },
];

/** A gang that needs all 8 GPUs of its queue. The ledger's sums count `used`. */
function fleet(used: number) {
  const waiting = [job({ name: "nominee", roles: { Worker: { replicas: 1, gpus: 8 } } })];
  const clusters = [cluster("east", { nodes: [node("e", "h100", { free: amounts(8) })] })];
  const state = stateOf(snapshot({ waiting, queues: [queue("q", { h100: 8 })], clusters }));
  for (const scope of SCOPES) state.apply({ kind: "sum", scope, version: 2, used });
  let version = 1;
  const hold = (admission: number, amount: number | null) => {
    version += 1;
    const holds = amount === null ? null : { admission, amounts: { [POOL]: amount } };
    state.apply({ kind: "holds", uid: NOMINEE, version, holds });
  };
  const admitted = () => state.round(NOW, BOUNDS).admissions;
  return { state, hold, admitted };
}

test("the tokens that a nominee holds count as its own when its whole need is decided about", () => {
  const { state, hold, admitted } = fleet(6);
  assert.deepEqual(admitted(), []);
  hold(1, 6);
  for (let round = 0; round < 2; round += 1) {
    assert.deepEqual(
      admitted().map(({ jobUid, allocations }) => [jobUid, allocations.map(({ amount }) => amount)]),
      [[NOMINEE, [8]]],
    );
  }
  assert.deepEqual(state.parts.holdsOf(NOMINEE), { [POOL]: 6 });
  assert.equal(state.parts.quota.sumOf({ kind: "pool", pool: POOL }), 6);
  hold(1, 5);
  assert.deepEqual(admitted(), [], "somebody else uses one");
  hold(1, 6);
  assert.equal(admitted().length, 1);
  hold(1, null);
  assert.deepEqual(admitted(), []);
});

test("a gang that waits is named among those that hold tokens by what is kept for it, once", () => {
  const { state, hold, admitted } = fleet(6);
  const scope = { kind: "queue", pool: POOL, queue: "q" } as const;
  const others = { pool: POOL, project: "vision", namespace: "ml", queue: "q" };
  const callers = [5, 7].map((amount) => ({ ...others, caller: `c${amount}`, amount }));
  const named = (admissions: readonly PlannedAdmission[]) =>
    new Holders(state.parts, { callers, admissions }).largest(scope);
  assert.deepEqual(named([]), ["caller c7", "caller c5"]);
  hold(1, 6);
  assert.deepEqual(named([]), ["caller c7", "ml/nominee", "caller c5"]);
  hold(2, 6);
  assert.deepEqual(named([]), ["caller c7", "caller c5"], "they are for another admission");
  hold(1, 6);
  const [planned] = admitted();
  const allocations = [{ ...others, amount: 6 }];
  assert.deepEqual(named([{ ...planned!, allocations: allocations as never }]), [
    "caller c7",
    "ml/nominee",
    "caller c5",
  ]);
});

test("a nominee is looked at in each round, since the room that it waits for may come beside its holds", () => {
  const { state, hold, admitted } = fleet(7);
  hold(1, 6);
  assert.deepEqual(admitted(), []);
  assert.deepEqual(admitted(), []);
  for (const scope of SCOPES) state.apply({ kind: "sum", scope, version: 3, used: 6 });
  assert.equal(admitted().length, 1);
});

test("holds for another admission are of no use", () => {
  const { state, hold, admitted } = fleet(6);
  hold(2, 6);
  assert.deepEqual(admitted(), []);
  assert.equal(state.parts.holdsOf(NOMINEE), null);
});

test("holds are part of what two states are compared by", () => {
  const { state, hold } = fleet(6);
  const before = state.hash();
  hold(1, 6);
  assert.notEqual(state.hash(), before);
  state.keepOnly("holds", [], 9);
  assert.equal(state.hash(), before);
});

/** Members whose nodes did not take their pods get other nodes, before all other gangs and without tokens. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withRuns } from "../../../../src/core/job/placement/placement.ts";
import type { PlanGang } from "../../../../src/core/plan/model/plan-gang.ts";
import type { NodeCapacity, PlanCluster } from "../../../../src/core/plan/model/snapshot.ts";
import { plan } from "../../../support/plan.ts";
import { AT, admission, amounts, cluster, job, node, planGang, queue, snapshot } from "../plan-world.ts";

const run = (first: number, name: string, others: readonly string[] = []) => {
  return { role: "Worker", first, count: 1, node: name, others };
};

/** A gang of two workers of 4 GPUs that is planned on a and b, of which the second asks for another node. */
function running(parts: { readonly version?: number } = {}): PlanGang {
  const live = {
    ...admission({ cluster: "east", members: { Worker: 2 }, flavors: { "nvidia.com/gpu": "gpu/h100" } }),
    repair: { version: parts.version ?? 1, times: 1, members: ["Worker/1" as const] },
  };
  const made = planGang({ ...job({ name: "r", roles: { Worker: { replicas: 2, gpus: 4 } } }), admissions: [live] });
  const placement = withRuns(null, [run(0, "a"), run(1, "b", ["c"])]);
  return { ...made, waits: false, admissions: made.admissions.map((one) => ({ ...one, placement })) };
}

const free = (name: string, gpus: number): NodeCapacity => node(name, "h100", { free: amounts(gpus) });

function planned(
  nodes: readonly NodeCapacity[],
  gang = running(),
  { waiting = [], parts = {} }: { waiting?: readonly ReturnType<typeof job>[]; parts?: Partial<PlanCluster> } = {},
) {
  const clusters = [{ ...cluster("east", { nodes }), ...parts }];
  const world = snapshot({ admitted: [gang], waiting, clusters, queues: [queue("q", { h100: 1000 })] });
  return plan(world, AT).admissions;
}

test("a member gets a node beside those that it was planned on, without tokens", () => {
  const [repair, ...others] = planned([free("a", 4), free("b", 8), free("c", 8), free("d", 4), free("e", 8)]);
  assert.deepEqual(others, []);
  assert.equal(repair?.kind, "repair");
  assert.deepEqual(repair?.runs, [run(1, "d", ["e"])]);
  assert.deepEqual([repair?.repairs, repair?.allocations, repair?.members], [1, [], { Worker: 2 }]);
});

test("without such a node nothing changes, and what is planned of it stays", () => {
  assert.deepEqual(planned([free("a", 4), free("b", 8), free("c", 8), free("d", 3)]), []);
});

test("a request that was answered is not answered again", () => {
  assert.deepEqual(planned([free("a", 4), free("b", 8), free("d", 8)], running({ version: 0 })), []);
});

test("a member moves before a gang that waits, and frees its old node for it", () => {
  const waiting = [job({ name: "w", roles: { Worker: { replicas: 1, gpus: 8 } } })];
  const made = planned([free("a", 4), free("b", 8), free("d", 4)], running(), { waiting });
  assert.deepEqual(
    made.map(({ kind, runs = [] }) => [kind, runs.map((one) => one.node)]),
    [
      ["repair", ["d"]],
      ["admit", ["b"]],
    ],
  );
});

test("a node that is counted for the member because its planned one is full may become its own", () => {
  const [repair] = planned([free("a", 4), free("b", 0), free("c", 0), free("d", 4)]);
  assert.deepEqual(repair?.runs, [run(1, "d")]);
});

const ROOM = [free("a", 4), free("b", 8), free("d", 8)];
const left: Readonly<Record<string, { gang?: Partial<PlanGang>; parts?: Partial<PlanCluster> }>> = {
  "a gang that ends": { gang: { ends: true } },
  "a gang that is to be undone": { gang: { evicted: true } },
  "a gang that is set aside": { gang: { setAside: "it stops workers" } },
  "a gang in a cordoned cluster": { parts: { cordoned: true } },
  "a gang in a cluster that does not answer": { parts: { reachable: false } },
};
for (const [what, { gang = {}, parts = {} }] of Object.entries(left)) {
  test(`${what} gets no other nodes: nobody could record them`, () => {
    assert.equal(planned(ROOM).length, 1);
    assert.deepEqual(planned(ROOM, { ...running(), ...gang }, { parts }), []);
  });
}

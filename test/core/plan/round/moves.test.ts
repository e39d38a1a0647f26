/** Gangs whose clusters are lost run elsewhere once they fit there, with the tokens that they have. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlanGang } from "../../../../src/core/plan/model/plan-gang.ts";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import type { NodeCapacity, PlanQueue } from "../../../../src/core/plan/model/snapshot.ts";
import { plannerOf, stateOf } from "../../../support/load-snapshot.ts";
import { plan } from "../../../support/plan.ts";
import { AT, admission, amounts, cluster, job, NOW, node, planGang, queue, snapshot } from "../plan-world.ts";

const free = (name: string, gpus: number, model = "h100"): NodeCapacity => node(name, model, { free: amounts(gpus) });

type Gang = { readonly members?: number; readonly least?: number; readonly priority?: number };

/** A gang of four workers of 2 GPUs that runs in the lost cluster west. */
function moving({ members = 4, least = 4, priority = 0 }: Gang = {}): PlanGang {
  const live = admission({
    cluster: "west",
    members: { Worker: members },
    flavors: { "nvidia.com/gpu": "gpu/h100" },
  });
  const roles = { Worker: { replicas: 4, gpus: 2 } };
  const made = planGang({ ...job({ name: "m", roles, minAvailable: least, priority }), admissions: [live] });
  return { ...made, waits: false, moves: true };
}

type World = {
  readonly gang?: PlanGang;
  readonly nodes: readonly NodeCapacity[];
  readonly waiting?: readonly ReturnType<typeof job>[];
  readonly admitted?: readonly PlanGang[];
  readonly quotas?: Readonly<Record<string, number>>;
  readonly parts?: Partial<PlanQueue>;
  readonly used?: number;
};

function worldOf({
  gang = moving(),
  nodes,
  waiting = [],
  admitted = [],
  quotas = { h100: 8 },
  parts,
  used = 8,
}: World) {
  const flavors = cluster("x", { nodes: [node("h", "h100"), node("a", "a100")] }).flavors;
  const west = { ...cluster("west", { nodes: [free("w", 8)], flavors }), reachable: false };
  const q = { ...queue("q", quotas, { used: { "gpu/h100": used } }), ...parts };
  const clusters = [cluster("east", { nodes, flavors }), west];
  return snapshot({ admitted: [gang, ...admitted], waiting, clusters, queues: [q] });
}

const planned = (world: World) => plan(worldOf(world), AT).admissions;

test("a gang runs elsewhere with the tokens that it has, although its queue has no others", () => {
  const [move, ...others] = planned({ nodes: [free("a", 8)] });
  assert.deepEqual(others, []);
  assert.deepEqual([move?.kind, move?.movesFrom, move?.admission, move?.cluster], ["admit", 1, 2, "east"]);
  assert.deepEqual(move?.members, { Worker: 4 });
  assert.deepEqual(
    move?.allocations.map(({ pool, amount }) => [pool, amount]),
    [["gpu/h100", 8]],
  );
  const state = stateOf(worldOf({ nodes: [free("a", 8)] }));
  assert.deepEqual(state.parts.holdsOf("uid-m"), { "gpu/h100": 8 });
});

test("while it fits nowhere, nobody gets its tokens, and it keeps its place", () => {
  const waiting = [job({ name: "w", roles: { Worker: { replicas: 1, gpus: 4 } }, priority: 9 })];
  assert.deepEqual(planned({ nodes: [free("a", 6)], waiting }), []);
});

test("it comes before gangs that wait, whatever their priority, and these get what is left", () => {
  const waiting = [job({ name: "w", roles: { Worker: { replicas: 1, gpus: 8 } }, priority: 9 })];
  const world = { nodes: [free("a", 8), free("b", 8)], waiting, quotas: { h100: 16 } };
  assert.deepEqual(
    planned(world).map(({ jobUid, movesFrom }) => [jobUid, movesFrom]),
    [
      ["uid-m", 1],
      ["uid-w", undefined],
    ],
  );
});

/** The members that it has, how many fit, the quota of its queue, and the members that it gets; 0: it does not move. */
const sizes: readonly (readonly [has: number, least: number, fit: number, quota: number, gets: number])[] = [
  [4, 4, 4, 8, 4],
  [4, 1, 3, 8, 0],
  [2, 1, 4, 8, 4],
  [2, 1, 4, 4, 2],
  [2, 1, 2, 8, 2],
  [2, 1, 1, 8, 0],
  [3, 1, 3, 8, 3],
];

for (const [has, least, fit, quota, gets] of sizes) {
  test(`a gang with ${has} of 4 members where ${fit} fit and the quota is ${quota} gets ${gets}`, () => {
    const gang = moving({ members: has, least });
    const [move] = planned({ gang, nodes: [free("a", 2 * fit)], quotas: { h100: quota }, used: 2 * has });
    assert.equal(move?.members["Worker"] ?? 0, gets);
  });
}

test("in another flavor it needs tokens of that pool, as far as its queue has some", () => {
  const nodes = [free("a", 8, "a100")];
  assert.deepEqual(planned({ nodes, quotas: { h100: 8, a100: 6 } }), []);
  const [move] = planned({ nodes, quotas: { h100: 8, a100: 8 } });
  assert.deepEqual(
    move?.allocations.map(({ pool, amount }) => [pool, amount]),
    [["gpu/a100", 8]],
  );
});

test("it keeps tokens beyond a quota that was lowered since, and gets no more", () => {
  assert.equal(planned({ nodes: [free("a", 8)], quotas: { h100: 4 } })[0]?.movesFrom, 1);
  const gang = moving({ members: 2, least: 1 });
  const [move] = planned({ gang, nodes: [free("a", 8)], quotas: { h100: 2 }, used: 4 });
  assert.deepEqual(move?.members, { Worker: 2 });
  const waiting = [job({ name: "w", roles: { Worker: { replicas: 1, gpus: 1 } } })];
  assert.equal(planned({ nodes: [free("a", 16)], quotas: { h100: 4 }, waiting }).length, 1, "others get nothing by it");
});

test("a gang whose cluster has answered is left alone: its worker takes the request back", () => {
  const world = worldOf({ nodes: [free("a", 8)] });
  for (const facts of [{ reachable: true }, { reachable: false, returning: true }]) {
    const clusters = world.clusters.map((one) => (one.name === "west" ? { ...one, ...facts } : one));
    assert.deepEqual(plan({ ...world, clusters }, AT).admissions, []);
  }
});

test("nobody is preempted for it", () => {
  const policy = { ...DEFAULT_POLICY, withinQueue: "LOWER_PRIORITY" } as const;
  const low = job({ name: "low", roles: { Worker: { replicas: 1, gpus: 8 } }, priority: -1 });
  const running = admission({ cluster: "east", members: { Worker: 1 }, flavors: { "nvidia.com/gpu": "gpu/h100" } });
  const admitted = [{ ...planGang({ ...low, admissions: [running] }), waits: false }];
  const parts = { policy };
  const state = stateOf(worldOf({ nodes: [free("a", 0)], admitted, parts, quotas: { h100: 16 }, used: 16 }));
  const { admissions, preemptions } = state.round(NOW, { admissionsMax: 100 });
  assert.deepEqual([admissions, preemptions], [[], []]);
});

const left: Readonly<Record<string, { gang?: Partial<PlanGang>; parts?: Partial<PlanQueue> }>> = {
  "a gang that ends": { gang: { ends: true } },
  "a gang that is to be undone": { gang: { evicted: true } },
  "a gang that is set aside": { gang: { setAside: "it stops workers" } },
  "a gang that is suspended": { gang: { suspended: true } },
  "a gang of a queue that is stopped": { parts: { stopPolicy: "HOLD" } },
};

for (const [what, { gang = {}, parts = {} }] of Object.entries(left)) {
  test(`${what} stays where it is`, () => {
    assert.equal(planned({ nodes: [free("a", 8)] }).length, 1);
    assert.deepEqual(planned({ gang: { ...moving(), ...gang }, nodes: [free("a", 8)], parts }), []);
  });
}

test("what a gang in a silent cluster holds is nothing that others could get by preempting it", () => {
  const policy = { ...DEFAULT_POLICY, withinQueue: "LOWER_PRIORITY" } as const;
  const high = job({ name: "high", roles: { Worker: { replicas: 1, gpus: 8 } }, priority: 9 });
  const victimsOf = (reachable: boolean) => {
    const { moves: _, ...gang } = moving({ priority: 1 });
    const world = worldOf({ gang, nodes: [free("a", 8)], waiting: [high], parts: { policy } });
    const clusters = world.clusters.map((one) => (one.name === "west" ? { ...one, reachable } : one));
    const { preemptions } = stateOf({ ...world, clusters }).round(NOW, { admissionsMax: 100 });
    return preemptions.flatMap(({ victims }) => victims.map(({ jobUid }) => jobUid));
  };
  assert.deepEqual([victimsOf(true), victimsOf(false)], [["uid-m"], []]);
});

test("of gangs that are alike, one that ends keeps none from moving, and as many move as fit", () => {
  const named = (name: string, facts: Partial<PlanGang> = {}): PlanGang => ({
    ...moving(),
    uid: `uid-${name}`,
    name,
    ...facts,
  });
  const admitted = [named("a", { ends: true }), named("b"), named("c")];
  const made = planned({ gang: named("d"), admitted, nodes: [free("x", 16)], quotas: { h100: 32 }, used: 32 });
  assert.deepEqual(
    made.map(({ jobUid }) => jobUid),
    ["uid-b", "uid-c"],
  );
});

/** What SimulateJob says of the moving gang in a world, as `explain` asks it. */
function judged(nodes: readonly NodeCapacity[]) {
  const live = admission({ cluster: "west", members: { Worker: 4 }, flavors: { "nvidia.com/gpu": "gpu/h100" } });
  const of = { ...job({ name: "m", roles: { Worker: { replicas: 4, gpus: 2 } } }), admissions: [live] };
  const moving = {
    ...of,
    status: { ...of.status, phase: "RUNNING" as const, move: { admission: 1, sinceMs: NOW, lostMs: 1 } },
  };
  return plannerOf(worldOf({ nodes })).simulate(moving, { ...AT, callers: [] });
}

test("what is in the way of a gang that moves is told with the tokens that it has", () => {
  assert.equal(judged([free("a", 8)]).verdict, "FITS_NOW");
  const { verdict, reason } = judged([free("a", 6)]);
  assert.deepEqual([verdict, reason], ["WAITS", "NoCapacity"], "its own tokens are not in its way");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { surveyOf } from "../../../src/core/admin/fleet-survey.ts";
import { amounts, flavor, nodes } from "../plan/plan-world.ts";

const nothing = { queues: [], clusters: [], jobs: [] };

test("a queue has each flavor of its quotas with its grant, and each other one that it still uses", () => {
  const quotas = [
    { flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 8, granted: 4 },
    { flavor: "gpu/a100", resource: "nvidia.com/gpu", nominal: 2 },
  ];
  const queue = { name: "ml", quotas, used: { "gpu/h100": 14, "gpu/old": 1 }, borrowed: { "gpu/h100": 2 } };
  assert.deepEqual(surveyOf({ ...nothing, queues: [queue] }).queues, [
    { queue: "ml", flavor: "gpu/h100", used: 14, nominal: 12, borrowed: 2 },
    { queue: "ml", flavor: "gpu/a100", used: 0, nominal: 2, borrowed: 0 },
    { queue: "ml", flavor: "gpu/old", used: 1, nominal: 0, borrowed: 0 },
  ]);
});

test("a cluster has its flavors in units of their resource, once it was observed and until it is retired", () => {
  const capacity = { nodes: [...nodes(2, "h100", { free: amounts(3) }), ...nodes(1, "a100")] } as never;
  const east = { name: "east", flavors: [flavor("h100"), flavor("b200")], capacity, reachable: true };
  const clusters = [east, { ...east, name: "new", capacity: null }, { ...east, name: "sim", retired: true }];
  assert.deepEqual(surveyOf({ ...nothing, clusters }).flavors, [
    { cluster: "east", flavor: flavor("h100").name, allocatable: 16, free: 6 },
    { cluster: "east", flavor: flavor("b200").name, allocatable: 0, free: 0 },
  ]);
});

test("a cluster is in one state, until it is retired", () => {
  const cluster = { flavors: [], capacity: null };
  const clusters = [
    { ...cluster, name: "east", reachable: true },
    { ...cluster, name: "west", reachable: false, silence: { sinceMs: 1, unusable: null } },
    { ...cluster, name: "old", reachable: false },
    { ...cluster, name: "north", reachable: false, silence: { sinceMs: 1, unusable: "its token was revoked" } },
    { ...cluster, name: "south", reachable: false, silence: { sinceMs: 1, unusable: null, lostMs: 2 } },
    { ...cluster, name: "back", reachable: true, returningMs: 3 },
    { ...cluster, name: "sim", reachable: true, retired: true },
  ];
  const states = surveyOf({ ...nothing, clusters }).clusters;
  assert.equal(states.length, 6 * 5);
  assert.deepEqual(
    states.filter(({ isIn }) => isIn).map(({ cluster: name, state }) => [name, state]),
    [
      ["east", "ACTIVE"],
      ["west", "UNREACHABLE"],
      ["old", "UNREACHABLE"],
      ["north", "UNUSABLE"],
      ["south", "LOST"],
      ["back", "RETURNING"],
    ],
  );
});

test("a phase without jobs counts 0", () => {
  const jobs = [
    { phase: "WAITING", reason: "NoCapacity", jobs: 2 },
    { phase: "RUNNING", reason: "", jobs: 1 },
  ];
  const empty = ["ADMITTED", "STARTING", "RESTARTING", "SUSPENDED"].map((phase) => ({ phase, reason: "", jobs: 0 }));
  assert.deepEqual(surveyOf({ ...nothing, jobs }).jobs, [...jobs, ...empty]);
  const all = surveyOf(nothing).jobs;
  assert.deepEqual([all.length, all[0]], [6, { phase: "WAITING", reason: "NotEvaluated", jobs: 0 }]);
});

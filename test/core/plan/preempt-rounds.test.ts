import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../src/core/job/job.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { stateOf } from "../../support/load-snapshot.ts";
import {
  admission,
  amounts,
  cluster,
  job,
  NOW,
  node,
  planGang,
  queue,
  type SnapshotParts,
  snapshot,
} from "./plan-world.ts";

const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };
const FLAVORS = { "nvidia.com/gpu": "gpu/h100" };
const POOL = "gpu/h100";

const preempts: QueuePolicy = {
  ...DEFAULT_POLICY,
  reserveAfterMs: 0,
  withinQueue: "LOWER_PRIORITY",
  reclaimWithinTree: "ANY",
};
const own = (nominal: number, parts: Partial<QueuePolicy> = {}) =>
  queue("q", { h100: nominal }, { policy: { ...preempts, ...parts }, used: { [POOL]: 8 } });

const gang = (name: string, priority = 0, parts: Partial<Parameters<typeof job>[0]> = {}) =>
  job({ name, priority, roles: { Worker: { replicas: 1, gpus: 8 } }, ...parts });

/** A gang that runs on the node of the same cluster since `admitTimeMs`. */
function runs(name: string, where = "east", priority = 0): Job {
  const live = { cluster: where, members: { Worker: 1 }, flavors: FLAVORS, nodeLabels: { gpu: "h100" } };
  return gang(name, priority, { admissions: [admission({ ...live, admitTimeMs: NOW - 100 })] });
}

const nominated = (one: Job, parts: Partial<NonNullable<PlanGang["nomination"]>> = {}): PlanGang => {
  const made = planGang(one);
  const victims = [{ jobUid: "uid-victim", admission: 1 }];
  const named = { cluster: "east", flavors: FLAVORS, members: { Worker: 1 }, victims, sinceMs: NOW };
  return { ...made, nomination: { ...named, generation: made.generation, ...parts } };
};

const evicted = (one: Job): PlanGang => ({ ...planGang(one), evicted: true });

/** `a preempts b (reason) on east`, `a admitted`, `a withdrawn`. */
function short({ admissions, preemptions, withdrawn }: FleetPlan): readonly string[] {
  return [
    ...admissions.map(({ jobUid }) => `${jobUid.slice(4)} admitted`),
    ...preemptions.map(({ planned, victims }) => {
      const gone = victims.map(({ jobUid, reason }) => `${jobUid.slice(4)} (${reason})`).join(", ");
      return `${planned.jobUid.slice(4)} preempts ${gone} on ${planned.cluster}`;
    }),
    ...withdrawn.map((uid) => `${uid.slice(4)} withdrawn`),
  ];
}

const wide = cluster("east", { nodes: [node("big", "h100", { allocatable: amounts(64), free: amounts(56) })] });

const cases: Record<string, { readonly from: SnapshotParts; readonly made: readonly string[] }> = {
  "a gang of a higher priority preempts one of its queue that lacks quota for both": {
    from: { waiting: [gang("a", 1)], admitted: [runs("b")], queues: [own(8)], clusters: [wide] },
    made: ["a preempts b (InClusterQueue) on east"],
  },
  "a queue whose policy is NEVER preempts nobody": {
    from: {
      waiting: [gang("a", 1)],
      admitted: [runs("b")],
      queues: [own(8, { withinQueue: "NEVER" })],
      clusters: [wide],
    },
    made: [],
  },
  "a gang whose priority class says NEVER preempts nobody, but one beside it does": {
    from: {
      waiting: [{ ...planGang(gang("a", 2)), neverPreempts: true }, gang("c", 1)],
      admitted: [runs("b")],
      queues: [own(8)],
      clusters: [wide],
    },
    made: ["c preempts b (InClusterQueue) on east"],
  },
  "a gang that leaves anyway is waited for": {
    from: { waiting: [gang("a", 1)], admitted: [evicted(runs("b"))], queues: [own(8)], clusters: [wide] },
    made: [],
  },
  "a nominee with some of its members does not start with fewer while its victims end": {
    from: {
      waiting: [
        nominated(gang("a", 1, { roles: { Worker: { replicas: 4, gpus: 8 } }, minAvailable: 1 }), {
          members: { Worker: 3 },
        }),
      ],
      admitted: [evicted(runs("victim"))],
      queues: [own(24)],
      clusters: [wide],
    },
    made: [],
  },
  "a nominee with some of its members starts with all once all fit": {
    from: {
      waiting: [
        nominated(gang("a", 1, { roles: { Worker: { replicas: 4, gpus: 8 } }, minAvailable: 1 }), {
          members: { Worker: 3 },
        }),
      ],
      admitted: [evicted(runs("victim"))],
      queues: [own(40)],
      clusters: [wide],
    },
    made: ["a admitted"],
  },
  "two gangs never preempt the same one": {
    from: { waiting: [gang("a", 1), gang("c", 1)], admitted: [runs("b")], queues: [own(8)], clusters: [wide] },
    made: ["a preempts b (InClusterQueue) on east"],
  },
  "an earlier gang takes what is free of a nominee's place, and the nominee waits for what drains": {
    from: {
      waiting: [nominated(gang("a")), gang("c", 1)],
      admitted: [evicted(runs("victim"))],
      queues: [own(16)],
      clusters: [wide],
    },
    made: ["c preempts  on east"],
  },
  "a nominee keeps what is free, and waits for the rest": {
    from: {
      waiting: [nominated(gang("a", 0, { roles: { Worker: { replicas: 1, gpus: 16 } } })), gang("c")],
      admitted: [evicted(runs("victim"))],
      queues: [own(16)],
      clusters: [wide],
    },
    made: [],
  },
  "a nomination of an older gang is withdrawn": {
    from: {
      waiting: [nominated(gang("a"), { generation: 0 })],
      queues: [own(16)],
      clusters: [wide],
    },
    made: ["a withdrawn"],
  },
  "a nomination for a cluster that takes no gangs is withdrawn": {
    from: {
      waiting: [nominated(gang("a"))],
      admitted: [evicted(runs("victim"))],
      queues: [own(8)],
      clusters: [{ ...wide, cordoned: true }],
    },
    made: ["a withdrawn"],
  },
  "a nomination that does not fit although all victims are gone is withdrawn": {
    from: { waiting: [nominated(gang("a"))], queues: [own(8)], clusters: [wide] },
    made: ["a withdrawn"],
  },
};
for (const [name, { from, made }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(short(stateOf(snapshot(from)).round(NOW, BOUNDS)), made));
}

test("a gang is protected for its minimum run time, and the round says when that ends", () => {
  const queues = [own(8, { minRuntimePreemptMs: 300 })];
  const state = stateOf(snapshot({ waiting: [gang("a", 1)], admitted: [runs("b")], queues, clusters: [wide] }));
  const early = state.round(NOW, BOUNDS);
  assert.deepEqual([short(early), early.replanAtMs], [[], NOW + 200]);
  assert.deepEqual(short(state.round(NOW + 199, BOUNDS)), []);
  assert.deepEqual(short(state.round(NOW + 200, BOUNDS)), ["a preempts b (InClusterQueue) on east"]);
});

test("if only nodes lack, the gangs of the cluster where that costs least give way", () => {
  const full = { allocatable: amounts(8), free: amounts(0) };
  const clusters = ["east", "west"].map((name) => cluster(name, { nodes: [node("n", "h100", full)] }));
  const admitted = [runs("b", "east", 1), runs("c", "west")];
  const state = stateOf(snapshot({ waiting: [gang("a", 2)], admitted, queues: [own(64)], clusters }));
  for (const [name, uid] of Object.entries({ east: "uid-b", west: "uid-c" })) {
    const key = { kind: "node", name: "n" } as const;
    const members = [{ jobUid: uid, admission: 1, role: "worker", index: 0 }];
    const entry = { ...key, node: node("n", "h100", full), members };
    state.apply({ kind: "capacity", cluster: name, epoch: 1, since: 1, sequence: 2, changes: [{ key, entry }] });
  }
  assert.deepEqual(short(state.round(NOW, BOUNDS)), ["a preempts c (InClusterQueue) on west"]);
});

/** What the node of the one cluster shows of the victim of a nominee. */
const shownStages: Record<
  string,
  { readonly victim?: readonly number[]; readonly keeps?: number; readonly made: string }
> = {
  "waits while the node still shows a pod of a victim whose record says that it is gone": { victim: [0], made: "" },
  "waits while the node still shows a member that an elastic victim has given up": {
    victim: [0, 1],
    keeps: 1,
    made: "",
  },
  "is withdrawn once the node shows no pod of its victims, and has no room": { made: "a withdrawn" },
  "is withdrawn once the node shows only members that an elastic victim keeps, and has no room": {
    victim: [0],
    keeps: 1,
    made: "a withdrawn",
  },
};
for (const [name, { victim = [], keeps, made }] of Object.entries(shownStages)) {
  test(`a nominee ${name}`, () => {
    const full = { allocatable: amounts(8), free: amounts(0) };
    const one = { jobUid: "uid-victim", admission: 1, ...(keeps === undefined ? {} : { keeps: { Worker: keeps } }) };
    const waiting = [nominated(gang("a"), { victims: [one] })];
    const clusters = [cluster("east", { nodes: [node("n", "h100", full)] })];
    const state = stateOf(snapshot({ waiting, queues: [own(16)], clusters }));
    const key = { kind: "node", name: "n" } as const;
    const show = (sequence: number, free: number, indexes: readonly number[]) => {
      const members = indexes.map((index) => ({ jobUid: "uid-victim", admission: 1, role: "worker", index }));
      const entry = { ...key, node: node("n", "h100", { ...full, free: amounts(free) }), members };
      const changes = [{ key, entry }];
      state.apply({ kind: "capacity", cluster: "east", epoch: 1, since: sequence - 1, sequence, changes });
    };
    show(2, 0, victim);
    assert.equal(short(state.round(NOW, BOUNDS)).join(), made);
    show(3, 8, []);
    assert.deepEqual(short(state.round(NOW, BOUNDS)), ["a admitted"]);
  });
}

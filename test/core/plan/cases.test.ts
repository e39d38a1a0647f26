import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../src/core/job/job.ts";
import { withHead } from "../../../src/core/plan/explain/refuse.ts";
import type { Plan } from "../../../src/core/plan/model/plan-types.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { StopPolicy } from "../../../src/core/plan/model/queue-stop.ts";
import type { PlanCluster } from "../../../src/core/plan/model/snapshot.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { plan } from "../../support/plan.ts";
import {
  AT,
  admission,
  amounts,
  cluster,
  flavor,
  job,
  NOW,
  node,
  nodes,
  planGang,
  pool,
  queue,
  type SnapshotParts,
  snapshot,
} from "./plan-world.ts";

const undone = (facts: Omit<Parameters<typeof admission>[0], "cluster">) =>
  admission({ cluster: "east", state: "undone", number: 2, ...facts });

const gang = (replicas: number, gpus: number) => ({ Worker: { replicas, gpus } });

/**
 * A plan in short, in its order: `name -> cluster members flavor` for an admission, `name: reason` for a refusal.
 */
function short(made: Plan): readonly string[] {
  const admitted = made.admissions.map((planned) => {
    const members = Object.entries(planned.members).map(([role, count]) => `${role}=${count}`);
    const flavors = Object.values(planned.flavors);
    const number = planned.admission === 1 ? "" : ` #${planned.admission}`;
    const grown = planned.kind === "grow" ? " grows" : "";
    return `${planned.jobUid.slice(4)} -> ${[planned.cluster, ...members, ...flavors].join(" ")}${number}${grown}`;
  });
  return [...admitted, ...made.refusals.map((refusal) => `${refusal.jobUid.slice(4)}: ${refusal.reason}`)];
}

const running = (
  name: string,
  members: number,
  parts: { replicas?: number; cluster?: string; queue?: string; pod?: JsonObject } = {},
) =>
  job({
    name,
    roles: { Worker: { replicas: parts.replicas ?? members, gpus: 8, pod: parts.pod ?? {} } },
    minAvailable: members,
    queue: parts.queue ?? "q",
    admissions: [
      admission({
        cluster: parts.cluster ?? "east",
        members: { Worker: members },
        flavors: { "nvidia.com/gpu": "gpu/h100" },
        flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } },
      }),
    ],
  });

/** A running gang of an elastic kind. */
const elastic = (name: string, members: number, parts: { replicas: number; queue?: string }) => {
  const base = running(name, members, parts);
  return { ...base, spec: { ...base.spec, kind: "TFJob", kindSpec: { enableDynamicWorker: true } } };
};

const suspended = (one: Job): Job => {
  return { ...one, spec: { ...one.spec, runPolicy: { ...one.spec.runPolicy, suspend: true } } };
};

const HEAVY: QueuePolicy = { ...DEFAULT_POLICY, weight: 3 };

const TRIES_NEXT: QueuePolicy = {
  ...DEFAULT_POLICY,
  fungibility: { ...DEFAULT_POLICY.fungibility, whenCanBorrow: "TRY_NEXT_FLAVOR" },
};

/** Four nodes of eight GPUs, of which one is in zone b. */
const zoned = nodes(4, "h100").map((one, at) => ({ ...one, labels: { gpu: "h100", zone: at === 0 ? "b" : "a" } }));

/** Four nodes of eight GPUs. */
const wide = [cluster("east", { nodes: nodes(4, "h100") })];

const FREEZE = { by: "ann", atMs: 7, reason: "audit" };

/** Queues below `q`, which is stopped as it says. */
const below = (stopPolicy: StopPolicy) => [
  queue("q", { h100: 1000 }, { stopPolicy }),
  queue("child", { h100: 1000 }, { parent: "q" }),
  queue("other", { h100: 1000 }),
];

const cases: Readonly<Record<string, { readonly from: SnapshotParts; readonly made: readonly string[] }>> = {
  "an empty snapshot gives an empty plan": { from: {}, made: [] },
  "in a queue that is held no gang is admitted, also below it; another queue goes on": {
    from: {
      waiting: ["q", "child", "other"].map((name) => job({ name, queue: name, roles: gang(1, 8) })),
      queues: below("HOLD"),
    },
    made: ["other -> east Worker=1 gpu/h100", "child: QueueStopped", "q: QueueStopped"],
  },
  "in a queue that is held no gang grows": {
    from: {
      admitted: [running("a", 1, { replicas: 2, queue: "child" }), elastic("b", 1, { replicas: 2, queue: "q" })],
      queues: below("HOLD"),
      clusters: wide,
    },
    made: [],
  },
  "in a queue that is frozen no gang is admitted or grows, and none is evicted, though it drains": {
    from: {
      waiting: [job({ name: "a", queue: "child", roles: gang(1, 8) })],
      admitted: [running("b", 1, { replicas: 2, queue: "q" }), running("c", 1, { queue: "child" })],
      queues: [
        queue("q", { h100: 1000 }, { stopPolicy: "HOLD_AND_DRAIN", freeze: FREEZE }),
        queue("child", { h100: 1000 }, { parent: "q" }),
      ],
      clusters: wide,
    },
    made: ["a: QueueFrozen"],
  },
  "a gang that needs a pool that is frozen waits, though it has room, and takes another flavor if it may": {
    from: {
      waiting: [
        job({ name: "a", queue: "one", roles: gang(1, 8) }),
        job({ name: "b", queue: "both", roles: gang(1, 8) }),
      ],
      queues: [queue("one", { h100: 1000 }), queue("both", { h100: 1000, a100: 1000 })],
      pools: [pool("gpu/h100", { freeze: FREEZE }), pool("gpu/a100")],
      clusters: [cluster("east", { nodes: [...nodes(2, "h100"), ...nodes(2, "a100")] })],
    },
    made: ["b -> east Worker=1 gpu/a100", "a: PoolFrozen"],
  },
  "a queue admits no more jobs than it may run, those below it counted; gangs that run still grow": {
    from: {
      waiting: ["a", "b"].map((name) => job({ name, queue: "child", roles: gang(1, 8) })),
      admitted: [running("c", 1, { replicas: 2 })],
      queues: [queue("q", { h100: 1000 }, { maxRunningJobs: 2 }), queue("child", { h100: 1000 }, { parent: "q" })],
      clusters: wide,
    },
    made: ["a -> east Worker=1 gpu/h100", "c -> east Worker=2 gpu/h100 grows", "b: QueueFull"],
  },
  "a queue with the policy NONE admits and grows": {
    from: {
      waiting: [job({ name: "a", queue: "child", roles: gang(1, 8) })],
      admitted: [running("b", 1, { replicas: 2 })],
      queues: below("NONE"),
      clusters: wide,
    },
    made: ["a -> east Worker=1 gpu/h100", "b -> east Worker=2 gpu/h100 grows"],
  },
  "a gang that fits is admitted with all its members": {
    from: { waiting: [job({ name: "a", roles: gang(2, 8) })] },
    made: ["a -> east Worker=2 gpu/h100"],
  },
  "a gang that would fit by totals but not by nodes waits": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 8) })],
      clusters: [cluster("east", { nodes: nodes(4, "h100", { free: amounts(4) }) })],
    },
    made: ["a: NoCapacity"],
  },
  "if not all members fit, the minimum is admitted, leaders first": {
    from: {
      waiting: [
        job({
          name: "a",
          roles: { Worker: { replicas: 3, gpus: 8 }, Master: { replicas: 1, gpus: 8 } },
          minAvailable: 2,
        }),
      ],
    },
    made: ["a -> east Master=1 Worker=1 gpu/h100"],
  },
  "if the quota is too small for all members, the minimum is admitted": {
    from: { waiting: [job({ name: "a", roles: gang(2, 8), minAvailable: 1 })], queues: [queue("q", { h100: 8 })] },
    made: ["a -> east Worker=1 gpu/h100"],
  },
  "a gang that is larger than the empty cluster is too large": {
    from: { waiting: [job({ name: "a", roles: gang(3, 8) })] },
    made: ["a: TooLarge"],
  },
  "a gang that fits the cluster once it is empty waits for room": {
    from: {
      waiting: [job({ name: "a", roles: gang(2, 8) })],
      clusters: [cluster("east", { nodes: nodes(2, "h100", { free: amounts(0) }) })],
    },
    made: ["a: NoCapacity"],
  },
  "a cordoned node takes no pods, but counts for what the empty cluster could take": {
    from: {
      waiting: [job({ name: "a", roles: gang(2, 8) })],
      clusters: [cluster("east", { nodes: [node("x", "h100"), node("y", "h100", { unschedulable: true })] })],
    },
    made: ["a: NoCapacity"],
  },
  "higher priority goes first, then the older job, then the smaller uid": {
    from: {
      waiting: [
        job({ name: "c", roles: gang(1, 8), createTimeMs: 1 }),
        job({ name: "b", roles: gang(1, 8), createTimeMs: 1 }),
        job({ name: "old", roles: gang(1, 8), createTimeMs: 0 }),
        job({ name: "high", roles: gang(1, 8), createTimeMs: 2, priority: 1 }),
      ],
      clusters: [cluster("east", { nodes: nodes(3, "h100") })],
    },
    made: [
      "high -> east Worker=1 gpu/h100",
      "old -> east Worker=1 gpu/h100",
      "b -> east Worker=1 gpu/h100",
      "c: NoCapacity",
    ],
  },
  "in a best-effort queue a small gang passes a large one": {
    from: {
      waiting: [job({ name: "a", roles: gang(3, 8) }), job({ name: "b", roles: gang(1, 8), createTimeMs: 1 })],
    },
    made: ["b -> east Worker=1 gpu/h100", "a: TooLarge"],
  },
  "in a strict queue no gang passes the head": {
    from: {
      waiting: [job({ name: "a", roles: gang(3, 8) }), job({ name: "b", roles: gang(1, 8), createTimeMs: 1 })],
      queues: [queue("q", { h100: 100 }, { strategy: "STRICT_FIFO" })],
    },
    made: ["a: TooLarge", "b: BehindHead"],
  },
  "others pass a strict head that only waits for its time": {
    from: {
      waiting: [
        job({ name: "a", roles: gang(1, 8), backoff: { undone: 1, notBeforeMs: NOW + 1, lastCluster: "east" } }),
        job({ name: "b", roles: gang(1, 8), createTimeMs: 1 }),
      ],
      queues: [queue("q", { h100: 100 }, { strategy: "STRICT_FIFO" })],
    },
    made: ["b -> east Worker=1 gpu/h100", "a: Backoff"],
  },
  "others pass a strict head whose older pods still run": {
    from: {
      waiting: [
        job({ name: "a", roles: gang(1, 4), queue: "strict", admissions: [undone({})] }),
        job({ name: "b", roles: gang(1, 8), queue: "strict" }),
      ],
      queues: [{ ...queue("strict", { h100: 99 }), strategy: "STRICT_FIFO" }],
    },
    made: ["b -> east Worker=1 gpu/h100", "a: Draining"],
  },
  "of the first gangs of queues, the one with the higher priority goes first, then the older one": {
    from: {
      waiting: [
        job({ name: "a", queue: "p", roles: gang(1, 8), createTimeMs: 2 }),
        job({ name: "b", queue: "q", roles: gang(1, 8), createTimeMs: 1 }),
        job({ name: "c", queue: "r", roles: gang(1, 8), createTimeMs: 3, priority: 1 }),
      ],
      queues: ["p", "q", "r"].map((name) => queue(name, { h100: 64 })),
    },
    made: ["c -> east Worker=1 gpu/h100", "b -> east Worker=1 gpu/h100", "a: NoCapacity"],
  },
  "a queue that does not borrow goes before one that does, which goes before one that borrows from farther": {
    from: {
      waiting: [
        job({ name: "far", queue: "far", roles: gang(1, 8), priority: 2 }),
        job({ name: "near", queue: "near", roles: gang(1, 8), priority: 1 }),
        job({ name: "own", queue: "own", roles: gang(1, 8) }),
      ],
      queues: [
        queue("all", { h100: 64 }),
        queue("team", { h100: 8 }, { parent: "all" }),
        queue("near", { h100: 0 }, { parent: "team" }),
        queue("part", { h100: 0 }, { parent: "all" }),
        queue("far", { h100: 0 }, { parent: "part" }),
        queue("own", { h100: 8 }, { parent: "all" }),
      ],
    },
    made: ["own -> east Worker=1 gpu/h100", "near -> east Worker=1 gpu/h100", "far: NoCapacity"],
  },
  "with fair sharing, the queue whose share with the gang is lower for its weight goes first": {
    from: {
      waiting: [
        job({ name: "a", queue: "light", roles: gang(2, 8), priority: 1 }),
        job({ name: "b", queue: "heavy", roles: gang(2, 8) }),
      ],
      queues: [
        queue("all", { h100: 64 }, { policy: { ...DEFAULT_POLICY, fairSharing: FAIR_SHARING_STRATEGIES } }),
        queue("light", { h100: 0 }, { parent: "all", used: { "gpu/h100": 8 } }),
        queue("heavy", { h100: 0 }, { parent: "all", used: { "gpu/h100": 16 }, policy: HEAVY }),
      ],
    },
    made: ["b -> east Worker=2 gpu/h100", "a: NoCapacity"],
  },
  "a queue that tries the next flavor before it borrows takes a later flavor of its own quota": {
    from: {
      waiting: [job({ name: "a", queue: "own", roles: gang(1, 8) })],
      queues: [queue("all", { h100: 8 }), queue("own", { h100: 0, a100: 8 }, { parent: "all", policy: TRIES_NEXT })],
      clusters: [cluster("alpha"), cluster("zulu", { nodes: nodes(1, "a100") })],
    },
    made: ["a -> zulu Worker=1 gpu/a100"],
  },
  "queues take turns as they fill": {
    from: {
      waiting: ["a", "b", "c"].flatMap((name) =>
        ["p", "q"].map((q) => job({ name: `${q}${name}`, queue: q, roles: gang(1, 8) })),
      ),
      queues: [queue("p", { h100: 64 }), queue("q", { h100: 64 })],
      clusters: [cluster("east", { nodes: nodes(4, "h100") })],
    },
    made: [
      "pa -> east Worker=1 gpu/h100",
      "qa -> east Worker=1 gpu/h100",
      "pb -> east Worker=1 gpu/h100",
      "qb -> east Worker=1 gpu/h100",
      "pc: NoCapacity",
      "qc: NoCapacity",
    ],
  },
  "a job of a queue that does not exist is refused as UnknownQueue": {
    from: { waiting: [job({ name: "a", queue: "nowhere", roles: gang(1, 8) })] },
    made: ["a: UnknownQueue"],
  },
  "a queue without a quota for GPUs admits none": {
    from: { waiting: [job({ name: "a", roles: gang(1, 8) })], queues: [queue("q", {})] },
    made: ["a: NoQuota"],
  },
  "a gang that requests more than the whole quota is refused until limits change": {
    from: { waiting: [job({ name: "a", roles: gang(2, 8) })], queues: [queue("q", { h100: 15 })] },
    made: ["a: AboveQuota"],
  },
  "the use of other jobs in the queue counts against the quota": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 8) })],
      queues: [queue("q", { h100: 16 }, { used: { "gpu/h100": 9 } })],
    },
    made: ["a: QuotaExhausted"],
  },
  "the plan's own admissions count against the quota": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 8) }), job({ name: "b", roles: gang(1, 8) })],
      queues: [queue("q", { h100: 15 })],
    },
    made: ["a -> east Worker=1 gpu/h100", "b: QuotaExhausted"],
  },
  "a gang without GPUs needs no quota and no allocation": {
    from: { waiting: [job({ name: "a", roles: { Worker: { replicas: 3, cpu: 2 } } })], queues: [queue("q", {})] },
    made: ["a -> east Worker=3"],
  },
  "flavors are tried in the order of the queue's quotas, before clusters": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 8) })],
      queues: [queue("q", { a100: 8, h100: 8 })],
      clusters: [cluster("alpha"), cluster("zulu", { nodes: nodes(1, "a100") })],
    },
    made: ["a -> zulu Worker=1 gpu/a100"],
  },
  "the second flavor is used if the first is exhausted": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 8) })],
      queues: [queue("q", { a100: 8, h100: 8 }, { used: { "gpu/a100": 1 } })],
      clusters: [cluster("alpha"), cluster("zulu", { nodes: nodes(1, "a100") })],
    },
    made: ["a -> alpha Worker=1 gpu/h100"],
  },
  "the plan prefers all members under the second flavor to the minimum under the first": {
    from: {
      waiting: [job({ name: "a", roles: gang(2, 8), minAvailable: 1 })],
      queues: [queue("q", { a100: 16, h100: 16 })],
      clusters: [cluster("alpha"), cluster("zulu", { nodes: nodes(1, "a100") })],
    },
    made: ["a -> alpha Worker=2 gpu/h100"],
  },
  "members that need no flavor are admitted under the flavor of the members that come later": {
    from: {
      waiting: [
        job({
          name: "a",
          roles: { Master: { replicas: 1, cpu: 4 }, Worker: { replicas: 2, gpus: 8 } },
          minAvailable: 1,
        }),
      ],
      queues: [queue("q", { h100: 7 })],
    },
    made: ["a -> east Master=1 Worker=0 gpu/h100"],
  },
  "pods without GPUs leave nodes with GPUs to others": {
    from: {
      waiting: [
        job({ name: "a", roles: { Worker: { replicas: 1, cpu: 16 } } }),
        job({ name: "b", roles: { Worker: { replicas: 1, cpu: 32, gpus: 8 } } }),
      ],
      clusters: [
        cluster("east", {
          nodes: [node("x", "h100", { free: amounts(8, 32) }), node("y", "h100", { free: amounts(0, 64) })],
        }),
      ],
    },
    made: ["a -> east Worker=1", "b -> east Worker=1 gpu/h100"],
  },
  "one gang never mixes flavors": {
    from: {
      waiting: [job({ name: "a", roles: gang(2, 8) })],
      clusters: [cluster("east", { nodes: [node("x", "h100"), node("y", "a100")] })],
    },
    made: ["a: TooLarge"],
  },
  "a job may name a GPU model by its short name": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 8), gpuModels: ["a100"] })],
      clusters: [cluster("east", { nodes: [node("x", "h100"), node("y", "a100")] })],
    },
    made: ["a -> east Worker=1 gpu/a100"],
  },
  "a GPU model that the queue has no quota for is refused": {
    from: { waiting: [job({ name: "a", roles: gang(1, 8), gpuModels: ["gpu/b200"] })] },
    made: ["a: NoQuota"],
  },
  "the gang goes to the cluster that is fullest afterwards": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 4) })],
      clusters: [cluster("alpha"), cluster("busy", { nodes: nodes(2, "h100", { free: amounts(4) }) }), cluster("zulu")],
    },
    made: ["a -> busy Worker=1 gpu/h100"],
  },
  "of equally full clusters, the first by name is chosen": {
    from: { waiting: [job({ name: "a", roles: gang(1, 4) })], clusters: [cluster("zulu"), cluster("alpha")] },
    made: ["a -> alpha Worker=1 gpu/h100"],
  },
  "the cluster where the gang did not start comes last": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 4), backoff: { undone: 1, notBeforeMs: NOW, lastCluster: "alpha" } })],
      clusters: [cluster("alpha"), cluster("zulu")],
    },
    made: ["a -> zulu Worker=1 gpu/h100"],
  },
  "the cluster where the gang did not start is chosen if it is the only one": {
    from: {
      waiting: [
        planGang(job({ name: "a", roles: gang(1, 4), backoff: { undone: 3, notBeforeMs: NOW, lastCluster: "east" } }), {
          lastAdmission: 3,
        }),
      ],
    },
    made: ["a -> east Worker=1 gpu/h100 #4"],
  },
  "a gang does not enter a cluster that its older admission has not left": {
    from: {
      waiting: [
        job({ name: "a", roles: gang(1, 4), admissions: [undone({ tokensReleasedMs: 5 })] }),
        job({ name: "b", roles: gang(1, 4), admissions: [undone({ tokensReleasedMs: 5, goneMs: 5 })] }),
      ],
    },
    made: ["b -> east Worker=1 gpu/h100 #3", "a: Draining"],
  },
  "a gang whose older pods may still run is admitted nowhere": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 4), admissions: [undone({})] })],
      clusters: [cluster("east"), cluster("west")],
    },
    made: ["a: Draining"],
  },
  "an older admission keeps the gang out of its own cluster alone": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 4), admissions: [undone({ tokensReleasedMs: 5 })] })],
      clusters: [cluster("east"), cluster("west")],
    },
    made: ["a -> west Worker=1 gpu/h100 #3"],
  },
  "a gang without GPUs goes to the cluster with the fewest processors left": {
    from: {
      waiting: [job({ name: "a", roles: { Worker: { replicas: 1, cpu: 1 } } })],
      clusters: [cluster("alpha"), cluster("busy", { nodes: nodes(2, "h100", { free: amounts(8, 32) }) })],
    },
    made: ["a -> busy Worker=1"],
  },
  "clusters that the gang may not use count as none": {
    from: {
      waiting: [job({ name: "a", roles: gang(1, 8) })],
      clusters: [
        cluster("a", { cordoned: true }),
        cluster("b", { reachable: false }),
        cluster("c", { capacity: null }),
        cluster("d", { flavors: [] }),
      ],
    },
    made: ["a: NoCluster"],
  },
  "a placement selects clusters by name and by label": {
    from: {
      waiting: [
        job({ name: "a", roles: gang(1, 8), clusters: ["west"] }),
        job({ name: "b", roles: gang(1, 8), clusterSelector: { region: "eu" } }),
        job({ name: "c", roles: gang(1, 8), clusterSelector: { region: "us" } }),
      ],
      clusters: [cluster("east", { labels: { region: "eu" } }), cluster("west")],
    },
    made: ["a -> west Worker=1 gpu/h100", "b -> east Worker=1 gpu/h100", "c: NoCluster"],
  },
  "members that no node shows yet keep their room": {
    from: { waiting: [job({ name: "b", roles: gang(1, 8) })], admitted: [running("a", 2)] },
    made: ["b: NoCapacity"],
  },
  "members that no node shows yet leave each other the nodes that only one of them can use": {
    from: {
      admitted: [running("a", 1, { replicas: 4 }), running("b", 1, { pod: { nodeSelector: { zone: "b" } } })],
      clusters: [cluster("east", { nodes: zoned })],
    },
    made: [],
  },
  "a member that fits on no node any more leaves the others their places": {
    from: {
      waiting: [job({ name: "d", roles: gang(2, 8) })],
      admitted: [
        running("a", 1),
        running("b", 1, { pod: { nodeSelector: { zone: "b" } } }),
        running("c", 1, { pod: { nodeSelector: { zone: "lost" } } }),
      ],
      clusters: [cluster("east", { nodes: zoned.slice(0, 3) })],
    },
    made: ["d: NoCapacity"],
  },
  "a pod beyond the members does not count for a member that no node shows yet": {
    from: {
      waiting: [job({ name: "b", roles: gang(1, 8) })],
      admitted: [running("a", 2)],
      clusters: [
        cluster("east", {
          capacity: {
            nodes: [...nodes(2, "h100", { free: amounts(0) }), node("z", "h100")],
            seen: [0, 2].map((index) => ({ jobUid: "uid-a", admission: 1, role: "worker", index })),
            unbound: [],
          },
        }),
      ],
    },
    made: ["b: NoCapacity"],
  },
  "members that a node shows are not charged twice": {
    from: {
      waiting: [job({ name: "b", roles: gang(1, 8) })],
      admitted: [running("a", 1)],
      clusters: [
        cluster("east", {
          capacity: {
            nodes: [node("x", "h100", { free: amounts(0) }), node("y", "h100")],
            seen: [{ jobUid: "uid-a", admission: 1, role: "worker", index: 0 }],
            unbound: [],
          },
        }),
      ],
    },
    made: ["b -> east Worker=1 gpu/h100"],
  },
  "an unbound pod of others takes room": {
    from: {
      waiting: [job({ name: "a", roles: gang(2, 8) })],
      clusters: [
        cluster("east", {
          capacity: { nodes: nodes(2, "h100"), seen: [], unbound: [{ podSpec: {}, requests: amounts(1, 1) }] },
        }),
      ],
    },
    made: ["a: NoCapacity"],
  },
  "a gang that lacks members grows before its queue admits another": {
    from: {
      waiting: [job({ name: "b", roles: gang(1, 8), priority: 9 })],
      admitted: [running("a", 1, { replicas: 2 })],
    },
    made: ["a -> east Worker=2 gpu/h100 grows", "b: NoCapacity"],
  },
  "a gang that cannot grow to its full size does not grow, and holds up no other": {
    from: { waiting: [job({ name: "b", roles: gang(1, 8) })], admitted: [running("a", 1, { replicas: 3 })] },
    made: ["b -> east Worker=1 gpu/h100"],
  },
  "an elastic gang grows by as much as there is room for, once all others are admitted": {
    from: {
      waiting: [job({ name: "b", roles: gang(1, 8) })],
      admitted: [elastic("a", 1, { replicas: 9 })],
      clusters: wide,
    },
    made: ["b -> east Worker=1 gpu/h100", "a -> east Worker=3 gpu/h100 grows"],
  },
  "an elastic gang grows to its full size if there is room for it": {
    from: { admitted: [elastic("a", 1, { replicas: 2 })], clusters: wide },
    made: ["a -> east Worker=2 gpu/h100 grows"],
  },
  "an elastic gang does not pass the head of a strict queue": {
    from: {
      waiting: [job({ name: "b", roles: gang(4, 8), queue: "strict" })],
      admitted: [elastic("a", 1, { replicas: 2, queue: "strict" })],
      queues: [{ ...queue("strict", { h100: 99 }), strategy: "STRICT_FIFO" }],
      clusters: wide,
    },
    made: ["b: NoCapacity"],
  },
  "a gang that was scaled down keeps its members until its worker removes them": {
    from: { admitted: [elastic("a", 2, { replicas: 1 })], clusters: wide },
    made: [],
  },
  "a suspended gang is not admitted, does not grow, and holds up no other": {
    from: {
      waiting: [
        suspended(job({ name: "a", roles: gang(1, 8), queue: "strict" })),
        job({ name: "b", roles: gang(1, 8), queue: "strict" }),
      ],
      admitted: [suspended(elastic("c", 1, { replicas: 2, queue: "strict" }))],
      queues: [{ ...queue("strict", { h100: 99 }), strategy: "STRICT_FIFO" }],
      clusters: wide,
    },
    made: ["b -> east Worker=1 gpu/h100", "a: Suspended"],
  },
  "nothing grows on a cordoned cluster or beyond its quota": {
    from: {
      admitted: [running("a", 1, { replicas: 2, cluster: "west" }), running("b", 1, { replicas: 2, queue: "full" })],
      queues: [queue("q", { h100: 99 }), queue("full", { h100: 8 }, { used: { "gpu/h100": 8 } })],
      clusters: [cluster("east"), cluster("west", { cordoned: true })],
    },
    made: [],
  },
};

for (const [name, { from, made }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(short(plan(snapshot(from), AT)), made));
}

test("a refusal for lack of room says how many pods are needed and how many fit", () => {
  const east = cluster("h100-east", {
    nodes: nodes(4, "h100").map((one, at) => (at < 2 ? one : { ...one, free: amounts(0) })),
  });
  const full = cluster("a-full", { nodes: nodes(4, "h100", { free: amounts(0) }) });
  const made = plan(
    snapshot({
      waiting: [job({ name: "a", roles: gang(4, 8) })],
      clusters: [full, east],
      queues: [queue("q", { h100: 99 })],
    }),
    AT,
  );
  const need = "needs 4 pods of 8 nvidia.com/gpu (gpu/h100)";
  const lack = "Worker pod, 4 nodes lack nvidia.com/gpu (needs 8, has 0 of 8 free)";
  const message = `${need}; 2 fit now on h100-east; for the next ${lack}`;
  const blocked = {
    role: "Worker",
    never: false,
    node: "h100-0",
    nodes: 4,
    obstacles: [{ kind: "resource", resource: "nvidia.com/gpu", need: 8000, available: 0, allocatable: 8000 }],
  };
  assert.deepEqual(made.refusals, [
    {
      jobUid: "uid-a",
      generation: 1,
      reason: "NoCapacity",
      message,
      clusters: [
        {
          cluster: "a-full",
          reason: "NoCapacity",
          message: `${need}; 0 fit now on a-full; for the first ${lack}`,
          flavor: "gpu/h100",
          need: 4,
          have: 0,
          blocked: { ...blocked, placed: 0 },
        },
        {
          cluster: "h100-east",
          reason: "NoCapacity",
          message,
          flavor: "gpu/h100",
          need: 4,
          have: 2,
          blocked: { ...blocked, placed: 2 },
        },
      ],
      quotas: [],
      retryAtMs: null,
    },
  ]);
});

test("a gang that no cluster can take is told why for each", () => {
  const clusters = [
    cluster("a", { cordoned: true }),
    cluster("b", { reachable: false }),
    cluster("bad", { reachable: false, unusable: true }),
    cluster("back", { reachable: false, returning: true }),
    cluster("c", { capacity: null }),
    cluster("d", { flavors: [{ ...flavor("h100"), resource: "other" }] }),
    cluster("e", { labels: { region: "us" } }),
    cluster("f"),
  ];
  const one = job({
    name: "a",
    roles: gang(1, 8),
    clusters: ["a", "b", "bad", "back", "c", "d", "e"],
    clusterSelector: { region: "eu" },
  });
  const labelled = clusters.map((each) => ({ ...each, labels: { region: "eu", ...each.labels } }));
  const queues = [queue("q", { h100: 9 })];
  const [refusal] = plan(snapshot({ waiting: [one], clusters: labelled, queues }), AT).refusals;
  const found = refusal?.clusters.map(({ cluster: name, reason, flavor: lacks }) => [name, reason, lacks]);
  assert.deepEqual(found, [
    ["a", "Cordoned", null],
    ["b", "Unreachable", null],
    ["back", "Returning", null],
    ["bad", "Unusable", null],
    ["c", "CapacityUnknown", null],
    ["e", "NotSelected", null],
    ["f", "NotSelected", null],
    ["d", "NoSuchFlavor", "gpu/h100"],
  ]);
  assert.equal(
    refusal?.message,
    "no cluster can be used: a: it is cordoned; b: it cannot be reached; " +
      "back: it has just returned, and what gangs left there is being deleted; " +
      "bad: it answers, but this service cannot use it until an operator has seen to it; " +
      "c: its capacity has not been observed yet; e: it has no label region=eu; " +
      "f: the job asks for a, b, bad, back, c, d, e; d: it has no gpu/h100",
  );
  const [alone] = plan(snapshot({ waiting: [one], clusters: [], queues }), AT).refusals;
  assert.deepEqual([alone?.reason, alone?.message], ["NoCluster", "there is no cluster"]);
});

test("of clusters with equal room, the refusal names the first", () => {
  const clusters = ["b", "a"].map((name) => cluster(name, { nodes: nodes(1, "h100", { free: amounts(0) }) }));
  const queues = [queue("q", { h100: 9 })];
  const [refusal] = plan(snapshot({ waiting: [job({ name: "j", roles: gang(1, 8) })], clusters, queues }), AT).refusals;
  assert.match(refusal?.message ?? "", / 0 fit now on a;/);
});

test("a gang that waits for its own pods to leave a cluster names that cluster", () => {
  const one = job({ name: "a", roles: gang(1, 8), admissions: [undone({ tokensReleasedMs: 5 })] });
  const [refusal] = plan(snapshot({ waiting: [one] }), AT).refusals;
  assert.equal(refusal?.message, "east: admission 2 of this job has not left it yet");
});

test("a job that may reuse an earlier result is told which one it waits for", () => {
  const one = job({ name: "a", roles: gang(1, 8) });
  const spec = { ...one.spec, runPolicy: { ...one.spec.runPolicy, cacheKey: "k" } };
  const words = (waiting: Job["status"]["waiting"]) =>
    plan(snapshot({ waiting: [{ ...one, spec, status: { ...one.status, waiting } }] }), AT).refusals[0]?.message;
  assert.equal(words({ reason: "WaitingForCache", message: "waits for ml/b", sinceMs: 1 }), "waits for ml/b");
  assert.equal(
    words({ reason: "Suspended", message: "it is suspended", sinceMs: 1 }),
    "earlier results are looked for",
  );
  assert.equal(words(null), "earlier results are looked for");
});

test("a refusal for lack of quota names the holders, largest first", () => {
  const admitted = [running("small", 1), running("large", 2)];
  const queues = [queue("q", { h100: 24 }, { used: { "gpu/h100": 24 } })];
  const [refusal] = plan(snapshot({ waiting: [job({ name: "a", roles: gang(1, 8) })], admitted, queues }), AT).refusals;
  assert.equal(refusal?.message, "needs 8 of gpu/h100; queue q uses 24 of 24 (held by ml/large, ml/small)");
  assert.deepEqual(refusal?.quotas, [
    {
      queue: "q",
      flavor: "gpu/h100",
      scope: { kind: "queue", pool: "gpu/h100", queue: "q" },
      reason: "QuotaExhausted",
      need: 8,
      used: 24,
      limit: 24,
      reserved: 0,
      heldBy: ["ml/large", "ml/small"],
    },
  ]);
});

test("a plan says when time alone may change it", () => {
  const waiting = [5, 3].map((ms) =>
    job({ name: `in-${ms}`, roles: gang(1, 8), backoff: { undone: 1, notBeforeMs: NOW + ms, lastCluster: "east" } }),
  );
  const large = job({ name: "large", roles: gang(9, 8), createTimeMs: 1 });
  const made = plan(snapshot({ waiting: [...waiting, large] }), AT);
  assert.equal(made.replanAtMs, NOW + 3);
  const byUid = new Map(made.refusals.map((refusal) => [refusal.jobUid, refusal]));
  const times = ["uid-in-3", "uid-in-5", "uid-large"].map((uid) => byUid.get(uid)?.retryAtMs);
  assert.deepEqual(times, [NOW + 3, NOW + 5, null]);
  assert.match(byUid.get("uid-in-3")?.message ?? "", /admission to east was undone.* 1970-01-01T00:16:40\.003Z/);
});

test("a gang whose admission was undone says why its pods did not run", () => {
  const why = "2 Worker pods do not run: Unschedulable (no room)";
  const backoff = { undone: 1, notBeforeMs: NOW + 5, lastCluster: "east", why };
  const made = plan(snapshot({ waiting: [job({ name: "a", roles: gang(1, 8), backoff })] }), AT);
  const message = made.refusals[0]?.message ?? "";
  assert.ok(message.startsWith(`its admission to east was undone because ${why}; it may be admitted again`), message);
});

test("a gang behind the head of a strict queue names the head, whose refusal says what lacks", () => {
  const queues = [queue("q", { h100: 8 }, { strategy: "STRICT_FIFO", used: { "gpu/h100": 8 } })];
  const waiting = ["a", "b"].map((name) => job({ name, roles: gang(1, 8) }));
  const { refusals } = plan(snapshot({ waiting, queues }), AT);
  assert.deepEqual(
    refusals.map(({ reason, head }) => [reason, head]),
    [
      ["QuotaExhausted", undefined],
      ["BehindHead", "uid-a"],
    ],
  );
  const [head, behind] = refusals;
  const { message, quotas, clusters } = withHead(behind!, head!);
  assert.match(message, /^waits behind ml\/a, the head of the strict queue q: needs 8 of gpu\/h100/);
  assert.deepEqual([quotas, clusters], [head?.quotas, head?.clusters]);
});

test("a planned admission has every field of its record", () => {
  const one = planGang(job({ name: "a", roles: gang(2, 4) }));
  const [planned] = plan(snapshot({ waiting: [one] }), AT).admissions;
  assert.deepEqual(planned, {
    kind: "admit",
    jobUid: "uid-a",
    askHash: one.askHash,
    generation: 1,
    admission: 1,
    cluster: "east",
    admissionCounter: 7,
    members: { Worker: 2 },
    flavors: { "nvidia.com/gpu": "gpu/h100" },
    flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } },
    runs: [{ role: "Worker", first: 0, count: 2, node: planned?.runs?.[0]?.node, others: planned?.runs?.[0]?.others }],
    allocations: [{ pool: "gpu/h100", amount: 8, project: "research", namespace: "ml", queue: "q" }],
  });
});

test("each admission to a cluster expects that the one before it has raised the counter", () => {
  const waiting = ["a", "b", "c"].map((name) => job({ name, roles: gang(1, 2) }));
  const made = plan(snapshot({ waiting }), AT);
  assert.deepEqual(
    made.admissions.map(({ admissionCounter }) => admissionCounter),
    [7, 8, 9],
  );
});

test("growth is charged only for the members that it adds", () => {
  const [planned] = plan(snapshot({ admitted: [running("a", 1, { replicas: 2 })] }), AT).admissions;
  assert.deepEqual(planned?.allocations, [
    { pool: "gpu/h100", amount: 8, project: "research", namespace: "ml", queue: "q" },
  ]);
});

test("parts of a device are rounded up for each pod", () => {
  const made = plan(snapshot({ waiting: [job({ name: "a", roles: gang(2, 1.5) })] }), AT);
  assert.deepEqual(
    made.admissions[0]?.allocations.map((allocation) => allocation.amount),
    [4],
  );
});

test("two flavored resources get a flavor each, and both demand their nodes", () => {
  const labels = { gpu: "h100", fabric: "ib" };
  const all = [
    node("x", "h100", {
      labels,
      allocatable: { ...amounts(8), "rdma/hca": 8000 },
      free: { ...amounts(8), "rdma/hca": 8000 },
    }),
  ];
  const ib = { name: "rdma/ib", resource: "rdma/hca", nodeLabels: { fabric: "ib" } };
  const requests = { "nvidia.com/gpu": 8, "rdma/hca": 1 };
  const both = job({
    name: "a",
    roles: { Worker: { replicas: 1, pod: { containers: [{ name: "m", resources: { requests } }] } } },
    gpuModels: ["h100"],
  });
  const q = queue("q", { h100: 8 });
  const queues = [{ ...q, quotas: [...q.quotas, { flavor: "rdma/ib", resource: "rdma/hca", nominal: 8 }] }];
  const clusters = [cluster("east", { nodes: all, flavors: [ib, flavor("h100")] })];
  const [planned] = plan(snapshot({ waiting: [both], queues, clusters }), AT).admissions;
  assert.deepEqual(planned?.flavorLabels, { "nvidia.com/gpu": { gpu: "h100" }, "rdma/hca": { fabric: "ib" } });
  assert.deepEqual(
    planned?.allocations.map((allocation) => [allocation.pool, allocation.amount]),
    [
      ["gpu/h100", 8],
      ["rdma/ib", 1],
    ],
  );
});

test("a retired cluster takes no gang, and words about simulated clusters call them so", () => {
  const simulated = { simulated: true, nodes: nodes(1, "h100") };
  const one = job({ name: "one", roles: { Worker: { replicas: 2, gpus: 8 } } });
  const refusalOf = (...clusters: readonly PlanCluster[]) =>
    plan(snapshot({ waiting: [one], clusters, queues: [queue("q", { h100: 16 })] }), AT).refusals[0];
  const retired = refusalOf(cluster("a", { ...simulated, nodes: nodes(2, "h100"), retired: true }));
  assert.equal(retired?.clusters[0]?.reason, "Retired");
  assert.equal(
    retired?.message,
    "no cluster can be used: a (simulated): it is simulated, and takes no gangs since a real cluster is registered",
  );
  const full = refusalOf(cluster("b", simulated));
  assert.match(full?.message ?? "", / b \(simulated\) /);
  assert.deepEqual([full?.clusters[0]?.cluster, full?.clusters[0]?.simulated], ["b", true]);
});

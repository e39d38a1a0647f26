/** What Kubeflow's job controller shows of a job that runs and ends, decided on the tiny cluster. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { LABEL } from "../../../src/core/job/labels.ts";
import type { SentRunPolicy, SentSpec } from "../../../src/core/job/request/sent.ts";
import { isTerminal, type ReplicaStatus } from "../../../src/core/job/status.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { arrayAt, type JsonObject, objectAt } from "../../../src/runtime/json.ts";
import { names, pytorch, Scene } from "./scene.ts";
import { CONFIG, recorded } from "./world.ts";

const exits = (decision: Decision) =>
  (decision.record?.events ?? []).filter(({ reason }) => reason === "ExitedWithCode").map(({ message }) => message);

const countsOf = (scene: Scene, role = "Worker"): ReplicaStatus | undefined => scene.job.status.replicaStatuses[role];

describe("the last step", () => {
  test("a record has the time of its step, and a step that changes nothing is not recorded for its time", () => {
    const scene = new Scene(pytorch()).start();
    assert.equal(scene.job.status.lastReconcileMs, scene.nowMs);
    const at = scene.nowMs;
    scene.nowMs += 60_000;
    assert.equal(scene.step().record, null);
    assert.equal(scene.job.status.lastReconcileMs, at);
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.step();
    assert.equal(scene.job.status.lastReconcileMs, scene.nowMs);
  });
});

describe("the counts of a job that has ended", () => {
  const ran = { active: 2, succeeded: 0, failed: 0 };
  const cases: Record<string, { runPolicy: SentRunPolicy; end: (scene: Scene) => void; after: ReplicaStatus }> = {
    "after a success, pods that still ran have succeeded": {
      runPolicy: { cleanPodPolicy: "None" },
      end: (scene) => scene.set("j-master-0", "Succeeded", { exitCode: 0 }),
      after: { active: 0, succeeded: 2, failed: 0, activeAtEnd: 2 },
    },
    "after a cancellation, none is active once the pods are gone": {
      runPolicy: { cleanPodPolicy: "None" },
      end: (scene) => {
        scene.job = { ...scene.job, cancel: { reason: "", atMs: scene.nowMs } };
      },
      after: { active: 0, succeeded: 0, failed: 0 },
    },
    "after a deadline, none is active once the pods are gone": {
      runPolicy: { activeDeadlineSeconds: 60 },
      end: (scene) => {
        scene.nowMs += 60_000;
      },
      after: { active: 0, succeeded: 0, failed: 0 },
    },
    "after a deadline that leaves the pods, they are active": {
      runPolicy: { activeDeadlineSeconds: 60, cleanPodPolicy: "None" },
      end: (scene) => {
        scene.nowMs += 60_000;
      },
      after: ran,
    },
  };
  for (const [name, { runPolicy, end, after }] of Object.entries(cases)) {
    test(name, () => {
      const scene = new Scene(pytorch(runPolicy)).start();
      end(scene);
      scene.step();
      assert.ok(isTerminal(scene.job.status));
      assert.deepEqual(countsOf(scene), ran, "the pass that ends the job shows them as they were");
      scene.rest();
      assert.deepEqual(countsOf(scene), after);
      assert.equal(scene.step().record, null, "and nothing more is recorded");
    });
  }

  test("a record of an older version whose pods are gone stays as it is", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "All" })).start();
    scene.set("j-master-0", "Succeeded", { exitCode: 0 });
    scene.rest();
    const replicaStatuses = { ...scene.job.status.replicaStatuses, Worker: ran };
    const old = { ...scene.job, status: { ...scene.job.status, replicaStatuses } };
    assert.equal(reconcile(old, scene.observe(), scene.nowMs, CONFIG).record, null);
  });

  test("whatever pods do, a success never lowers what was counted, and leaves none active", () => {
    const phase = fc.constantFrom("Running", "Succeeded", "Pending");
    fc.assert(
      fc.property(phase, phase, fc.constantFrom("None", "Running", "All"), (one, other, cleanPodPolicy) => {
        const scene = new Scene(pytorch({ cleanPodPolicy })).start();
        for (const [name, is] of [
          ["j-worker-0", one],
          ["j-worker-1", other],
        ] as const)
          scene.set(name, is, is === "Succeeded" ? { exitCode: 0 } : {});
        scene.set("j-master-0", "Succeeded", { exitCode: 0 });
        scene.step();
        const before = countsOf(scene);
        scene.rest();
        const { active, succeeded } = countsOf(scene) ?? assert.fail();
        assert.equal(active, 0);
        assert.equal(succeeded, (before?.active ?? 0) + (before?.succeeded ?? 0));
      }),
      { numRuns: 30 },
    );
  });
});

describe("ExitedWithCode", () => {
  test("a pod that has succeeded is told once with code 0, a failed one with its own", () => {
    const scene = new Scene(pytorch({}, "ExitCode")).start();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.set("j-worker-1", "Failed", { exitCode: 137 });
    assert.deepEqual(exits(scene.step()), [
      "Pod: ns.j-worker-0 exited with code 0",
      "Pod: ns.j-worker-1 exited with code 137",
    ]);
    scene.rest();
    scene.nowMs += 60_000;
    assert.deepEqual(exits(scene.step()), []);
  });

  test("the pods whose success ends the job are told too", () => {
    const scene = new Scene(pytorch()).start();
    scene.set("j-master-0", "Succeeded", { exitCode: 0 });
    assert.deepEqual(exits(scene.step()), ["Pod: ns.j-master-0 exited with code 0"]);
    assert.deepEqual(exits(scene.step()), []);
  });

  test("a pod that succeeds because it is deleted has not exited by itself", () => {
    const scene = new Scene(pytorch()).start();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.cluster.change(scene.cluster.pods().find(({ name }) => name === "j-worker-0")!, { deleting: true });
    assert.deepEqual(exits(scene.step()), []);
  });
});

describe("services", () => {
  const serviceNames = (scene: Scene) =>
    scene.cluster.things.filter(({ kind }) => kind === "service").map(({ name }) => name);

  const left = {
    Running: ["j-master-0"],
    None: ["j-master-0", "j-worker-0", "j-worker-1"],
    All: [],
  } as const;
  for (const [cleanPodPolicy, kept] of Object.entries(left)) {
    test(`under the policy ${cleanPodPolicy} a service goes with its pod`, () => {
      const scene = new Scene(pytorch({ cleanPodPolicy: cleanPodPolicy as keyof typeof left })).start();
      scene.set("j-master-0", "Succeeded", { exitCode: 0 });
      scene.rest();
      assert.deepEqual(serviceNames(scene).sort(), kept);
      assert.deepEqual(scene.podNames, kept);
    });
  }

  test("a service whose deletion failed is deleted again, although its pod is gone", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "Running" })).start();
    scene.set("j-master-0", "Succeeded", { exitCode: 0 });
    const ending = scene.step();
    assert.deepEqual(names(ending, "deleteService").sort(), ["j-worker-0", "j-worker-1"]);
    // The cluster forgets the requests for services.
    for (const thing of scene.cluster.things)
      if (thing.kind === "service") scene.cluster.change(thing, { deleting: false });
    scene.cluster.collect();
    assert.deepEqual(names(scene.step(), "deleteService").sort(), ["j-worker-0", "j-worker-1"]);
  });

  type Declared = Record<string, readonly JsonObject[]>;
  const portCases: Record<string, { containers: Declared; ports: readonly JsonObject[] }> = {
    "the kind's port if none is declared": {
      containers: { pytorch: [] },
      ports: [{ name: "pytorchjob-port", port: 23456, targetPort: 23456 }],
    },
    "all named ports of the default container, the kind's first": {
      containers: {
        pytorch: [
          { name: "metrics", containerPort: 9000 },
          { name: "pytorchjob-port", containerPort: 29500 },
          { name: "gossip", containerPort: 7946, protocol: "UDP" },
        ],
        sidecar: [{ name: "admin", containerPort: 15000 }],
      },
      ports: [
        { name: "pytorchjob-port", port: 29500, targetPort: 29500 },
        { name: "metrics", port: 9000, targetPort: 9000 },
        { name: "gossip", port: 7946, protocol: "UDP", targetPort: 7946 },
      ],
    },
    "no port without a name, and no number twice": {
      containers: { pytorch: [{ containerPort: 1 }, { name: "same", containerPort: 23456 }] },
      ports: [{ name: "pytorchjob-port", port: 23456, targetPort: 23456 }],
    },
    "one number for two protocols": {
      containers: {
        pytorch: [
          { name: "tcp", containerPort: 53 },
          { name: "udp", containerPort: 53, protocol: "UDP" },
        ],
      },
      ports: [
        { name: "pytorchjob-port", port: 23456, targetPort: 23456 },
        { name: "tcp", port: 53, targetPort: 53 },
        { name: "udp", port: 53, protocol: "UDP", targetPort: 53 },
      ],
    },
  };
  for (const [name, { containers, ports }] of Object.entries(portCases)) {
    test(`a service has ${name}`, () => {
      const template = {
        spec: { containers: Object.entries(containers).map(([name, ports]) => ({ name, image: "img", ports })) },
      } as unknown as JsonObject;
      const sent: SentSpec = { kind: "PyTorchJob", replicaSpecs: { Master: { template } } };
      const [service] = new Scene(sent).step().actions.flatMap((one) => (one.kind === "createService" ? [one] : []));
      assert.deepEqual(arrayAt(objectAt(service?.manifest, "spec"), "ports"), ports);
    });
  }
});

describe("a released pod", () => {
  /** The job's second worker as Gangway has released it: without an owner, with the annotation and another label. */
  function withReleased(labels: Record<string, string> = { [LABEL.jobName]: "debugging" }): Scene {
    const scene = new Scene(pytorch({}, "Never")).start();
    const thing = scene.cluster.pods().find(({ name }) => name === "j-worker-1")!;
    const metadata = objectAt(thing.json, "metadata");
    const changed = {
      ...metadata,
      ownerReferences: [],
      labels: { ...objectAt(metadata, "labels"), ...labels },
      annotations: { ...objectAt(metadata, "annotations"), [LABEL.released]: "true" },
    };
    scene.cluster.change(thing, { json: { ...thing.json, metadata: changed } });
    return scene;
  }

  const changes = {
    "another job": { [LABEL.jobName]: "debugging" },
    "another operator": { [LABEL.operatorName]: "mine" },
    "another admission": { [LABEL.admission]: "7" },
    "another installation": { [LABEL.installation]: "mine" },
  };
  for (const [name, labels] of Object.entries(changes)) {
    test(`does not count, cannot fail its job, and is not deleted with it: its label names ${name}`, () => {
      const scene = withReleased(labels);
      scene.step();
      assert.equal(countsOf(scene)?.active, 1);
      scene.set("j-worker-1", "Failed", { exitCode: 1 });
      scene.step();
      assert.equal(scene.job.status.phase, "RUNNING");
      scene.set("j-master-0", "Succeeded", { exitCode: 0 });
      scene.rest();
      assert.equal(scene.job.status.phase, "SUCCEEDED");
      scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
      for (let round = 0; round < 10; round++) {
        const decision = reconcile(scene.job, scene.observe(), scene.nowMs, CONFIG);
        scene.job = recorded(scene.job, decision);
        for (const action of decision.actions) scene.cluster.act(action, scene.nowMs);
        scene.cluster.collect();
        scene.nowMs += 5_000;
      }
      assert.deepEqual(scene.podNames, ["j-worker-1"]);
      assert.equal(
        reconcile(scene.job, scene.observe(), scene.nowMs, CONFIG).forget,
        true,
        "the record goes without it",
      );
    });
  }
});

/** Gangs that are admitted with fewer members than their job has replicas: their programs must agree on one number. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import type { PartialPolicy } from "../../../src/core/job/spec.ts";
import { checkSent } from "../../../src/core/kinds/check-sent.ts";
import { applyAdmission } from "../../../src/core/plan/apply/apply-plan.ts";
import { askOf } from "../../../src/core/plan/model/ask.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { arrayAt, canonicalJson, type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { Scene } from "./scene.ts";
import { template } from "./world.ts";

type Shape = { readonly kind: string; readonly container: string; readonly roles: Readonly<Record<string, number>> };

const STATIC: readonly Shape[] = [
  { kind: "PyTorchJob", container: "pytorch", roles: { Master: 1, Worker: 5 } },
  { kind: "TFJob", container: "tensorflow", roles: { Chief: 1, PS: 2, Worker: 3 } },
  { kind: "JAXJob", container: "jax", roles: { Worker: 4 } },
  { kind: "XGBoostJob", container: "xgboost", roles: { Master: 1, Worker: 3 } },
  { kind: "PaddleJob", container: "paddle", roles: { Worker: 4 } },
  { kind: "Caffe2Job", container: "caffe2", roles: { Worker: 4 } },
];
const PYTORCH = STATIC[0]!;
const TIMEOUT_S = 120;

const sentOf = ({ kind, container, roles }: Shape, partial?: PartialPolicy): SentSpec => ({
  kind,
  replicaSpecs: Object.fromEntries(
    Object.entries(roles).map(([role, replicas]) => [role, { replicas, template: template(container) }]),
  ),
  runPolicy: {
    schedulingPolicy: { minAvailable: 2, scheduleTimeoutSeconds: TIMEOUT_S, ...(partial && { partial }) },
  },
});

const plannedOf = (
  scene: Scene,
  kind: PlannedAdmission["kind"],
  members: Record<string, number>,
): PlannedAdmission => ({
  kind,
  jobUid: scene.job.uid,
  askHash: "",
  generation: 1,
  admission: (scene.job.admissions.at(-1)?.number ?? 0) + (kind === "admit" ? 1 : 0),
  cluster: "c1",
  admissionCounter: 0,
  members,
  flavors: {},
  flavorLabels: {},
  allocations: [],
});

/** A gang that the planner has admitted with the members that it accepts at least. */
const admittedPart = (shape: Shape, partial?: PartialPolicy) => {
  const scene = new Scene(sentOf(shape, partial), shape.container);
  scene.job = { ...scene.job, status: { ...scene.job.status, phase: "WAITING" }, admissions: [] };
  return admit(scene);
};

const firstOf = (scene: Scene) =>
  Object.fromEntries(askOf(scene.job, OWN_KINDS).roles.map(({ role, first }) => [role, first]));

const admit = (scene: Scene) => {
  scene.job = applyAdmission(scene.job, plannedOf(scene, "admit", firstOf(scene)), {
    kinds: OWN_KINDS,
    nowMs: scene.nowMs,
  })!.after;
  return scene;
};
const grow = (scene: Scene, { roles }: Shape) => {
  scene.job = applyAdmission(scene.job, plannedOf(scene, "grow", roles), {
    kinds: OWN_KINDS,
    nowMs: scene.nowMs,
  })!.after;
};
const runAll = (scene: Scene) => {
  scene.step();
  for (const { name } of scene.cluster.pods()) scene.set(name, "Running");
  scene.step();
};

/** The environment of each container of each pod, by name of the pod. */
const environments = (scene: Scene) =>
  new Map(
    scene.cluster.pods().map(({ name, json }) => {
      const containers = arrayAt(objectAt(json, "spec"), "containers").map((one) => arrayAt(one as JsonObject, "env"));
      return [name, canonicalJson(containers)] as const;
    }),
  );
const variable = (scene: Scene, pod: string, name: string) =>
  arrayAt(arrayAt(objectAt(scene.cluster.pods().find((one) => one.name === pod)!.json, "spec"), "containers")[0], "env")
    .filter((one) => stringAt(one, "name") === name)
    .map((one) => stringAt(one, "value"))[0];

describe("a gang of a kind that is not elastic, admitted without some of its members", () => {
  for (const shape of STATIC) {
    test(`${shape.kind}: every pod is told what it would be told if all had been admitted at once`, () => {
      const part = admittedPart(shape);
      assert.equal(part.job.admissions[0]?.partial, "KEEP");
      runAll(part);
      const before = environments(part);
      grow(part, shape);
      runAll(part);
      const whole = new Scene(sentOf(shape), shape.container);
      whole.job = { ...whole.job, status: { ...whole.job.status, phase: "WAITING" }, admissions: [] };
      whole.job = applyAdmission(whole.job, plannedOf(whole, "admit", shape.roles), {
        kinds: OWN_KINDS,
        nowMs: whole.nowMs,
      })!.after;
      runAll(whole);
      const wanted = environments(whole);
      assert.ok(before.size < wanted.size, "it was a part");
      for (const [pod, env] of before) assert.equal(env, wanted.get(pod), pod);
      for (const [pod, env] of environments(part)) assert.equal(env, wanted.get(pod), pod);
    });
  }

  test("runs on with its minimum once all have run", () => {
    const scene = admittedPart(PYTORCH);
    runAll(scene);
    assert.notEqual(scene.job.admissions[0]?.belowMinSinceMs, null, "all replicas are needed until they have run");
    grow(scene, PYTORCH);
    runAll(scene);
    assert.deepEqual(
      [scene.job.admissions[0]?.belowMinSinceMs, scene.job.admissions[0]?.partial, scene.job.status.phase],
      [null, undefined, "RUNNING"],
    );
  });

  test("is undone if not all run within the start timeout, and is admitted as a whole or not at all then", () => {
    const scene = admittedPart(PYTORCH);
    runAll(scene);
    scene.nowMs += TIMEOUT_S * 1_000;
    scene.step();
    assert.equal(scene.job.status.phase, "WAITING");
    assert.match(scene.job.status.waiting?.message ?? "", /^Fewer than 6 pods ran on c1 for 120 s/);
    assert.deepEqual(firstOf(scene), { Master: 1, Worker: 5 });
    scene.rest();
    admit(scene);
    assert.equal(scene.job.admissions.at(-1)?.partial, undefined);
    runAll(scene);
    assert.equal(scene.job.status.backoff, null);
    assert.deepEqual(firstOf(scene), { Master: 1, Worker: 1 }, "a gang that has run may be admitted in part again");
  });

  test("that an older version has admitted keeps the number that it was told", () => {
    const scene = admittedPart(PYTORCH);
    const [{ partial: _new, ...older }] = scene.job.admissions as never as [{ partial: string }];
    scene.job = { ...scene.job, admissions: [older as never] };
    runAll(scene);
    assert.equal(variable(scene, "j-master-0", "WORLD_SIZE"), "2");
    assert.equal(scene.job.admissions[0]?.belowMinSinceMs, null);
  });
});

describe("with RESTART", () => {
  test("a part is told its own number, works, and restarts once, as a whole, when it has grown", () => {
    const scene = admittedPart(PYTORCH, "RESTART");
    runAll(scene);
    assert.equal(variable(scene, "j-master-0", "WORLD_SIZE"), "2");
    assert.deepEqual([scene.job.status.phase, scene.job.admissions[0]?.belowMinSinceMs], ["RUNNING", null]);
    grow(scene, PYTORCH);
    const restart = scene.step();
    assert.deepEqual(
      restart.actions.map(({ kind }) => kind).filter((kind) => kind.endsWith("Pod")),
      ["deletePod", "deletePod"],
      "no new pod meets an old one",
    );
    assert.equal(scene.job.status.phase, "RESTARTING");
    assert.match(restart.record?.events[0]?.message ?? "", /has grown to 6 members/);
    scene.cluster.collect();
    runAll(scene);
    assert.deepEqual(
      scene.podNames.map((name) => variable(scene, name, "WORLD_SIZE")),
      ["6", "6", "6", "6", "6", "6"],
    );
    const { attempts, phase } = scene.job.status;
    assert.deepEqual([phase, attempts.user, attempts.system], ["RUNNING", 0, 0], "no failure is counted");
    const settled = scene.job.admissions[0];
    assert.deepEqual([settled?.partial, settled?.told], [undefined, undefined]);
    scene.rest();
    assert.equal(
      Object.values(scene.job.status.attempts.byReplica).every((attempt) => attempt === 2),
      true,
    );
  });

  test("a whole gang has no rule", () => {
    const scene = new Scene(sentOf(PYTORCH, "RESTART"));
    scene.job = { ...scene.job, status: { ...scene.job.status, phase: "WAITING" }, admissions: [] };
    scene.job = applyAdmission(scene.job, plannedOf(scene, "admit", PYTORCH.roles), {
      kinds: OWN_KINDS,
      nowMs: scene.nowMs,
    })!.after;
    assert.equal(scene.job.admissions[0]?.partial, undefined);
  });
});

describe("elastic kinds", () => {
  const elastic: Record<string, SentSpec> = {
    "an elastic PyTorchJob": {
      ...sentOf(PYTORCH, "KEEP"),
      kindSpec: { elasticPolicy: { minReplicas: 1, maxReplicas: 9 } },
    },
    "a dynamic TFJob": { ...sentOf(STATIC[1]!, "RESTART"), kindSpec: { enableDynamicWorker: true } },
    "an MPIJob": sentOf({ kind: "MPIJob", container: "mpi", roles: { Launcher: 1, Worker: 2 } }, "KEEP"),
  };
  for (const [name, sent] of Object.entries(elastic)) {
    test(`${name} refuses partial`, () => {
      const errors = checkSent(OWN_KINDS.kindOf(sent.kind)!, sent);
      assert.deepEqual(
        errors.map(({ path }) => path),
        ["spec.runPolicy.schedulingPolicy.partial"],
      );
    });
  }

  test("an elastic PyTorchJob without bounds is told the number of all workers, however many were admitted", () => {
    const sent = { ...sentOf(PYTORCH), kindSpec: { elasticPolicy: {} } };
    const scene = new Scene(sent);
    scene.job = { ...scene.job, status: { ...scene.job.status, phase: "WAITING" }, admissions: [] };
    scene.job = applyAdmission(scene.job, plannedOf(scene, "admit", { Master: 1, Worker: 1 }), {
      kinds: OWN_KINDS,
      nowMs: scene.nowMs,
    })!.after;
    runAll(scene);
    assert.equal(variable(scene, "j-worker-0", "PET_NNODES"), "5:5");
  });

  test("an elastic PyTorchJob with a master is warned of the number that torchrun is told", () => {
    const sent = { ...sentOf(PYTORCH), kindSpec: { elasticPolicy: { minReplicas: 2, maxReplicas: 5 } } };
    const [warning] = OWN_KINDS.kindOf("PyTorchJob")?.warn?.(sent) ?? [];
    assert.match(warning?.message ?? "", /PET_NNODES=2:5, .* has 6 nodes with its master/);
    const { Master: _none, ...workers } = sent.replicaSpecs;
    assert.deepEqual(OWN_KINDS.kindOf("PyTorchJob")?.warn?.({ ...sent, replicaSpecs: workers }), []);
    assert.deepEqual(OWN_KINDS.kindOf("PyTorchJob")?.warn?.(sentOf(PYTORCH)), []);
  });
});

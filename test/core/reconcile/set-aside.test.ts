import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { StepNote } from "../../../src/core/blame/step-note.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { nominationOf } from "../../../src/core/job/nomination.ts";
import { bareSpec } from "../../../src/core/job/spec.ts";
import type { JobStatus } from "../../../src/core/job/status.ts";
import { applyAdmission } from "../../../src/core/plan/apply/apply-plan.ts";
import { documentedFacts } from "../../../src/core/plan/model/plan-gang.ts";
import { setAside } from "../../../src/core/reconcile/hold-gang.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { names, pytorch, Scene } from "./scene.ts";
import { CONFIG, jobOf, recorded, START_MS } from "./world.ts";

const DAY_MS = 86_400_000;

function notes(nowMs: number): readonly StepNote[] {
  const made = { jobUid: "job-uid", what: "blocked", plugin: null, alone: true, ended: true } as const;
  return ["w1", "w2"].map((worker) => ({ ...made, worker, atMs: nowMs - 1_000 }));
}

/** The job after its worker has set it aside. */
function aside(job: Job, nowMs: number): Job {
  return recorded(job, setAside(job, notes(nowMs), nowMs) ?? assert.fail("the job is set aside"));
}

function asideScene(scene: Scene): Scene {
  scene.job = aside(scene.job, scene.nowMs);
  return scene;
}

function conditionNamed({ conditions }: JobStatus, type: string) {
  return conditions.find((condition) => condition.type === type);
}

/** The pod vanishes from its cluster. */
function lose({ cluster }: Scene, pod: string): void {
  cluster.things = cluster.things.filter(({ kind, name }) => kind !== "pod" || name !== pod);
}

test("a job that is set aside has the condition, an event, and the reason for which it waits", () => {
  const decision = setAside(jobOf(pytorch()), notes(START_MS), START_MS) ?? assert.fail("it is set aside");
  const { status, events = [] } = decision.record ?? assert.fail("it is recorded");
  assert.equal(conditionNamed(status, "SetAside")?.status, "True");
  assert.equal(conditionNamed(status, "SetAside")?.reason, "BlocksWorkers");
  assert.equal(status.waiting?.reason, "SetAside");
  assert.match(status.waiting?.message ?? "", /gangway resume/);
  assert.deepEqual(
    events.map(({ type, reason }) => [type, reason]),
    [["Warning", "SetAside"]],
  );
  assert.deepEqual(decision.actions, []);
});

test("the notes count once: a job that is set aside is not set aside again", () => {
  assert.equal(setAside(aside(jobOf(pytorch()), START_MS), notes(START_MS), START_MS), null);
});

test("a waiting job that is set aside is not admitted, and what is kept for it passes on", () => {
  const nomination = { generation: 1, cluster: "c1", sinceMs: 0, victims: [] } as never;
  const waiting = jobOf(pytorch());
  const job = aside({ ...waiting, status: { ...waiting.status, nomination } }, START_MS);
  assert.equal(nominationOf(job), null);
  assert.equal(job.status.nomination, undefined);
  const facts = documentedFacts(job);
  assert.equal(facts.suspended, true);
  assert.match(facts.setAside ?? "", /set aside/);
  const planned = { kind: "admit", admission: 1, cluster: "c1", members: { Worker: 1 } } as never;
  assert.equal(applyAdmission(job, planned, { kinds: CONFIG.kinds, nowMs: START_MS }), null);
});

test("a running job that is set aside keeps its pods and tokens, and nothing more is built for it", () => {
  const scene = asideScene(new Scene(pytorch()).start());
  lose(scene, "j-worker-1");
  const decision = scene.step();
  assert.deepEqual(decision.actions, []);
  assert.equal(scene.job.admissions[0]?.state, "live");
  assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null);
  assert.equal(documentedFacts(scene.job).suspended, false, "the planner still knows that it runs");
});

test("its deadline still ends it", () => {
  const scene = asideScene(new Scene(pytorch({ activeDeadlineSeconds: 60 })).start());
  scene.nowMs += 61_000;
  scene.step();
  assert.equal(scene.job.status.phase, "FAILED");
  assert.equal(scene.job.status.failure?.code, "DeadlineExceeded");
});

test("its start timeout still undoes an admission whose pods were not created", () => {
  const scene = asideScene(new Scene(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 30 } })));
  scene.step();
  scene.nowMs += 31_000;
  scene.rest();
  assert.equal(scene.job.status.phase, "WAITING");
  assert.deepEqual(scene.job.admissions, [], "its tokens are free");
});

test("while its cluster is lost it keeps its pods and tokens, and its deadline ends it", () => {
  const scene = asideScene(new Scene(pytorch({ activeDeadlineSeconds: 60 })).start());
  const pods = scene.podNames;
  scene.isLost = true;
  const decision = scene.step();
  assert.deepEqual(decision.actions, []);
  assert.ok(decision.recheckAtMs !== null, "it is looked at again");
  assert.equal(scene.job.admissions[0]?.state, "live");
  assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null);
  scene.nowMs += 61_000;
  scene.step();
  assert.equal(scene.job.status.failure?.code, "DeadlineExceeded");
  assert.deepEqual(scene.podNames, pods, "nothing of it can be deleted there");
  assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null, "tokens follow pods");
  scene.isLost = false;
  scene.rest();
  assert.deepEqual(scene.podNames, []);
  assert.notEqual(scene.job.admissions[0]?.tokensReleasedMs, null);
});

const ends: Readonly<Record<string, { change: (scene: Scene) => void; phase: string }>> = {
  "cancel ends it": {
    change: (scene) => set(scene, { cancel: { reason: "", atMs: scene.nowMs } }),
    phase: "CANCELLED",
  },
  "delete ends it": { change: (scene) => set(scene, { deleteTimeMs: scene.nowMs }), phase: "CANCELLED" },
  "suspend takes it off its cluster": { change: (scene) => scene.change({ suspend: true }), phase: "SUSPENDED" },
  "a preemption takes it off its cluster": { change: evict, phase: "WAITING" },
};

function set(scene: Scene, change: Partial<Job>): void {
  scene.job = { ...scene.job, ...change };
}

function evict(scene: Scene): void {
  const eviction = { admission: 1, reason: "Preempted", message: "for another", preemption: "InClusterQueue" } as const;
  set(scene, { status: { ...scene.job.status, eviction } });
}

for (const [name, { change, phase }] of Object.entries(ends)) {
  test(`${name} as any other job, also if its cluster was lost meanwhile`, () => {
    const scene = asideScene(new Scene(pytorch()).start());
    scene.isLost = true;
    change(scene);
    scene.step();
    assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null);
    scene.isLost = false;
    scene.rest();
    assert.equal(scene.job.status.phase, phase);
    assert.deepEqual(scene.podNames, []);
    assert.ok(scene.job.admissions.every(({ tokensReleasedMs }) => tokensReleasedMs !== null));
  });
}

test("resuming it clears the condition, although it is not suspended, and it goes on", () => {
  const scene = asideScene(new Scene(pytorch()).start());
  lose(scene, "j-worker-1");
  scene.step();
  assert.equal(scene.change({ suspend: false }), "changed");
  assert.equal(scene.job.status.setAside, undefined);
  assert.equal(conditionNamed(scene.job.status, "SetAside")?.status, "False");
  assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-1"]);
});

test("notes from before it was resumed do not set it aside again", () => {
  const scene = asideScene(new Scene(pytorch()).start());
  const old = notes(scene.nowMs);
  scene.change({ suspend: false });
  assert.equal(setAside(scene.job, old, scene.nowMs), null);
});

test("after three times within a day only who may reinstate it resumes it", () => {
  const scene = new Scene(pytorch()).start();
  const outcomes = Array.from({ length: 4 }, () => {
    scene.nowMs += 3_600_000;
    return asideScene(scene).change({ suspend: false });
  });
  assert.deepEqual(outcomes, ["changed", "changed", "changed", "resumedTooOften"]);
  assert.equal(scene.change({ suspend: false, mayReinstate: true }), "changed");
  scene.nowMs += DAY_MS;
  assert.equal(asideScene(scene).change({ suspend: false }), "changed", "a day later everyone may again");
});

/** What may happen to a job and its pods between two steps. */
const happening = fc.oneof(
  fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 400_000 }) }),
  fc.record({
    kind: fc.constant("pod" as const),
    at: fc.nat(5),
    phase: fc.constantFrom("Running", "Succeeded", "Failed", "Pending"),
    exitCode: fc.constantFrom(0, 1, 137),
  }),
  fc.record({ kind: fc.constant("lose" as const), at: fc.nat(5) }),
  fc.record({ kind: fc.constant("cluster" as const), isLost: fc.boolean() }),
  fc.record({ kind: fc.constantFrom("cancel" as const, "delete" as const, "suspend" as const, "evict" as const) }),
);

test("law: no step of a job that is set aside depends on its templates, or builds anything", () => {
  const policy = fc.constantFrom("OnFailure" as const, "Never" as const, "ExitCode" as const);
  fc.assert(
    fc.property(policy, fc.boolean(), fc.array(happening, { maxLength: 25 }), (restarts, starts, happenings) => {
      const limits = { activeDeadlineSeconds: 900, ttlSecondsAfterFinished: 60 };
      const scene = new Scene(pytorch({ ...limits, schedulingPolicy: { scheduleTimeoutSeconds: 300 } }, restarts));
      if (starts) scene.start();
      asideScene(scene);
      for (const one of happenings) {
        happen(scene, one);
        const observed = scene.observe();
        const whole = reconcile(scene.job, observed, scene.nowMs, CONFIG);
        const bare = reconcile({ ...scene.job, spec: bareSpec(scene.job.spec) }, observed, scene.nowMs, CONFIG);
        assert.deepEqual(bare, whole);
        assert.deepEqual(
          whole.actions.filter(({ kind }) => kind.startsWith("create") || kind.startsWith("update")),
          [],
        );
        scene.step();
        scene.cluster.collect();
      }
    }),
  );
});

function happen(scene: Scene, one: typeof happening extends fc.Arbitrary<infer T> ? T : never): void {
  switch (one.kind) {
    case "pass":
      scene.nowMs += one.ms;
      return;
    case "pod": {
      const name = scene.podNames[one.at];
      if (name !== undefined) scene.set(name, one.phase, { exitCode: one.exitCode });
      return;
    }
    case "lose": {
      const name = scene.podNames[one.at];
      if (name !== undefined) lose(scene, name);
      return;
    }
    case "cluster":
      scene.isLost = one.isLost;
      return;
    case "suspend":
      scene.change({ suspend: true });
      return;
    case "evict":
      evict(scene);
      return;
    case "cancel":
      set(scene, { cancel: { reason: "", atMs: scene.nowMs } });
      return;
    case "delete":
      set(scene, { deleteTimeMs: scene.nowMs });
  }
}

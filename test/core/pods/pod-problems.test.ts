import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { LABEL } from "../../../src/core/job/labels.ts";
import { groupProblems, nextProblems, problemsText, type SeenProblem } from "../../../src/core/job/pod-problems.ts";
import type { PodProblems } from "../../../src/core/job/status.ts";
import type { RefusedCreate } from "../../../src/core/reconcile/decision-draft.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { objectAt } from "../../../src/runtime/json.ts";
import { names, pytorch, Scene } from "../reconcile/scene.ts";
import { CONFIG, recorded, START_MS } from "../reconcile/world.ts";

const seen = (of: Partial<SeenProblem> = {}): SeenProblem => ({
  replicaType: "Worker",
  pods: 2,
  reason: "Unschedulable",
  message: "0/5 nodes are available",
  ...of,
});

describe("problems of one gang", () => {
  test("are grouped by replica type and reason, those of the most pods first, with the words of the first pod", () => {
    const each = [
      seen({ replicaType: "Master", reason: "ImagePullBackOff", message: "m" }),
      seen({ message: "first" }),
      seen({ message: "second" }),
    ];
    assert.deepEqual(groupProblems(each), [
      seen({ pods: 2, message: "first" }),
      seen({ replicaType: "Master", pods: 1, reason: "ImagePullBackOff", message: "m" }),
    ]);
  });

  test("are at most eight, of at most 500 characters each", () => {
    const each = Array.from({ length: 20 }, (_, at) => seen({ reason: `R${at}`, message: "😀".repeat(1_000) }));
    const grouped = groupProblems(each);
    assert.equal(grouped.length, 8);
    for (const { message } of grouped) assert.ok(message.length <= 500 && message.isWellFormed());
  });

  const texts: Record<string, { readonly problems: readonly SeenProblem[]; readonly says: string }> = {
    "one pod": { problems: [seen({ pods: 1, message: "no." })], says: "1 Worker pod does not run: Unschedulable (no)" },
    "two types with the same words": {
      problems: [seen(), seen({ replicaType: "Master", pods: 1 })],
      says: "2 Worker and 1 Master pods do not run: Unschedulable (0/5 nodes are available)",
    },
    "two types with one pod each": {
      problems: [seen({ pods: 1 }), seen({ replicaType: "Master", pods: 1 })],
      says: "1 Worker and 1 Master pods do not run: Unschedulable (0/5 nodes are available)",
    },
    "two reasons": {
      problems: ["A", "B"].map((reason) => seen({ reason, message: "" })),
      says: "2 Worker pods do not run: A; 2 Worker pods do not run: B",
    },
    "more than two": {
      problems: ["A", "B", "C", "D"].map((reason) => seen({ reason, message: "" })),
      says: "2 Worker pods do not run: A; 2 Worker pods do not run: B; and 2 more",
    },
    none: { problems: [], says: "" },
  };
  for (const [name, { problems, says }] of Object.entries(texts)) {
    test(`in words: ${name}`, () => assert.equal(problemsText(problems), says));
  }
});

describe("what is recorded", () => {
  const known: PodProblems = { atMs: START_MS, problems: [{ ...seen(), sinceMs: START_MS }] };
  const next = (of: {
    known?: PodProblems | undefined;
    seen: readonly SeenProblem[];
    inMs?: number;
    writes?: boolean;
  }) =>
    nextProblems("known" in of ? of.known : known, of.seen, {
      nowMs: START_MS + (of.inMs ?? 0),
      writesAnyway: () => of.writes ?? false,
    });
  const other = { ...seen({ message: "0/6 nodes are available" }), sinceMs: START_MS };

  const cases: Record<string, { readonly of: Parameters<typeof next>[0]; readonly is: ReturnType<typeof next> }> = {
    "the first problem at once": {
      of: { known: undefined, seen: [seen()], inMs: 7 },
      is: { next: { atMs: START_MS + 7, problems: [{ ...seen(), sinceMs: START_MS + 7 }] }, rewordAtMs: null },
    },
    "nothing while nothing changes": { of: { seen: [seen()], inMs: 99_999 }, is: { next: known, rewordAtMs: null } },
    "no problem at once": { of: { seen: [] }, is: { next: undefined, rewordAtMs: null } },
    "another reason at once, and since when each holds": {
      of: { seen: [seen(), seen({ reason: "ImagePullBackOff" })], inMs: 1 },
      is: {
        next: {
          atMs: START_MS + 1,
          problems: [
            { ...seen(), sinceMs: START_MS },
            { ...seen({ reason: "ImagePullBackOff" }), sinceMs: START_MS + 1 },
          ],
        },
        rewordAtMs: null,
      },
    },
    "other words later": { of: { seen: [other], inMs: 1_999 }, is: { next: known, rewordAtMs: START_MS + 2_000 } },
    "other words after 2 s": {
      of: { seen: [seen({ message: other.message })], inMs: 2_000 },
      is: { next: { atMs: START_MS + 2_000, problems: [other] }, rewordAtMs: null },
    },
    "other words with a record that is written anyway": {
      of: { seen: [seen({ message: other.message })], inMs: 1, writes: true },
      is: { next: { atMs: START_MS + 1, problems: [other] }, rewordAtMs: null },
    },
    "another count later": {
      of: { seen: [seen({ pods: 1 })], inMs: 1 },
      is: { next: known, rewordAtMs: START_MS + 2_000 },
    },
  };
  for (const [name, { of, is }] of Object.entries(cases)) test(name, () => assert.deepEqual(next(of), is));

  const master = { replicaType: "Master", message: "other words" };
  const both: PodProblems = {
    atMs: START_MS + 5_000,
    problems: [
      { ...seen(), sinceMs: START_MS + 4_000 },
      { ...seen(master), sinceMs: START_MS },
    ],
  };
  const ofTwo: Record<string, { readonly seen: readonly SeenProblem[]; readonly isWritten: boolean }> = {
    "nothing while two problems stay": { seen: [seen(), seen(master)], isWritten: false },
    "nothing while their order changes": { seen: [seen(master), seen()], isWritten: false },
    "other words of one of two later": { seen: [seen({ message: "new" }), seen(master)], isWritten: false },
    "words that two problems exchange later": {
      seen: [seen({ message: master.message }), seen({ ...master, message: seen().message })],
      isWritten: false,
    },
    "the end of one of two at once": { seen: [seen()], isWritten: true },
    "another reason for one of two at once": { seen: [seen(), seen({ ...master, reason: "B" })], isWritten: true },
    "a third problem at once": { seen: [seen(), seen(master), seen({ reason: "B" })], isWritten: true },
  };
  for (const [name, of] of Object.entries(ofTwo)) {
    test(name, () => {
      const { next: recorded, rewordAtMs } = next({ known: both, seen: of.seen, inMs: 5_001 });
      assert.equal(recorded !== both, of.isWritten);
      // The newest problem is 1 s old in the record, so that the words may change 2 s after it.
      const awaits = !of.isWritten && name.includes("later");
      assert.equal(rewordAtMs, awaits ? START_MS + 7_000 : null);
    });
  }

  test("words that change all the time are recorded ever less often, at last once a minute", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 997 }), (everyMs) => {
        let now: PodProblems | undefined;
        const writtenS: number[] = [];
        for (let atMs = START_MS, count = 0; atMs < START_MS + 600_000; atMs += everyMs, count += 1) {
          const { next } = nextProblems(now, [seen({ message: `0/${count} nodes` })], {
            nowMs: atMs,
            writesAnyway: () => false,
          });
          if (next !== now) writtenS.push((atMs - START_MS) / 1000);
          now = next;
        }
        assert.ok(writtenS.length <= 16, `${writtenS}`);
        const last = writtenS.at(-1) ?? 0;
        assert.ok(last > 530, `the last words are ${600 - last} s old`);
      }),
      { numRuns: 20 },
    );
  });
});

describe("a gang that does not start", () => {
  const refused = (of: Partial<RefusedCreate> = {}): RefusedCreate => ({
    admission: 1,
    name: "j-worker-0",
    attempt: 1,
    reason: "FailedCreatePod",
    message: 'serviceaccount "robot" not found',
    code: null,
    ...of,
  });
  const decide = (scene: Scene, known: RefusedCreate | null = null) => {
    const observed = [scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })];
    const decision = reconcile(scene.job, observed, scene.nowMs, CONFIG, { refused: known });
    scene.job = recorded(scene.job, decision);
    return decision;
  };
  const problems = ({ job }: Scene) =>
    job.status.podProblems?.problems.map(({ replicaType, pods, reason }) => `${pods} ${replicaType} ${reason}`);

  test("says what its scheduler says, until the pods run", () => {
    const scene = new Scene(pytorch());
    scene.step();
    for (const name of ["j-master-0", "j-worker-0", "j-worker-1"]) scene.refuse(name, "0/5 nodes are available");
    scene.step();
    assert.deepEqual(problems(scene), ["2 Worker Unschedulable", "1 Master Unschedulable"]);
    assert.deepEqual(scene.job.status.pods?.facts?.["Worker/1"], { reason: "Unschedulable" });
    scene.set("j-master-0", "Running");
    scene.set("j-worker-1", "Running");
    scene.step();
    assert.deepEqual(problems(scene), ["1 Worker Unschedulable"]);
    scene.set("j-worker-0", "Running");
    scene.step();
    assert.equal(problems(scene), undefined);
    assert.deepEqual(scene.job.status.pods?.facts?.["Worker/0"], { ready: true });
  });

  test("is recorded once while the numbers of the scheduler move", () => {
    const scene = new Scene(pytorch());
    scene.step();
    scene.refuse("j-master-0", "0/5 nodes are available");
    for (const name of ["j-worker-0", "j-worker-1"]) scene.set(name, "Running");
    scene.step();
    scene.refuse("j-master-0", "0/6 nodes are available");
    const moved = scene.step();
    assert.equal(moved.record, null);
    assert.equal(moved.recheckAtMs, scene.nowMs + 2_000);
    scene.nowMs += 2_000;
    assert.equal(scene.step().record?.status.podProblems?.problems[0]?.message, "0/6 nodes are available");
    assert.equal(scene.step().record, null);
  });

  test("counts the pods anew with every record that is written anyway", () => {
    const scene = new Scene(pytorch());
    scene.step();
    for (const name of ["j-master-0", "j-worker-0", "j-worker-1"]) scene.refuse(name, "no room");
    scene.step();
    scene.refuse("j-worker-1", "no room at all");
    scene.set("j-worker-0", "Running");
    scene.step();
    assert.deepEqual(problems(scene), ["1 Master Unschedulable", "1 Worker Unschedulable"]);
    assert.equal(scene.job.status.podProblems?.problems[1]?.message, "no room at all");
  });

  test("says why the API server refuses its pods, until they exist", () => {
    const scene = new Scene(pytorch());
    decide(scene);
    decide(scene, refused());
    assert.deepEqual(problems(scene), ["2 Worker FailedCreatePod", "1 Master FailedCreatePod"]);
    assert.equal(decide(scene).record, null, "a worker that took over knows of no refusal, and changes nothing");
    scene.step();
    assert.deepEqual(problems(scene), ["2 Worker FailedCreatePod", "1 Master FailedCreatePod"]);
    scene.step();
    assert.equal(problems(scene), undefined);
  });

  test("says that its anchor is refused, as the problem of every pod", () => {
    const scene = new Scene(pytorch());
    decide(scene, refused({ name: "j-admission-1", attempt: 0, reason: "FailedCreateAnchor" }));
    assert.deepEqual(problems(scene), ["2 Worker FailedCreateAnchor", "1 Master FailedCreateAnchor"]);
  });

  test("does not care about refusals of an earlier admission", () => {
    const scene = new Scene(pytorch());
    decide(scene, refused({ admission: 7 }));
    assert.equal(problems(scene), undefined);
  });

  const remove = (scene: Scene, name: string) => {
    scene.cluster.things = scene.cluster.things.filter((one) => one.kind !== "pod" || one.name !== name);
  };
  /** A gang of which one worker has failed and waits for its next attempt. */
  const backingOff = () => {
    const scene = new Scene(pytorch()).start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.step();
    scene.cluster.collect();
    return scene;
  };

  test("has no problem while a failed pod only waits for its next attempt", () => {
    const scene = backingOff();
    decide(scene, refused());
    assert.equal(problems(scene), undefined);
    assert.ok(!("podProblems" in scene.job.status));
  });

  test("has no problem while a failed pod waits and others are deleted", () => {
    const scene = backingOff();
    const [master] = scene.cluster.pods();
    assert.ok(master);
    const labels = { ...objectAt(objectAt(master.json, "metadata"), "labels"), [LABEL.replicaIndex]: "7" };
    const json = { ...master.json, metadata: { ...objectAt(master.json, "metadata"), name: "j-master-7", labels } };
    scene.cluster.things = [...scene.cluster.things, { ...master, name: "j-master-7", uid: "stray", json }];
    assert.deepEqual(names(decide(scene, refused()), "deletePod"), ["j-master-7"]);
    assert.equal(problems(scene), undefined);
  });

  test("names only the pods that are to be created now", () => {
    const scene = backingOff();
    remove(scene, "j-worker-1");
    decide(scene, refused({ name: "j-worker-1" }));
    assert.deepEqual(problems(scene), ["1 Worker FailedCreatePod"]);
    assert.deepEqual(
      Object.keys(scene.job.status.pods?.phases ?? {}),
      ["Master/0"],
      "both workers are missing, and one of them on purpose",
    );
  });

  test("is looked at again when its scheduler has been silent for too long", () => {
    const scene = new Scene(pytorch());
    scene.step();
    assert.equal(scene.step().recheckAtMs, START_MS + 10_000);
    scene.nowMs += 10_000;
    scene.step();
    assert.deepEqual(problems(scene), ["2 Worker NotScheduled", "1 Master NotScheduled"]);
  });

  test("says that its gang scheduler does not admit it, after 10 s", () => {
    const scene = new Scene(pytorch());
    scene.cluster.scheduler = "volcano";
    scene.step();
    const setPhase = (phase: string) => {
      const group = scene.cluster.things.find(({ kind }) => kind === "podGroup");
      assert.ok(group);
      scene.cluster.change(group, { json: { ...group.json, status: { phase } } });
    };
    setPhase("Pending");
    scene.nowMs += 9_999;
    assert.equal(scene.step().recheckAtMs, START_MS + 10_000);
    assert.equal(problems(scene), undefined);
    scene.nowMs += 1;
    scene.step();
    assert.deepEqual(problems(scene), ["2 Worker PodGroupPending", "1 Master PodGroupPending"]);
    assert.equal(
      scene.job.status.podProblems?.problems[0]?.message,
      "the scheduler volcano has not admitted the gang: its PodGroup is Pending",
    );
    setPhase("Inqueue");
    scene.step();
    assert.equal(problems(scene), undefined);
  });

  test("has no such problem while its PodGroup does not exist", () => {
    const scene = new Scene(pytorch());
    scene.cluster.scheduler = "volcano";
    scene.nowMs += 60_000;
    assert.deepEqual(names(decide(scene), "createPodGroup"), ["j"]);
    assert.equal(problems(scene), undefined);
  });

  for (const [name, end] of Object.entries({
    cancelled: (scene: Scene) => ({ ...scene.job, cancel: { reason: "", atMs: scene.nowMs } }),
    suspended: ({ job }: Scene) => {
      const runPolicy = { ...job.spec.runPolicy, suspend: true };
      return { ...job, spec: { ...job.spec, runPolicy } };
    },
  })) {
    test(`has no problem once the job is ${name}`, () => {
      const scene = new Scene(pytorch());
      scene.step();
      scene.refuse("j-worker-0", "no room");
      scene.step();
      assert.deepEqual(problems(scene), ["1 Worker Unschedulable"]);
      scene.job = end(scene);
      scene.step();
      assert.equal(problems(scene), undefined);
    });
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { admitted } from "../../../../src/core/job/admission/admitted.ts";
import type { Job } from "../../../../src/core/job/job.ts";
import { nominationOf } from "../../../../src/core/job/nomination.ts";
import { applyCancel, applyDelete } from "../../../../src/core/job/request/create-and-end.ts";
import { changeJob } from "../../../../src/core/kinds/change-job.ts";
import { applyPreemption, applyWithdrawal } from "../../../../src/core/plan/apply/apply-preemption.ts";
import { documentedFacts } from "../../../../src/core/plan/model/plan-gang.ts";
import { isLeft, type PlannedPreemption, type PlannedVictim } from "../../../../src/core/plan/model/preemption.ts";
import { preemptingMessage } from "../../../../src/core/plan/model/preemption-messages.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";
import { admission, job, NOW } from "../plan-world.ts";

const roles = { Worker: { replicas: 2, gpus: 8 } };
const flavors = { "nvidia.com/gpu": "gpu/h100" };
const members = { Worker: 2 };

const nominee = job({ name: "a", roles });
const running = (name: string, parts: Partial<Job> = {}) => {
  const made = job({ name, roles, admissions: [admission({ cluster: "west", number: 3, members, flavors })] });
  return { ...made, ...parts };
};

const victim = (name: string, parts: Partial<PlannedVictim> = {}): PlannedVictim => ({
  jobUid: `uid-${name}`,
  queue: "b",
  admission: 3,
  members,
  reason: "InCohortReclamation",
  ...parts,
});

function preemption(victims: readonly PlannedVictim[]): PlannedPreemption {
  const names = { jobUid: nominee.uid, askHash: "", generation: 7, admission: 1, cluster: "east" };
  const planned = { kind: "admit", ...names, admissionCounter: 0, members, flavors, flavorLabels: {} } as const;
  return { planned: { ...planned, allocations: [] }, victims };
}

const byUid = (jobs: readonly Job[]) => new Map(jobs.map((one) => [one.uid, one]));

function apply(jobs: readonly Job[], victims: readonly PlannedVictim[]) {
  return applyPreemption(byUid(jobs), preemption(victims), NOW);
}

const nominated = (): Job => {
  const applied = apply([nominee, running("b")], [victim("b")]);
  assert.ok(applied?.changes[0]);
  return applied.changes[0].after;
};

test("a nominee records what it waits for, and its victims are to be undone for it", () => {
  const applied = apply(
    [nominee, running("b"), running("c")],
    [victim("b"), victim("c", { reason: "InClusterQueue" })],
  );
  assert.deepEqual(
    applied?.evicted.map(({ jobUid }) => jobUid),
    ["uid-b", "uid-c"],
  );
  const [first, b, c] = applied?.changes ?? [];
  const victims = [
    { jobUid: "uid-b", admission: 3 },
    { jobUid: "uid-c", admission: 3 },
  ];
  const nomination = { cluster: "east", flavors, members, generation: 8, victims, sinceMs: NOW };
  assert.deepEqual(first?.after.status.nomination, nomination);
  assert.deepEqual(documentedFacts(first.after).nomination, nomination);
  const message =
    "it is nominated for cluster east, and waits until the gangs that are preempted for it have ended: ml/b, ml/c";
  assert.deepEqual(first.after.status.waiting, { reason: "Preempting", message, sinceMs: NOW });
  assert.deepEqual(first.events, [{ type: "Normal", reason: "Preempting", message }]);
  assert.equal(first.after.version, nominee.version + 1);
  assert.deepEqual(b?.after.status.eviction, {
    admission: 3,
    reason: "Preempted",
    message: "it was preempted for ml/a, whose queue takes back its own quota",
    preemption: "InCohortReclamation",
  });
  assert.equal(c?.after.status.eviction?.preemption, "InClusterQueue");
  assert.deepEqual(
    applied?.changes.map(({ before, after, events }) => [before.name, after.version - before.version, events.length]),
    [
      ["a", 1, 1],
      ["b", 1, 0],
      ["c", 1, 0],
    ],
  );
});

const ending: Record<string, Partial<Job>> = {
  "is being cancelled": { cancel: { reason: "", atMs: 1 } },
  "is being deleted": { deleteTimeMs: 1 },
  "is suspended": { spec: { ...nominee.spec, runPolicy: { ...nominee.spec.runPolicy, suspend: true } } },
  "has ended": { status: { ...nominee.status, phase: "SUCCEEDED" } },
};

for (const [how, parts] of Object.entries(ending)) {
  test(`nothing is recorded if the nominee ${how}`, () => {
    assert.equal(apply([{ ...nominee, ...parts }, running("b")], [victim("b")]), null);
  });
  test(`nothing is recorded if a victim ${how}`, () => {
    const jobs = [nominee, running("b"), running("c", parts)];
    assert.equal(apply(jobs, [victim("b"), victim("c")]), null);
    assert.notEqual(apply(jobs, [victim("b")]), null);
  });
}

test("nothing is recorded if a job is gone, or a victim has another admission or other members", () => {
  assert.equal(apply([running("b")], [victim("b")]), null);
  assert.equal(apply([nominee], [victim("b")]), null);
  assert.equal(apply([nominee, running("b")], [victim("b", { admission: 2 })]), null);
  assert.equal(apply([nominee, running("b")], [victim("b", { members: { Worker: 1 } })]), null);
  assert.equal(apply([nominee, running("b", { admissions: [] })], [victim("b")]), null);
});

test("no plan may preempt for a job without pods", () => {
  const { planned } = preemption([]);
  const jobs = byUid([nominee]);
  const plan = { planned: { ...planned, cluster: null }, victims: [] };
  assert.throws(() => applyPreemption(jobs, plan, NOW), /a job without pods preempts no gang/);
});

test("a victim that is to be undone already is waited for, and its request stays", () => {
  const evicted = apply([nominee, running("b")], [victim("b")])?.changes[1]?.after;
  assert.ok(evicted);
  const applied = apply([nominee, evicted], [victim("b")]);
  assert.deepEqual([applied?.changes.length, applied?.evicted], [1, []]);
  assert.equal(applied?.changes[0]?.after.status.nomination?.victims.length, 1);
});

const changes: Record<string, (job: Job) => Job> = {
  "is admitted": (one) => ({ ...one, status: admitted(one, admission({ cluster: "east" }), NOW).status }),
  "is cancelled": (one) => applyCancel(one, { reason: "", nowMs: NOW }).job,
  "is deleted": (one) => applyDelete(one, NOW).job,
  "changes its priority": (one) => changed(one, { priority: one.spec.priority + 1 }),
  "changes its size": (one) => changed(one, { replicas: { Worker: 1 } }),
  "is to be suspended": (one) => changed(one, { suspend: true }),
  "is given up": (one) => applyWithdrawal(one, NOW)?.after ?? one,
};

function changed(one: Job, wanted: object): Job {
  const kind = OWN_KINDS.kindOf(one.spec.kind);
  assert.ok(kind);
  const decided = changeJob(one, kind, { version: null, ...wanted }, NOW);
  assert.ok(decided.kind === "changed", decided.kind);
  return decided.job;
}

for (const [how, change] of Object.entries(changes)) {
  test(`a nomination ends when its job ${how}`, () => {
    assert.equal(change(nominated()).status.nomination, undefined);
  });
}

test("new labels leave a nomination as it is", () => {
  const before = nominated();
  assert.deepEqual(changed(before, { labels: { team: "x" } }).status.nomination, before.status.nomination);
});

test("a nomination that an older program has left in a job that does not wait does not count", () => {
  const left = { ...nominated(), status: { ...nominated().status, phase: "RUNNING" as const } };
  assert.deepEqual([nominationOf(left), "nomination" in documentedFacts(left)], [null, false]);
});

test("a nomination is given up once, and the job says that it is to be looked at again", () => {
  const applied = applyWithdrawal(nominated(), NOW + 1);
  const message = "it is no longer nominated for cluster east; the planner is about to look at it again";
  assert.deepEqual(applied?.after.status.waiting, { reason: "NotEvaluated", message, sinceMs: NOW + 1 });
  assert.equal(applied.after.version, applied.before.version + 1);
  assert.deepEqual(applied.events, [{ type: "Normal", reason: "PreemptionWithdrawn", message }]);
  assert.equal(applyWithdrawal(applied.after, NOW + 2), null);
});

test("victims, and a nominee whose place another gang takes, record the digest of their tree", () => {
  const passing = job({ name: "p", roles });
  const { planned } = preemption([]);
  const applied = applyPreemption(
    byUid([passing, nominated(), running("c")]),
    {
      planned: { ...planned, jobUid: passing.uid },
      victims: [victim("c", { treeDigest: "tree" })],
      takesOver: [{ jobUid: nominee.uid, admission: 1, treeDigest: "tree", victims: [] }],
    },
    NOW,
  );
  assert.deepEqual(
    applied?.changes.map(({ after }) => [after.name, nominationOf(after) !== null, after.status.preemptedIn]),
    [
      ["p", true, undefined],
      ["a", false, "tree"],
      ["c", false, "tree"],
    ],
  );
  assert.equal(documentedFacts(applied.changes[1]?.after as Job).preemptedIn, "tree");
});

test("a message names at most five victims", () => {
  const words = preemptingMessage(
    "east",
    ["a", "b", "c", "d", "e", "f", "g"].map((name) => `ml/${name}`),
  );
  assert.match(words, /have ended: ml\/a, ml\/b, ml\/c, ml\/d, ml\/e and 2 more$/);
  const five = ["a", "b", "c", "d", "e"].map((name) => `ml/${name}`);
  assert.match(preemptingMessage("east", five), /have ended: ml\/a, ml\/b, ml\/c, ml\/d, ml\/e$/);
  assert.equal(preemptingMessage("east", []), "it is nominated for cluster east, and waits for no other gang any more");
});

test("an elastic victim is to give up members, and is not preempted", () => {
  const applied = apply([nominee, running("b")], [victim("b", { keeps: { Worker: 1 } })]);
  const [first, b] = applied?.changes ?? [];
  assert.deepEqual(applied?.evicted, []);
  assert.deepEqual(first?.after.status.nomination?.victims, [{ jobUid: "uid-b", admission: 3, keeps: { Worker: 1 } }]);
  assert.match(first.after.status.waiting?.message ?? "", /have ended: 1 member of ml\/b$/);
  assert.deepEqual(b?.after.status.shrink, { admission: 3, keeps: { Worker: 1 } });
  assert.deepEqual([b.after.status.eviction, b.after.status.resizedMs], [undefined, NOW]);
  const message = "Admission 3 gives up 1 member(s) for ml/a, whose queue takes back its own quota; it keeps 1.";
  assert.deepEqual(b.events, [{ type: "Normal", reason: "GivesUpMembers", message }]);
  assert.deepEqual(documentedFacts(b.after).shrinksTo, { Worker: 1 });
});

const tooLate: Record<string, Partial<Job>> = {
  "that ends": { cancel: { reason: "", atMs: NOW } },
  "that gives up members already": {
    status: { ...running("b").status, shrink: { admission: 3, keeps: { Worker: 1 } } },
  },
  "whose admission is no longer live": { admissions: [] },
};
for (const [name, parts] of Object.entries(tooLate)) {
  test(`nothing is recorded for members of a gang ${name}`, () => {
    assert.equal(apply([nominee, running("b", parts)], [victim("b", { keeps: { Worker: 1 } })]), null);
  });
}

test("a nominee waits for a victim that keeps members until it has given up the others", () => {
  const admissionsOf = (count: number) => [
    admission({ cluster: "west", number: 3, members: { Worker: count }, flavors }),
  ];
  const named = { jobUid: "uid-b", admission: 3, keeps: { Worker: 1 } };
  assert.equal(isLeft({ admissions: admissionsOf(2) }, named), true);
  assert.equal(isLeft({ admissions: admissionsOf(1) }, named), false);
  const undone = admissionsOf(1).map((one) => ({ ...one, state: "undone" as const }));
  assert.equal(isLeft({ admissions: undone }, named), true, "its pods may still run");
  assert.equal(isLeft({ admissions: [] }, named), false);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../src/core/job/job.ts";
import type { TopologyWish } from "../../../src/core/job/placement/topology-wish.ts";
import type { SentRunPolicy } from "../../../src/core/job/request/sent.ts";
import { changeJob, type WantedChange } from "../../../src/core/kinds/change-job.ts";
import { podKind } from "../../../src/core/kinds/plugin.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { kindsWith } from "../../support/kinds.ts";
import { admit, jobOf, START_MS, template } from "../reconcile/world.ts";

const NOW_MS = START_MS + 5_000;

type Sent = {
  readonly kind?: string;
  readonly replicas?: Readonly<Record<string, number>>;
  readonly kindSpec?: JsonObject;
  readonly runPolicy?: SentRunPolicy;
  /** The wish of its workers. */
  readonly topology?: TopologyWish;
};

/** A PyTorchJob with a master and two workers, unless its parts say otherwise. */
function waiting({
  kind = "PyTorchJob",
  replicas = { Master: 1, Worker: 2 },
  kindSpec = {},
  runPolicy = {},
  topology,
}: Sent = {}) {
  const specs = Object.entries(replicas).map(([role, count]) => [
    role,
    { replicas: count, template: template("pytorch"), ...(topology && role === "Worker" && { topology }) },
  ]);
  const made = jobOf({ kind, replicaSpecs: Object.fromEntries(specs), kindSpec, runPolicy, priority: 3 });
  return { ...made, labels: { team: "ml" } };
}

const running = (sent?: Sent): Job => admit(waiting(sent), { cluster: "c1", nowMs: START_MS, number: 1 });

const elastic: Sent = {
  replicas: { Worker: 2 },
  kindSpec: { elasticPolicy: { minReplicas: 2, maxReplicas: 4 } },
  runPolicy: { schedulingPolicy: { minAvailable: 2 } },
};
const sliced: Sent = { ...elastic, topology: { slices: [{ level: "rack", size: 2 }] } };
const dynamic: Sent = { kind: "TFJob", replicas: { Worker: 2 }, kindSpec: { enableDynamicWorker: true } };

function decide(job: Job, wanted: Partial<WantedChange>) {
  const kind = kindsWith().kindOf(job.spec.kind)!;
  return changeJob(job, kind, { version: null, ...wanted }, NOW_MS);
}

const changed: Record<
  string,
  { job: Job; wanted: Partial<WantedChange>; says: string; is: JsonObject; resized?: boolean }
> = {
  "a priority": { job: waiting(), wanted: { priority: 0 }, says: "priority from 3 to 0", is: { priority: 0 } },
  labels: { job: waiting(), wanted: { labels: {} }, says: "labels", is: { labels: {} } },
  "a suspension": { job: waiting(), wanted: { suspend: true }, says: "to be suspended", is: { suspend: true } },
  "an end of a suspension": {
    job: waiting({ runPolicy: { suspend: true } }),
    wanted: { suspend: false },
    says: "to be resumed",
    is: { suspend: false },
  },
  "several members at once, of the expected version": {
    job: waiting(),
    wanted: { version: 1, replicas: { worker: 5 }, priority: 9, suspend: true, labels: { a: "b" } },
    says: "replicas of Worker from 2 to 5, priority from 3 to 9, to be suspended, labels",
    is: { Worker: 5, minAvailable: 6, priority: 9, suspend: true, labels: { a: "b" } },
  },
  "replicas of a waiting job, whose minimum was below all": {
    job: waiting({ runPolicy: { schedulingPolicy: { minAvailable: 2 } } }),
    wanted: { replicas: { Worker: 5 } },
    says: "replicas of Worker from 2 to 5",
    is: { Worker: 5, minAvailable: 2 },
  },
  "replicas below the minimum, which goes down with them": {
    job: waiting({ runPolicy: { schedulingPolicy: { minAvailable: 2 } } }),
    wanted: { replicas: { Worker: 0 } },
    says: "replicas of Worker from 2 to 0",
    is: { Worker: 0, minAvailable: 1 },
  },
  "replicas of a waiting job, by whole slices": {
    job: waiting(sliced),
    wanted: { replicas: { Worker: 4 } },
    says: "replicas of Worker from 2 to 4",
    is: { Worker: 4, minAvailable: 4 },
  },
  "replicas of an admitted gang, whose minimum stays": {
    job: running(elastic),
    wanted: { replicas: { Worker: 4 } },
    says: "replicas of Worker from 2 to 4",
    is: { Worker: 4, minAvailable: 2 },
    resized: true,
  },
  "replicas of an admitted gang without a maximum, to the minimum of its kind": {
    job: running(dynamic),
    wanted: { replicas: { Worker: 1 } },
    says: "replicas of Worker from 2 to 1",
    is: { Worker: 1, minAvailable: 1 },
    resized: true,
  },
  "replicas of a waiting elastic gang, beyond its bounds while it is admitted": {
    job: waiting({ ...dynamic, kindSpec: {} }),
    wanted: { replicas: { Worker: 9 } },
    says: "replicas of Worker from 2 to 9",
    is: { Worker: 9, minAvailable: 9 },
  },
  "the priority of an admitted gang of a kind without elastic replica types": {
    job: running({ kind: "Job" }),
    wanted: { priority: 4 },
    says: "priority from 3 to 4",
    is: { priority: 4 },
  },
};
for (const [name, { job, wanted, says, is, resized = false }] of Object.entries(changed)) {
  test(`a change of ${name}`, () => {
    const decision = decide(job, wanted);
    assert.ok(decision.kind === "changed", JSON.stringify(decision));
    const { spec, labels, status, version } = decision.job;
    const { minAvailable } = spec.runPolicy.schedulingPolicy;
    const counts = Object.fromEntries(
      Object.entries(spec.replicaSpecs).map(([role, { replicas }]) => [role, replicas]),
    );
    const all = { ...counts, minAvailable, priority: spec.priority, suspend: spec.runPolicy.suspend, labels };
    const before = job.spec.runPolicy.schedulingPolicy.minAvailable;
    const was = Object.fromEntries(Object.entries(job.spec.replicaSpecs).map(([role, one]) => [role, one.replicas]));
    const unchanged = { ...was, minAvailable: before, priority: 3, suspend: false, labels: { team: "ml" } };
    assert.deepEqual(all, { ...unchanged, ...is });
    assert.equal(version, job.version + 1);
    assert.equal(status.resizedMs, resized ? NOW_MS : undefined);
    const event = { type: "Normal", reason: `${job.spec.kind}Updated`, message: `Changed: ${says}.` };
    assert.deepEqual(decision.event, event);
  });
}

const WHILE = "while the job is admitted: these are the bounds of its elastic policy";
const ended = (job: Job): Job => ({ ...job, status: { ...job.status, phase: "FAILED" } });

const others: Record<string, { job: Job; wanted: Partial<WantedChange>; kind: string; says?: readonly string[] }> = {
  nothing: { job: waiting(), wanted: {}, kind: "unchanged" },
  "what is so already": {
    job: waiting(),
    wanted: { priority: 3, suspend: false, labels: { team: "ml" }, replicas: { Worker: 2 } },
    kind: "unchanged",
  },
  "the size of an admitted gang to what it is": {
    job: running(),
    wanted: { replicas: { Worker: 2 } },
    kind: "unchanged",
  },
  "a job that has ended": { job: ended(waiting()), wanted: { priority: 4 }, kind: "terminal" },
  "a job that is to be cancelled": {
    job: { ...waiting(), cancel: { reason: "", atMs: 1 } },
    wanted: { priority: 4 },
    kind: "ending",
  },
  "a job that is to be deleted": { job: { ...waiting(), deleteTimeMs: 1 }, wanted: { priority: 4 }, kind: "ending" },
  "a job of another version": { job: waiting(), wanted: { version: 7, priority: 4 }, kind: "stale" },
  "a replica type that the job does not have": {
    job: waiting(),
    wanted: { replicas: { PS: 1 } },
    kind: "invalid",
    says: ["spec.replicaSpecs.PS is not a replica type of this job; types are: Master, Worker"],
  },
  "a replica type in two spellings": {
    job: waiting(),
    wanted: { replicas: { Worker: 3, worker: 4 } },
    kind: "invalid",
    says: ["spec.replicaSpecs.worker is set twice: upper and lower case do not matter"],
  },
  "replicas beyond the bounds of the kind": {
    job: waiting(),
    wanted: { replicas: { Master: 2 } },
    kind: "invalid",
    says: ["spec.replicaSpecs.Master.replicas must be at most 1"],
  },
  "replicas below the bounds of an elastic policy that the kind checks": {
    job: running(elastic),
    wanted: { replicas: { Worker: 1 } },
    kind: "invalid",
    says: ["spec.replicaSpecs.Worker.replicas must be at least minReplicas, 2"],
  },
  "replicas above the only bound of an elastic policy, which is also its other one": {
    job: running({ ...elastic, kindSpec: { elasticPolicy: { minReplicas: 2 } } }),
    wanted: { replicas: { Worker: 3 } },
    kind: "invalid",
    says: [`spec.replicaSpecs.Worker.replicas must be from 2 to 2 ${WHILE}`],
  },
  "replicas below the only bound of an elastic policy, which is also its other one": {
    job: running({ ...elastic, kindSpec: { elasticPolicy: { maxReplicas: 2 } } }),
    wanted: { replicas: { Worker: 1 } },
    kind: "invalid",
    says: [`spec.replicaSpecs.Worker.replicas must be from 2 to 2 ${WHILE}`],
  },
  "replicas that are no whole slices": {
    job: waiting(sliced),
    wanted: { replicas: { Worker: 3 } },
    kind: "invalid",
    says: ["spec.replicaSpecs.Worker.topology.slices[0].size must divide 3, the number of Worker replicas, and is 2"],
  },
  "the size of an admitted gang with slices, whose kind is elastic": {
    job: running(sliced),
    wanted: { replicas: { Worker: 4 } },
    kind: "fixedSize",
  },
  "the size of an admitted gang of a fixed size": {
    job: running(),
    wanted: { replicas: { Worker: 3 } },
    kind: "fixedSize",
  },
};
for (const [name, { job, wanted, kind, says = [] }] of Object.entries(others)) {
  test(`a change of ${name}: ${kind}`, () => {
    const decision = decide(job, wanted);
    assert.equal(decision.kind, kind);
    const errors = decision.kind === "invalid" ? decision.errors.map(({ path, message }) => `${path} ${message}`) : [];
    assert.deepEqual(errors, says);
    if (decision.kind === "unchanged" || decision.kind === "terminal") assert.equal(decision.job, job);
    if (decision.kind === "fixedSize") assert.equal(decision.role, "Worker");
  });
}

const broken = {
  throw: () => {
    throw new Error("no idea");
  },
  nothing: () => undefined as never,
};

test("a kind that fails to say who leads, or what may grow, has no leader and no replica type that may grow", () => {
  for (const fails of Object.values(broken)) {
    const one = podKind({ name: "AJob", description: "", isMaster: fails, elasticRoles: fails });
    const kind = kindsWith({ id: "a", kinds: [one] }).kindOf("AJob")!;
    const { spec } = waiting();
    assert.deepEqual([kind.isMaster({ Worker: 1 }, "Worker", 0), kind.elasticRoles?.(spec)], [false, []]);
  }
  const leads = podKind({
    name: "AJob",
    description: "",
    isMaster: () => true,
    elasticRoles: () => [{ name: "W", min: 0, max: 1 }],
  });
  const kind = kindsWith({ id: "a", kinds: [leads] }).kindOf("AJob")!;
  assert.equal(kind.isMaster({ Worker: 1 }, "Worker", 0), true);
  assert.deepEqual(kind.elasticRoles?.(waiting().spec), [{ name: "W", min: 0, max: 1 }]);
  const plain = kindsWith({ id: "a", kinds: [podKind({ name: "AJob", description: "" })] }).kindOf("AJob")!;
  assert.equal(plain.elasticRoles, undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { podKind } from "../../src/core/kinds/plugin.ts";
import { createIntake } from "../../src/intake/intake.ts";
import type { IntakeStore } from "../../src/intake/ports.ts";
import { sizeNotes } from "../../src/intake/size-notes.ts";
import { kindsWith, OWN_KINDS } from "../support/kinds.ts";
import { NO_CLASSES } from "../support/no-classes.ts";

const template = { spec: { containers: [{ name: "tensorflow", image: "x" }] } };
const sent: SentJob = {
  namespace: "default",
  name: "mnist",
  generateName: "",
  labels: {},
  annotations: {},
  spec: { kind: "TFJob", replicaSpecs: { Worker: { replicas: 10, template } } },
};

/** An intake whose store has one job. */
function intakeWith(job: () => Job) {
  const never = async () => assert.fail("only changes reach the store");
  const store: IntakeStore = {
    facts: async () => ({
      namespace: { project: "p", defaultQueue: "q" },
      priorityClasses: NO_CLASSES,
      queueExists: async () => true,
      nodeResources: async () => null,
    }),
    earlierRequest: never,
    createJob: never,
    createJobs: never,
    changeJob: async (_name, decide) => decide(job(), sent),
    requestCancel: never,
    requestDelete: never,
  };
  return createIntake({
    clock: { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => {} },
    kinds: OWN_KINDS,
    store,
    randomBytes: (count) => new Uint8Array(count),
    wakePlanner: () => {},
    wakeJob: () => {},
  });
}

async function waitingJob(): Promise<Job> {
  const made = await intakeWith(() => assert.fail("there is no job yet")).make({
    job: sent,
    requestId: "",
    validateOnly: false,
    strict: false,
    createdBy: "alice",
  });
  assert.ok(made.kind === "made");
  return made.job;
}

test("a job whose pods have the addresses of all members cannot grow beyond what its pods may have", async () => {
  const job = await waitingJob();
  const intake = intakeWith(() => job);
  const name = { namespace: job.namespace, name: job.name };
  const grown = await intake.change(name, { version: null, replicas: { Worker: 10_000 } });
  assert.ok(grown.kind === "invalid");
  const [violation] = grown.violations;
  assert.match(
    violation?.message ?? "",
    /^makes pods of up to \d+ bytes of JSON in all: at most 1073741824 are allowed$/,
  );
  assert.equal(violation?.field, "job.spec.replica_specs");
  assert.equal((await intake.change(name, { version: null, replicas: { Worker: 1_000 } })).kind, "changed");
});

test("a kind from outside that throws is measured when its pods are built", async () => {
  const kind = podKind({
    name: "Odd",
    description: "Throws.",
    clusterSpec: () => {
      throw new Error("not today");
    },
  });
  const job = await waitingJob();
  assert.deepEqual(
    sizeNotes({ ...job, spec: { ...job.spec, kind: "Odd" } }, kindsWith({ id: "odd", kinds: [kind] })),
    [],
  );
});

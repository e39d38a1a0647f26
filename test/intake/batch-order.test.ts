/** Jobs of a batch keep its order: by age, then by uid, as the planner takes those of one priority. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import type { Job } from "../../src/core/job/job.ts";
import { PLAIN_POD_CONFIG } from "../../src/core/pods/pod-config.ts";
import { createIntake } from "../../src/intake/intake.ts";
import { compareText } from "../../src/runtime/compare-text.ts";
import { UUID_PLACES, uuidV7 } from "../../src/runtime/uuid-v7.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { NO_CLASSES } from "../support/no-classes.ts";

/** What happens to a job of a batch on its way. */
type Fate = {
  /** How much later the clock is at its next reading; it may go back. */
  readonly stepMs: number;
  readonly fate: "together" | "alone" | "nameTaken" | "outdated" | "invalid";
};

/** Submits a batch whose jobs have these fates, and returns the created jobs by name. */
async function submitted(fates: readonly Fate[], how: "batch" | "calls") {
  let nowMs = 1_000_000;
  let reads = 0;
  const created = new Map<string, Job>();
  const tried = new Map<number, number>();
  const fateOf = ({ labels }: Pick<Job, "labels">) => fates[Number(labels["at"])]?.fate;
  const keep = (job: Job) => {
    created.set(String(job.labels["at"]), job);
    return { kind: "created", job } as const;
  };
  const intake = createIntake({
    clock: {
      nowMs: () => {
        nowMs += fates[reads % fates.length]?.stepMs ?? 0;
        reads += 1;
        return nowMs;
      },
      monotonicMs: () => 0,
      sleep: async () => {},
    },
    kinds: OWN_KINDS,
    store: {
      facts: async () => ({
        namespace: { project: "p", defaultQueue: "q" },
        priorityClasses: NO_CLASSES,
        queueExists: async () => true,
        nodeResources: async () => null,
      }),
      earlierRequest: async () => null,
      createJob: async ({ job }) => {
        const at = Number(job.labels["at"]);
        const before = tried.get(at) ?? 0;
        tried.set(at, before + 1);
        if (before === 0 && fateOf(job) === "nameTaken") return { kind: "beingDeleted" };
        if (before === 0 && fateOf(job) === "outdated") return { kind: "outdated" };
        return keep(job);
      },
      createJobs: async (jobs) => jobs.map(({ job }) => (fateOf(job) === "together" ? keep(job) : null)),
      changeJob: async () => ({ kind: "notFound" }),
      requestCancel: async () => ({ kind: "notFound" }),
      requestDelete: async () => ({ kind: "notFound" }),
    },
    podConfig: () => PLAIN_POD_CONFIG,
    randomBytes,
    wakePlanner: () => {},
    wakeJob: () => {},
  });
  const submissions = fates.map(({ fate }, at) => {
    const template = { spec: { containers: fate === "invalid" ? [] : [{ name: "main", image: "x" }] } };
    const spec = { kind: "Job", replicaSpecs: { Worker: { template } } };
    const job = { namespace: "default", name: "", generateName: "j-", labels: { at: `${at}` }, annotations: {}, spec };
    return { job, requestId: "", validateOnly: false, strict: false, createdBy: "alice" };
  });
  if (how === "batch") await intake.submitAll(submissions);
  else await Promise.all(submissions.map((one) => intake.submit(one)));
  return fates.flatMap((_, at) => created.get(`${at}`) ?? []);
}

const fates = fc.array(
  fc.record({
    stepMs: fc.integer({ min: -50, max: 50 }),
    fate: fc.constantFrom("together", "alone", "nameTaken", "outdated", "invalid"),
  }) satisfies fc.Arbitrary<Fate>,
  { minLength: 1, maxLength: 450 },
);

test("jobs of a batch are ordered as they were sent, whatever happens on their way", async () => {
  await fc.assert(
    fc.asyncProperty(fates, async (all) => {
      const jobs = await submitted(all, "batch");
      assert.equal(jobs.length, all.filter(({ fate }) => fate !== "invalid").length);
      const taken = jobs.toSorted((a, b) => a.createTimeMs - b.createTimeMs || compareText(a.uid, b.uid));
      assert.deepEqual(
        taken.map(({ uid }) => uid),
        jobs.map(({ uid }) => uid),
      );
    }),
    { numRuns: 30 },
  );
});

test("calls that share a transaction are ordered as they came", async () => {
  const jobs = await submitted(
    Array.from({ length: 150 }, () => ({ stepMs: 0, fate: "together" as const })),
    "calls",
  );
  // The first call goes alone; those that came meanwhile share the next transaction.
  const uids = jobs.slice(1).map(({ uid }) => uid);
  assert.deepEqual(uids, uids.toSorted());
});

test("uids of one time sort by their places, and are UUIDs of version 7", () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 2 ** 45 }),
      fc.nat({ max: UUID_PLACES - 1 }),
      fc.nat({ max: UUID_PLACES - 1 }),
      (ms, a, b) => {
        const [one, other] = [uuidV7(ms, randomBytes(10), a), uuidV7(ms, randomBytes(10), b)];
        assert.match(one, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        if (a !== b) assert.equal(one < other, a < b);
        else assert.notEqual(one, other);
      },
    ),
  );
});

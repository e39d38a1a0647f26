import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { BatchSubmitOutcome, Submission } from "../../../src/core/job/request/requests.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import { createIntake } from "../../../src/intake/intake.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { seededRandom } from "../../support/random.ts";
import { freshStore } from "../db.ts";
import { NOW } from "../jobs.ts";

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  /** An empty database, and an intake over it with a seeded random source. Queue `narrow` takes two jobs. */
  async function start() {
    const { store } = await freshStore(db);
    await store.admin.createQueue({ name: "narrow", strategy: "STRICT_FIFO", quotas: [], maxWaitingJobs: 2 });
    const random = seededRandom(1);
    const intake = createIntake({
      clock: { nowMs: () => NOW, monotonicMs: () => 0, sleep: async () => {} },
      kinds: OWN_KINDS,
      store: store.intake,
      randomBytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(random() * 256)),
      wakePlanner: () => {},
      wakeJob: () => {},
    });
    return { store, intake };
  }

  /** Few names and ids, so that submissions conflict. */
  const submissions = fc.array(
    fc.record({
      name: fc.constantFrom("a", "b", "c", ""),
      namespace: fc.constantFrom("team", "team", "other", "Not Valid"),
      priority: fc.constantFrom(0, 1),
      queue: fc.constantFrom("research", "narrow"),
      requestId: fc.constantFrom("", "", "r1", "r2"),
      validateOnly: fc.constantFrom(false, false, true),
    }),
    { minLength: 1, maxLength: 12 },
  );
  type Drawn = typeof submissions extends fc.Arbitrary<readonly (infer One)[]> ? One : never;

  function submissionOf(
    drawn: Omit<Drawn, "name" | "queue"> & { readonly name: string; readonly queue?: string },
  ): Submission {
    const { name, namespace, priority, queue = "research", requestId, validateOnly } = drawn;
    const template = { spec: { containers: [{ name: "pytorch", image: "x" }] } };
    const spec = { kind: "PyTorchJob", replicaSpecs: { Master: { template } }, priority };
    const runPolicy = { schedulingPolicy: { queue } };
    const names = { name, generateName: name === "" ? "g-" : "", labels: {}, annotations: {} };
    const job: SentJob = { namespace, ...names, spec: { ...spec, runPolicy } };
    return { job, requestId, validateOnly, strict: false, createdBy: "alice" };
  }

  /** An answer as its caller sees it, without random values. */
  function seen(answer: BatchSubmitOutcome): unknown {
    if ("job" in answer) {
      const { name, namespace, spec } = answer.job;
      return [answer.kind, namespace, name.startsWith("g-") ? "generated" : name, spec.priority];
    }
    return answer.kind === "madeAndDeleted" ? answer.kind : answer;
  }

  const COUNTS = `
select (select count(*)::int from jobs) as jobs, (select count(*)::int from request_ids) as request_ids,
       (select count(*)::int from job_changes) as changes, (select count(*)::int from job_events) as events,
       (select count(*)::int from request_ids r where not exists (select from jobs where uid = r.job_uid)) as dangling`;

  test("a batch gives the same answers and records as the same submissions one by one", async () => {
    await fc.assert(
      fc.asyncProperty(submissions, submissions, async (first, second) => {
        const alone = await start();
        const answersAlone: unknown[] = [];
        for (const one of [...first, ...second]) answersAlone.push(seen(await alone.intake.submit(submissionOf(one))));
        const [countsAlone] = await db.query<{ dangling: number }>(COUNTS);
        const together = await start();
        const answers = [
          ...(await together.intake.submitAll(first.map(submissionOf))),
          ...(await together.intake.submitAll(second.map(submissionOf))),
        ].map(seen);
        assert.deepEqual(answers, answersAlone);
        const [counts] = await db.query<{ dangling: number }>(COUNTS);
        assert.deepEqual(counts, countsAlone);
        assert.equal(counts?.dangling, 0);
      }),
      { numRuns: 40 },
    );
  });

  test("a batch of several groups is created as a whole, in the order of the log", async () => {
    const { store, intake } = await start();
    const names = Array.from({ length: 450 }, (_, at) => `j-${String(at).padStart(3, "0")}`);
    const drawn = { namespace: "team", priority: 0, requestId: "", validateOnly: false } as const;
    const answers = await intake.submitAll(names.map((name) => submissionOf({ ...drawn, name })));
    assert.ok(answers.every(({ kind }) => kind === "created"));
    const order = await db.query<{ name: string }>("select name from job_events order by id");
    assert.deepEqual(
      order.map(({ name }) => name),
      names,
    );
    const page = await store.reads.listJobs({
      filter: { namespace: "team", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} },
      order: "name",
      pageSize: 1,
      after: null,
    });
    assert.equal(page === "badCursor" ? -1 : page.total, 450);
  });

  test("submissions that come at the same time share transactions, and each name is made once", async () => {
    const { intake } = await start();
    const drawn = { namespace: "team", priority: 0, requestId: "", validateOnly: false } as const;
    const names = Array.from({ length: 300 }, (_, at) => `n-${at % 100}`);
    const answers = await Promise.all(names.map((name) => intake.submit(submissionOf({ ...drawn, name }))));
    const counts = Object.groupBy(answers, ({ kind }) => kind);
    assert.deepEqual([counts.created?.length, counts.unchanged?.length], [100, 200]);
  });
});

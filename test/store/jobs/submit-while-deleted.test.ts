/** Namespaces and queues that are deleted while jobs are submitted to them. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import type { BatchSubmitOutcome, Submission } from "../../../src/core/job/request/requests.ts";
import { createIntake } from "../../../src/intake/intake.ts";
import { onPostgres } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { freshStore, type TestStore } from "../db.ts";
import { inOrder } from "../in-order.ts";
import { NOW } from "../jobs.ts";

onPostgres((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    for (const name of ["passing", "staying"]) {
      await store.admin.createNamespace({ name, project: "default", defaultQueue: "research" });
      await store.admin.ensureQueue({ name, strategy: "BEST_EFFORT_FIFO", quotas: [] });
    }
  });

  /** An intake of an installation in which only admins make namespaces, or in which jobs make them. */
  function intakeOf({ openNamespaces }: { readonly openNamespaces: boolean }) {
    const clock = { nowMs: () => NOW, monotonicMs: () => 0, sleep: async () => {} };
    const common = { clock, kinds: OWN_KINDS, onAppended: () => {} };
    const over = createStore(db, { ...common, openNamespaces, defaultQueue: "research" });
    let bytes = 0;
    const randomBytes = (count: number) => new Uint8Array(count).fill(bytes++);
    return createIntake({ ...common, store: over.intake, randomBytes, wakePlanner: () => {}, wakeJob: () => {} });
  }

  function submission(name: string, of: { namespace?: string; queue?: string; validateOnly?: boolean }): Submission {
    const { namespace = "staying", queue = "staying", validateOnly = false } = of;
    const template = { spec: { containers: [{ name: "pytorch", image: "x" }] } };
    const runPolicy = { schedulingPolicy: { queue } };
    const spec = { kind: "PyTorchJob", replicaSpecs: { Master: { template } }, runPolicy };
    const job = { namespace, name, generateName: "", labels: {}, annotations: {}, spec };
    return { job, requestId: `request-${name}`, validateOnly, strict: false, createdBy: "alice" };
  }

  /** An answer without the job. */
  function seen(answer: BatchSubmitOutcome) {
    if (answer.kind === "invalid") return answer.violations.map(({ message }) => message.split(".")[0]);
    return answer.kind === "unknownNamespace" ? answer : answer.kind;
  }

  const GONE = {
    namespace: {
      row: { table: "namespaces", name: "passing" },
      drop: async () => (await store.admin.deleteNamespace("passing")).kind,
    },
    queue: {
      row: { table: "queues", name: "passing" },
      drop: async () => (await store.admin.deleteQueue("passing")).kind,
    },
  } as const;
  const REFUSED = {
    namespace: { kind: "unknownNamespace", namespace: "passing" },
    queue: ["queue passing does not exist"],
  } as const;

  for (const what of ["namespace", "queue"] as const) {
    const { row, drop } = GONE[what];
    const passing = { [what]: "passing" };

    describe(`a ${what} that is deleted while jobs are submitted to it`, () => {
      test("refuses a job as if it had been submitted later", async () => {
        const intake = intakeOf({ openNamespaces: false });
        const second = () => intake.submit(submission("late", passing));
        const [deleted, answer] = await inOrder(db, row, { first: drop, second });
        assert.equal(deleted, "done");
        assert.deepEqual(seen(answer), REFUSED[what]);
        assert.deepEqual(seen(await intake.submit(submission("later", passing))), REFUSED[what]);
        assert.deepEqual(await db.query("select 1 from request_ids"), [], "no request id is used up");
      });

      test("refuses only its own jobs of a batch", async () => {
        const intake = intakeOf({ openNamespaces: false });
        const batch = [submission("a", {}), submission("b", passing), submission("c", {}), submission("d", passing)];
        const second = () => intake.submitAll(batch);
        const [deleted, answers] = await inOrder(db, row, { first: drop, second });
        assert.equal(deleted, "done");
        assert.deepEqual(answers.map(seen), ["created", REFUSED[what], "created", REFUSED[what]]);
        const jobs = await db.query<{ name: string }>("select name from jobs order by name");
        assert.deepEqual(
          jobs.map(({ name }) => name),
          ["a", "c"],
        );
      });

      test("stays if a job of it came first", async () => {
        const intake = intakeOf({ openNamespaces: false });
        const first = () => intake.submit(submission("early", passing));
        const [answer, deleted] = await inOrder(db, row, { first, second: drop });
        assert.equal(answer.kind, "created");
        assert.equal(deleted, "inUse");
      });

      test("refuses a dry run of one job and of many", async () => {
        const intake = intakeOf({ openNamespaces: false });
        const dry = { ...passing, validateOnly: true };
        const one = () => intake.submit(submission("late", dry));
        assert.deepEqual(seen((await inOrder(db, row, { first: drop, second: one }))[1]), REFUSED[what]);
        const many = await intake.submitAll([submission("a", dry), submission("b", { validateOnly: true })]);
        assert.deepEqual(many.map(seen), [REFUSED[what], "valid"]);
      });
    });
  }

  test("a namespace that jobs make is made again for a job that is submitted while it is deleted", async () => {
    const intake = intakeOf({ openNamespaces: true });
    const { row, drop } = GONE.namespace;
    const second = () => intake.submit(submission("late", { namespace: "passing" }));
    const [deleted, answer] = await inOrder(db, row, { first: drop, second });
    assert.deepEqual([deleted, answer.kind], ["done", "created"]);
  });
});

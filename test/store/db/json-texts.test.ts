/** Several documents as one parameter, with the drivers that serve them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Db, type Executor, jsonTexts } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore } from "../db.ts";
import { newJob, sentOf } from "../jobs.ts";

/** Texts that JSON, the text of a list, or both have to escape. */
const TEXTS = [
  "",
  "a,b}",
  '"',
  "\\",
  '\\"',
  "\\n\n\t\r\u0001",
  "NULL",
  "\ud800",
  "é\u2028\u{1f600}\u007f",
  "\u0000 \\u0000",
];
const LONG = 100_000;

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  test("documents reach the database as JSON.stringify writes them", async () => {
    const documents = [...TEXTS, TEXTS, {}, [], { [TEXTS.join("")]: TEXTS }, 1.5, true];
    const rows = await db.query<{ document: string | null }>(
      "select document from unnest($1::text[]) with ordinality as d (document, place) order by place",
      [jsonTexts([...documents, null])],
    );
    assert.deepEqual(
      rows.map(({ document }) => document),
      [...documents.map((document) => JSON.stringify(document)), null],
    );
    assert.deepEqual(await db.query("select cardinality($1::text[]) as count", [jsonTexts([])]), [{ count: 0 }]);
  });

  test("no driver gets a list with a long text of a job that is created", async () => {
    const long: unknown[] = [];
    const noting = ({ query }: Executor): Executor => ({
      query: (text, params = []) => {
        long.push(...params.filter((param) => String(param).length > LONG));
        return query(text, params);
      },
    });
    const { store } = await freshStore({ ...db, ...noting(db), tx: (fn) => db.tx((tx) => fn(noting(tx))) });
    const made = newJob({ name: "long" });
    const { Worker } = made.spec.replicaSpecs;
    assert.ok(Worker);
    const template = { spec: { containers: [{ name: "pytorch", args: ["\n".repeat(LONG)] }] } };
    const job = { ...made, spec: { ...made.spec, replicaSpecs: { Worker: { ...Worker, template } } } };
    const batch = { ...job, uid: job.uid.replace(/.$/, "f"), name: "long-too" };
    assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "one" })).kind, "created");
    const [outcome] = await store.intake.createJobs([{ job: batch, sent: sentOf(batch), requestId: "two" }]);
    assert.equal(outcome?.kind, "created");
    assert.notEqual(long.length, 0);
    assert.ok(!long.some(Array.isArray));
  });
});

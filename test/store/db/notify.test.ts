import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { type Hint, HintBatch, hintsOf, localHints } from "../../../src/adapters/store/db/hints.ts";
import { createHints } from "../../../src/adapters/store/db/notify.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { waitUntil } from "../../support/bounded.ts";
import { lineTo } from "../../support/cut-line.ts";
import { createDatabase, postgresServer } from "../../support/postgres.ts";

const server = await postgresServer();
const hint: fc.Arbitrary<Hint> = fc.oneof(
  fc.constantFrom<Hint>({ kind: "planner" }, { kind: "log" }, { kind: "jobs" }),
  { weight: 20, arbitrary: fc.uuid().map((uid): Hint => ({ kind: "job", uid })) },
);

test("a batch holds every hint once, or the hint to look at all jobs", () => {
  fc.assert(
    fc.property(fc.array(hint, { maxLength: 3_000, size: "max" }), (hints) => {
      const batch = new HintBatch();
      for (const one of hints) batch.add(one);
      const payloads = batch.take();
      assert.ok(batch.isEmpty);
      assert.ok(payloads.every((payload) => payload.length > 0 && Buffer.byteLength(payload) < 8_000));
      assert.ok(payloads.length <= 6);
      const sent = payloads.flatMap(hintsOf).map((one) => JSON.stringify(one));
      assert.equal(new Set(sent).size, sent.length);
      const all = sent.includes(JSON.stringify({ kind: "jobs" }));
      for (const one of hints) assert.ok(sent.includes(JSON.stringify(one)) || (all && one.kind === "job"));
    }),
    { numRuns: 30 },
  );
});

test("words that this version does not know are ignored", () => {
  assert.deepEqual(hintsOf("planner,quota:x,job:nonsense,,log"), [{ kind: "planner" }, { kind: "log" }]);
  assert.deepEqual(hintsOf(""), []);
});

test("hints within one process reach each listener until it stops", () => {
  const hints = localHints();
  const heard: Hint[] = [];
  const stop = hints.onHint((one) => heard.push(one));
  hints.send({ kind: "planner" });
  stop();
  hints.send({ kind: "log" });
  assert.deepEqual(heard, [{ kind: "planner" }]);
});

describe("on PostgreSQL", { skip: server === null }, () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  before(async () => {
    database = await createDatabase(server ?? "");
  });
  after(() => database.drop());

  /** The hints of one process, with those that it got and its errors. */
  async function listen(url = database.url) {
    const heard: Hint[] = [];
    const errors: unknown[] = [];
    const hints = createHints({
      url,
      connectTimeoutMs: 10_000,
      clock: systemClock(),
      random: Math.random,
      onError: (error) => errors.push(error),
    });
    hints.onHint((one) => heard.push(one));
    const until = (condition: () => boolean) => waitUntil("the hints are as expected", condition, { pollMs: 1 });
    // It is connected once it has got every kind of hint.
    await until(() => heard.some(({ kind }) => kind === "jobs"));
    heard.length = 0;
    return { hints, heard, errors, until, [Symbol.asyncDispose]: () => hints.close() };
  }

  test("a hint reaches every process once, also its own", async () => {
    await using near = await listen();
    await using far = await listen();
    const uid = randomUUID();
    const sent: Hint[] = [{ kind: "job", uid }, { kind: "planner" }, { kind: "log" }];
    for (const one of sent) near.hints.send(one);
    assert.deepEqual(near.heard, sent);
    await far.until(() => far.heard.length >= 3);
    assert.deepEqual(new Set(far.heard), new Set(sent));
    far.hints.send({ kind: "planner" });
    await near.until(() => near.heard.length >= 4);
    assert.deepEqual(near.heard.slice(3), [{ kind: "planner" }]);
  });

  test("thousands of hints at once arrive as a few notifications", async () => {
    await using near = await listen();
    await using far = await listen();
    for (let at = 0; at < 5_000; at += 1) near.hints.send({ kind: "job", uid: randomUUID() });
    near.hints.send({ kind: "log" });
    await far.until(() => far.heard.some(({ kind }) => kind === "log"));
    await far.until(() => far.heard.some(({ kind }) => kind === "jobs"));
    assert.ok(far.heard.length <= 1_002, `${far.heard.length} hints`);
  });

  test("after a reconnect a process gets every kind of hint, and then new hints", async () => {
    const line = await lineTo(database.url);
    await using near = await listen();
    const far = await listen(line.url);
    line.cut();
    await far.until(() => far.errors.length > 0);
    far.hints.send({ kind: "planner" });
    assert.deepEqual(far.heard, [{ kind: "planner" }], "within the process hints go on");
    line.mend();
    await far.until(() => far.heard.some(({ kind }) => kind === "jobs"));
    far.heard.length = 0;
    near.hints.send({ kind: "planner" });
    await far.until(() => far.heard.length > 0);
    assert.deepEqual(far.heard, [{ kind: "planner" }]);
    await far.hints.close();
    await line.close();
  });

  test("closing hints ends them at once, connected or not", async () => {
    const connected = await listen();
    await connected.hints.close();
    connected.hints.send({ kind: "log" });
    assert.deepEqual(connected.heard, []);
    const errors: unknown[] = [];
    const away = createHints({
      url: "postgres://nobody@127.0.0.1:1/none",
      connectTimeoutMs: 1_000,
      clock: systemClock(),
      random: Math.random,
      onError: (error) => errors.push(error),
    });
    await waitUntil("two errors are reported", () => errors.length >= 2, { pollMs: 1 });
    await away.close();
  });
});

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Db, leaveToCommit, readSnapshot } from "../../../src/adapters/store/db/db.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { prepared } from "../../../src/adapters/store/db/prepared.ts";
import { UnavailableError } from "../../../src/runtime/unavailable-error.ts";
import { waitUntil } from "../../support/bounded.ts";
import { lineTo } from "../../support/cut-line.ts";
import { createDatabase, postgresOptions, postgresServer } from "../../support/postgres.ts";

const server = await postgresServer();

test("a server that does not run is unavailable, and the error says its address", async () => {
  const db = await openPostgres(postgresOptions("postgres://nobody@127.0.0.1:1/none"));
  await assert.rejects(db.query("select 1"), (error) => {
    return error instanceof UnavailableError && /127\.0\.0\.1:1/.test(error.message);
  });
  await db.close();
});

describe("on PostgreSQL", { skip: server === null }, () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  before(async () => {
    database = await createDatabase(server ?? "");
  });
  after(() => database.drop());

  async function open(changes: Partial<ReturnType<typeof postgresOptions>> = {}): Promise<Db & AsyncDisposable> {
    const db = await openPostgres({ ...postgresOptions(database.url), ...changes });
    return { ...db, [Symbol.asyncDispose]: () => db.close() };
  }

  test("bigints are read as numbers while they are exact, and refused beyond", async () => {
    await using db = await open();
    assert.deepEqual(await db.query("select 9007199254740991::bigint as n"), [{ n: 9007199254740991 }]);
    await assert.rejects(db.query("select 9007199254740992::bigint as n"), /beyond 2\^53-1/);
    assert.deepEqual(await db.query("select 1::bigint as n"), [{ n: 1 }]);
  });

  test("the server compiles no statement of a connection, unless a pooler may share that with others", async () => {
    await using own = await open();
    await using shared = await open({ pooled: true });
    const jit = async (db: Db) => (await db.query<{ jit: string }>("select current_setting('jit') as jit"))[0]?.jit;
    const [{ reset_val: unchanged } = { reset_val: "" }] = await shared.query<{ reset_val: string }>(
      "select reset_val from pg_settings where name = 'jit'",
    );
    assert.deepEqual([await jit(own), await jit(shared)], ["off", unchanged]);
  });

  test("a transaction that throws leaves nothing, and its connection serves the next", async () => {
    await using db = await open({ poolMax: 1 });
    await assert.rejects(
      db.tx(async (tx) => {
        await tx.query("insert into workers (name) values ('lost')");
        throw new Error("no");
      }),
      /^Error: no$/,
    );
    await assert.rejects(
      db.tx((tx) => tx.query("select 1 / 0")),
      /division by zero/,
    );
    assert.deepEqual(await db.query("select name from workers where name = 'lost'"), []);
  });

  test("a transaction that ignores a failed statement does not count as committed", async () => {
    await using db = await open();
    const careless = db.tx(async (tx) => {
      await tx.query("insert into workers (name) values ('careless')");
      await tx.query("select 1 / 0").catch(() => undefined);
    });
    await assert.rejects(careless, /tried to commit although one of its statements had failed/);
  });

  test("a statement that is left to the commit fails its transaction", async () => {
    await using db = await open();
    const failing = db.tx(async (tx) => {
      await tx.query("insert into workers (name) values ('left')");
      leaveToCommit(tx.query("select 1 / 0"));
    });
    await assert.rejects(failing, /division by zero/);
    assert.deepEqual(await db.query("select 1 from workers where name = 'left'"), []);
  });

  test("statements run in the order of their calls, whether they are awaited or not", async () => {
    await using db = await open();
    const counts = await db.tx(async (tx) => {
      const count = () => tx.query("select count(*)::int as n from workers where name like 'order%'");
      const insert = (name: string) => tx.query("insert into workers (name) values ($1)", [name]);
      return await Promise.all([count(), insert("order 1"), count(), insert("order 2"), count()]);
    });
    assert.deepEqual(counts, [[{ n: 0 }], [], [{ n: 1 }], [], [{ n: 2 }]]);
  });

  test("a connection prepares a statement once, and runs it again after its plans were discarded", async () => {
    await using db = await open({ poolMax: 1 });
    const statement = prepared("select $1::int + 1 as sum");
    for (let run = 0; run < 300; run += 1) assert.deepEqual(await db.query(statement, [run]), [{ sum: run + 1 }]);
    const names = await db.query("select name from pg_prepared_statements where statement = $1", [statement]);
    assert.equal(names.length, 1);
  });

  test("through a pooler nothing is prepared", async () => {
    await using db = await open({ poolMax: 1, pooled: true });
    await db.query(prepared("select $1::int + 1 as sum"), [1]);
    assert.deepEqual(await db.query("select name from pg_prepared_statements"), []);
  });

  test("two transactions that wait for each other both commit, one of them at its second attempt", async () => {
    await using db = await open();
    await db.query("insert into workers (name) values ('a'), ('b')");
    let attempts = 0;
    let arrived = 0;
    let both = () => {};
    const met = new Promise<void>((resolve) => {
      both = resolve;
    });
    const add = (first: string, second: string) =>
      db.tx(async (tx) => {
        attempts += 1;
        await tx.query("update workers set counter = counter + 1 where name = $1", [first]);
        arrived += 1;
        if (arrived === 2) both();
        await met;
        await tx.query("update workers set counter = counter + 1 where name = $1", [second]);
      });
    await Promise.all([add("a", "b"), add("b", "a")]);
    assert.equal(attempts, 3);
    assert.deepEqual(await db.query("select counter from workers where name in ('a', 'b')"), [
      { counter: 2 },
      { counter: 2 },
    ]);
  });

  test("a transaction with a serialization failure runs again until it succeeds", async () => {
    await using db = await open();
    await db.query("insert into workers (name) values ('serial')");
    const add = () =>
      db.tx(async (tx) => {
        await tx.query("set transaction isolation level repeatable read");
        const [row] = await tx.query<{ counter: number }>("select counter from workers where name = 'serial'");
        await tx.query("update workers set counter = $1 where name = 'serial'", [(row?.counter ?? 0) + 1]);
      });
    await Promise.all([add(), add(), add()]);
    assert.deepEqual(await db.query("select counter from workers where name = 'serial'"), [{ counter: 3 }]);
  });

  test("a transaction that loses every race fails as unavailable", async () => {
    await using db = await open();
    let attempts = 0;
    const losing = db.tx(async (tx) => {
      attempts += 1;
      await tx.query("do $$ begin raise exception 'lost' using errcode = '40001'; end $$");
    });
    await assert.rejects(losing, UnavailableError);
    assert.equal(attempts, 5);
  });

  test("what a transaction does not wait for shares a round trip; writes wait for its begin", async () => {
    await using parts = new AsyncDisposableStack();
    const line = await lineTo(database.url);
    parts.defer(line.close);
    const db = parts.use(await open({ url: line.url, poolMax: 1 }));
    await db.query("select 1");
    const turnsOf = async (fn: Parameters<Db["tx"]>[0]) => {
      const before = line.turns();
      await db.tx(fn);
      return line.turns() - before;
    };
    const read = "with one as (select 1 as n) select n from one";
    const write = "with one as (insert into workers (name) values ('turns') returning name) select name from one";
    const reading = () => readSnapshot(db, (tx) => tx.query(read));
    const before = line.turns();
    assert.deepEqual(await reading(), [{ n: 1 }]);
    assert.equal(line.turns() - before, 2);
    assert.equal(await turnsOf((tx) => tx.query(write)), 3);
    assert.equal(
      await turnsOf(async (tx) => {
        await tx.query(read);
        leaveToCommit(tx.query("delete from workers where name = 'turns'"));
      }),
      2,
    );
  });

  test("a statement that takes too long is ended, and the pool continues", async () => {
    await using db = await open({ statementTimeoutMs: 50, poolMax: 1 });
    await assert.rejects(db.query("select pg_sleep(60)"), UnavailableError);
    assert.deepEqual(await db.query("select 1 as one"), [{ one: 1 }]);
  });

  test("a call that waits too long for a connection fails as unavailable", async () => {
    await using db = await open({ poolMax: 1, connectTimeoutMs: 100 });
    // The bound holds for the first connection too, which takes longer on a busy machine.
    const connects = () =>
      db.query("select 1").then(
        () => true,
        () => false,
      );
    await waitUntil("the pool has its connection", connects, { pollMs: 1 });
    await db.tx(async (tx) => {
      await tx.query("select 1");
      await assert.rejects(db.query("select 1"), UnavailableError);
    });
  });

  test("if the server ends all connections, running calls fail as unavailable; the next succeeds", async () => {
    const lost: unknown[] = [];
    await using db = await open({ poolMax: 3, onError: (error) => lost.push(error) });
    await using admin = await open();
    const others = "select pg_terminate_backend(pid) from pg_stat_activity where pid = any($1::int[])";
    const pids: number[] = [];
    const held = db.tx(async (tx) => {
      const [row] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      pids.push(row?.pid ?? 0);
      await admin.query(others, [pids]);
      await tx.query("select 1");
    });
    await assert.rejects(held, UnavailableError);
    const [idle] = await db.query<{ pid: number }>("select pg_backend_pid() as pid");
    await admin.query(others, [[idle?.pid]]);
    await waitUntil("the lost connection is reported", () => lost.length > 0, { pollMs: 1 });
    assert.deepEqual(await db.query("select 1 as one"), [{ one: 1 }]);
  });

  test("while the network is cut, calls fail as unavailable; afterwards the same pool works again", async () => {
    const line = await lineTo(database.url);
    const db = await openPostgres(postgresOptions(line.url));
    await db.query("select 1");
    const sleeping = assert.rejects(db.query("select pg_sleep(60)"), UnavailableError);
    const inTransaction = assert.rejects(
      db.tx(async (tx) => {
        await tx.query("insert into workers (name) values ('cut')");
        line.cut();
        await tx.query("select 1");
      }),
      UnavailableError,
    );
    await Promise.all([sleeping, inTransaction]);
    await assert.rejects(db.query("select 1"), UnavailableError);
    line.mend();
    assert.deepEqual(await db.query("select name from workers where name = 'cut'"), []);
    await db.close();
    await line.close();
  });

  test("a closed database says so, however often it is closed", async () => {
    const db = await open();
    await db.close();
    await db.close();
    await assert.rejects(db.query("select 1"), UnavailableError);
    await assert.rejects(
      db.tx((tx) => tx.query("select 1")),
      UnavailableError,
    );
  });
});

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { MainProcess } from "../support/main-process.ts";
import { createEmptyDatabase, onServer, postgresServer } from "../support/postgres.ts";
import { hasRedisServer, RedisServer } from "../support/redis-server.ts";
import { ServeChild } from "../support/serve-process.ts";

const server = await postgresServer();
const SECRET = "correct-horse";
const UP = ["up", "--no-examples", "--listen", "127.0.0.1:0"];

const folder = mkdtempSync(join(tmpdir(), "gangway-up-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function up(data: string, env: Readonly<Record<string, string>>): MainProcess {
  return new MainProcess([...UP, "--data", join(folder, data)], env);
}

function withPassword(text: string): URL {
  const url = new URL(text);
  url.password = SECRET;
  return url;
}

describe("up on a PostgreSQL server and a Redis", { skip: server === null || !hasRedisServer() }, () => {
  let database: Awaited<ReturnType<typeof createEmptyDatabase>>;
  let redis: RedisServer;
  let service: MainProcess;
  let env: { readonly DATABASE_URL: string; readonly REDIS_URL: string };
  before(async () => {
    database = await createEmptyDatabase(server ?? "");
    redis = await RedisServer.start(["--requirepass", SECRET], { password: SECRET });
    env = {
      DATABASE_URL: withPassword(database.url).href,
      REDIS_URL: `redis://:${SECRET}@127.0.0.1:${redis.port}`,
    };
    service = up("first", env);
    await service.printed("listening on");
  });
  after(async () => {
    await service.end("SIGTERM");
    await redis.stop();
    await database.drop();
  });

  test("the first line names the parts, the second the migrations that made the schema", () => {
    const { host, pathname } = new URL(database.url);
    const [first, second] = service.stdout.split("\n");
    assert.equal(
      first,
      `database: PostgreSQL ${host.includes(":") ? host : `${host}:5432`}${pathname}` +
        ` · counters: Redis 127.0.0.1:${redis.port} · clusters: a100-west, h100-east (simulated)`,
    );
    assert.match(second ?? "", /^migrated the database: ran 0001_init, /);
  });

  test("queues and clusters are in that database, counters in that Redis", async () => {
    const names = await onServer(database.url, (client) =>
      client.query<{ name: string }>("select name from clusters union all select name from queues order by name"),
    );
    assert.deepEqual(
      names.rows.map(({ name }) => name),
      ["a100-west", "default", "h100-east", "research"],
    );
    assert.ok((await redis.admin.keys("{gangway:*")).length > 0);
  });

  test("a second `up` is refused, and so is a worker that could not reach the simulated clusters", async () => {
    const second = up("second", env);
    assert.equal(await second.exited(), 3);
    assert.match(second.output, /^error: process .* works on the jobs of this database, .*: stop it, or use another/m);
    const worker = new ServeChild("worker", env);
    assert.equal(await worker.exited(), 3);
    assert.match(worker.output, /error: process .* simulates the clusters of this database, .*: stop it, or leave/);
  });

  test("a process without the role worker may serve beside it", async () => {
    const beside = new ServeChild("api,planner", { ...env, GANGWAY_LOG_LEVEL: "silent" });
    await beside.serving();
    assert.equal(await beside.end("SIGTERM"), 0);
  });

  test("a second process in the same directory is refused, with another database too", async () => {
    const second = up("first", { DATABASE_URL: "", REDIS_URL: "" });
    assert.equal(await second.exited(), 3);
    assert.match(second.output, /^error: .*first\/db is held by process \d+/m);
  });

  test("no output and no log shows a password", () => {
    const log = readFileSync(join(folder, "first", "gangway.log"), "utf8");
    assert.ok(!service.output.includes(SECRET) && !log.includes(SECRET));
  });

  test("after it has ended, a worker may start, and marks the simulated clusters unreachable", async () => {
    await service.end("SIGTERM");
    const worker = new ServeChild("worker", { ...env, GANGWAY_LOG_LEVEL: "silent" });
    await worker.serving();
    assert.match(worker.output, /^database: .* · counters: none · clusters: none registered\n/);
    const reachable = await onServer(database.url, (client) =>
      client.query("select name from clusters where simulated and reachable"),
    );
    assert.deepEqual(reachable.rows, []);
    assert.equal(await worker.end("SIGTERM"), 0);
  });
});

const NOWHERE = `//me:${SECRET}@127.0.0.1:1`;
const unreachable: Record<string, { readonly env: Readonly<Record<string, string>>; readonly says: RegExp }> = {
  "its database server": {
    env: { DATABASE_URL: `postgres:${NOWHERE}/gangway`, REDIS_URL: "" },
    says: /^error: the database does not answer: connect ECONNREFUSED 127\.0\.0\.1:1\n$/m,
  },
  "its Redis": {
    env: { DATABASE_URL: "", REDIS_URL: `redis:${NOWHERE}` },
    says: /^error: Redis at 127\.0\.0\.1:1 cannot be used now: connect ECONNREFUSED 127\.0\.0\.1:1\n$/m,
  },
};
for (const [name, { env, says }] of Object.entries(unreachable)) {
  test(`up does not start without ${name}, and says so in one sentence`, async () => {
    const refused = up(`without ${name}`, env);
    assert.equal(await refused.exited(), 3);
    assert.match(refused.output, says);
  });
}

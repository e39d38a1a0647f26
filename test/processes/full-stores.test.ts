/** A service whose database or Redis refuses writes, as callers and probes see it. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { CallError, STATUS } from "../../src/cli/rpc/call-error.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import { retryDelayMs } from "../../src/cli/rpc/rpc-failure.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { MainProcess } from "../support/main-process.ts";
import { createDatabase, postgresServer } from "../support/postgres.ts";
import { hasPostgresPrograms, PostgresProcess } from "../support/postgres-process.ts";
import { freePort, hasRedisServer, RedisServer } from "../support/redis-server.ts";
import { noTinyDisk, TinyDisk } from "../support/tiny-disk.ts";

const server = await postgresServer();
const MIB = 1024 * 1024;

/** Starts `serve` with all roles, and returns how its probes and its API are asked. */
async function start(t: TestContext, env: { readonly DATABASE_URL: string; readonly REDIS_URL: string }) {
  const listen = `127.0.0.1:${await freePort()}`;
  const more = { NAMESPACES: "open", GANGWAY_HTTP_LISTEN: listen, GANGWAY_METRICS_LISTEN: listen };
  const args = ["serve", "--roles", "api,planner,worker", "--listen", "127.0.0.1:0"];
  const service = new MainProcess(args, { ...env, ...more });
  t.after(() => service.end("SIGKILL"));
  await service.printed("listening on");
  const client = connect(service.address ?? "", new AbortController().signal);
  t.after(() => client.close());
  const get = async (path: string) => {
    const response = await fetch(`http://${listen}/${path}`);
    return { status: response.status, body: await response.text() };
  };
  return { service, client, get };
}

/** A job whose template takes this much room in the database. */
function jobOf(name: string, bytes: number) {
  const noise = Array.from({ length: bytes / 36 }, () => crypto.randomUUID()).join("");
  const container = { name: "main", image: "busybox", command: ["true"], args: [noise] };
  const replicaSpecs = { Worker: { replicas: 1, template: { spec: { containers: [container] } } } };
  return { metadata: { name }, spec: { kind: "Job", runPolicy: { suspend: true }, replicaSpecs } };
}

test("a full disk of the database is UNAVAILABLE, in /readyz and in a metric, until there is room", {
  skip: hasPostgresPrograms() ? noTinyDisk() : "needs the programs of PostgreSQL",
}, async (t) => {
  const disk = TinyDisk.mount(160 * MIB);
  assert.ok(disk);
  const postgres = await PostgresProcess.start(disk.folder);
  t.after(async () => {
    await postgres.stop();
    disk.unmount();
  });
  const { url } = await createDatabase(postgres.url);
  const { client, get, service } = await start(t, { DATABASE_URL: url, REDIS_URL: "" });
  assert.equal((await get("readyz")).status, 200);
  const filler = join(disk.folder, "filler");
  try {
    writeFileSync(filler, Buffer.alloc(160 * MIB));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
  }
  let refused: unknown = null;
  for (let count = 0; refused === null; count += 1) {
    await client.call(JobService.method.createJob, { job: jobOf(`job-${count}`, 100_000) }).catch((error) => {
      refused = error;
    });
  }
  assert.ok(refused instanceof CallError, String(refused));
  assert.equal(refused.code, STATUS.UNAVAILABLE, refused.details);
  assert.ok((retryDelayMs(refused) ?? 0) > 0);
  const ready = await get("readyz");
  assert.equal(ready.status, 503);
  assert.match(ready.body, /^\[-\] database/m);
  await waitUntil("the probe names the disk", async () => {
    await client.call(JobService.method.createJob, { job: jobOf("again", 100_000) }).catch(() => {});
    return /^\[-\] database: its disk is full$/m.test((await get("readyz")).body);
  });
  assert.match((await get("metrics")).body, /^gangway_database_shortages_total\{shortage="disk_full"\} [1-9]/m);
  rmSync(filler);
  await waitUntil("a job is created again", () =>
    client.call(JobService.method.createJob, { job: jobOf("after", 100_000) }).then(
      () => true,
      (error) => {
        assert.equal((error as CallError).code, STATUS.UNAVAILABLE);
        return false;
      },
    ),
  );
  await waitUntil("the process is ready again", async () => (await get("readyz")).status === 200);
  assert.doesNotMatch(service.output, /INTERNAL/);
});

test("/readyz and a metric say whether Redis is away, out of memory or read-only, and stay ready", {
  skip: server === null || !hasRedisServer(),
}, async (t) => {
  const database = await createDatabase(server ?? "");
  const redis = await RedisServer.start();
  t.after(async () => {
    await redis.stop();
    await database.drop();
  });
  const { client, get } = await start(t, { DATABASE_URL: database.url, REDIS_URL: redis.url });
  const says = async (state: string, line: RegExp | null) => {
    await waitUntil(`Redis is ${state}`, async () => {
      const [{ body, status }, metrics] = [await get("readyz"), (await get("metrics")).body];
      assert.equal(status, 200);
      const isSaid = line === null ? !body.includes("redis") : line.test(body);
      return isSaid && metrics.includes(`gangway_redis_state{state="${state}"} 1`);
    });
    await client.call(QueueService.method.listQueues, {});
    await client.call(JobService.method.createJob, { job: jobOf(`job-${state.replaceAll("_", "-")}`, 36) });
  };
  await says("ok", null);
  await redis.admin.config("SET", "maxmemory", "1");
  await says("out_of_memory", /^\[!\] redis is out of memory: /m);
  await redis.admin.config("SET", "maxmemory", "0");
  await client.call(JobService.method.deleteJob, { name: "job-ok" });
  await says("ok", null);
  await redis.admin.replicaof("127.0.0.1", "1");
  await says("read_only", /^\[!\] redis is read-only: /m);
  await redis.kill();
  await client.call(JobService.method.deleteJob, { name: "job-read-only" });
  await says("away", /^\[!\] redis is away: /m);
});

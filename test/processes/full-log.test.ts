/** Processes whose log and standard streams cannot be written, as on a disk that is full. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { type MainOptions, MainProcess } from "../support/main-process.ts";
import { createDatabase, postgresServer } from "../support/postgres.ts";
import { freePort, hasRedisServer, RedisServer } from "../support/redis-server.ts";

const FULL = "/dev/full";
const server = await postgresServer();

/** Starts a service that cannot say where it listens. */
async function start(
  t: TestContext,
  of: { readonly args: readonly string[]; readonly env?: Record<string, string>; readonly options: MainOptions },
) {
  const [api, http] = [await freePort(), await freePort()];
  const listen = `127.0.0.1:${http}`;
  const env = { ...of.env, GANGWAY_HTTP_LISTEN: listen, GANGWAY_METRICS_LISTEN: listen };
  const service = new MainProcess([...of.args, "--listen", `127.0.0.1:${api}`], env, of.options);
  t.after(() => service.end("SIGKILL"));
  await waitUntil("the service is ready", async () => {
    assert.equal(service.hasEnded, false);
    return fetch(`http://${listen}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  const client = connect(`127.0.0.1:${api}`, new AbortController().signal);
  t.after(() => client.close());
  const dropped = async (reason: string) => {
    const text = await (await fetch(`http://${listen}/metrics`)).text();
    return Number(
      new RegExp(`^gangway_log_lines_dropped_total\\{reason="${reason}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0,
    );
  };
  return { service, client, dropped };
}

async function createQueues(client: GangwayClient, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    await client.call(QueueService.method.createQueue, { queue: { name: `queue-${at}` } });
  }
}

test("`up` runs its examples while its log, stdout and stderr are full", { skip: !existsSync(FULL) }, async (t) => {
  const data = newDataFolder("gangway-full-");
  t.after(() => rmSync(data, { recursive: true }));
  symlinkSync(FULL, join(data, "gangway.log"));
  const outputFd = openSync(FULL, "w");
  t.after(() => closeSync(outputFd));
  const { service, client, dropped } = await start(t, { args: ["up", "--data", data], options: { outputFd } });
  await waitUntil("an example succeeds", async () => {
    const { jobs } = await client.call(JobService.method.listJobs, {});
    return jobs.some(({ status }) => status?.phase === JobPhase.SUCCEEDED);
  });
  await createQueues(client, 3);
  assert.ok((await dropped("ENOSPC")) >= 3);
  assert.equal(await service.end("SIGTERM"), 0);
});

test("`serve` serves while the file of its output cannot grow", {
  skip: server === null || !hasRedisServer(),
}, async (t) => {
  const database = await createDatabase(server ?? "");
  t.after(() => database.drop());
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  const folder = mkdtempSync(join(tmpdir(), "gangway-full-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "output");
  const outputFd = openSync(file, "a");
  t.after(() => closeSync(outputFd));
  const { service, client, dropped } = await start(t, {
    args: ["serve", "--roles", "api,planner,worker"],
    env: { DATABASE_URL: database.url, REDIS_URL: redis.url },
    options: { outputFd, fileBlocksMax: 4 },
  });
  await createQueues(client, 20);
  assert.ok((await dropped("EFBIG")) > 3);
  assert.equal(await service.end("SIGTERM"), 0);
  const lines = readFileSync(file, "utf8").split("\n");
  assert.ok(lines.some((line) => line.includes('"process started"')));
});

test("a command whose stdout is full says so, and fails", { skip: !existsSync(FULL) }, () => {
  const bin = join(import.meta.dirname, "../../bin/gangway");
  const ran = () => execFileSync("sh", ["-c", `"${bin}" version > ${FULL}`], { encoding: "utf8", stdio: "pipe" });
  assert.throws(ran, { status: 3, stderr: /^error: cannot write to stdout: ENOSPC/ });
});

test("a command whose stderr is full ends with the status that it would have", {
  skip: !existsSync(FULL),
}, async () => {
  const address = `127.0.0.1:${await freePort()}`;
  const bin = join(import.meta.dirname, "../../bin/gangway");
  const line = `"${bin}" --address ${address} get queue-1 2> ${FULL}; echo $?`;
  assert.equal(execFileSync("sh", ["-c", line], { encoding: "utf8" }), "4\n");
});

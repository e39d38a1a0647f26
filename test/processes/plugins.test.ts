import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Job, JobPhase, PluginStage, TaskPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { Warehouse } from "../support/warehouse.ts";
import { Team, until } from "./team.ts";

const server = await postgresServer();
const left = server === null || !hasRedisServer();
const PLUGIN = fileURLToPath(new URL("./task-plugin.ts", import.meta.url));

test("a kind that nobody knows is run by the default plugin in several processes, through a kill in the midst of its call", {
  skip: left,
}, async (t) => {
  const secrets = mkdtempSync(join(tmpdir(), "gangway-secrets-"));
  t.after(() => rmSync(secrets, { recursive: true }));
  writeFileSync(join(secrets, "warehouse-password"), "open sesame\n");
  await using warehouse = await Warehouse.open("open sesame");
  const env = { GANGWAY_PLUGINS: PLUGIN, GANGWAY_SECRETS: secrets, WAREHOUSE_URL: warehouse.url };
  const team = await Team.start(server ?? "", ["api", "planner", "worker", "worker"], { env });
  t.after(() => team.close());
  const closed = new AbortController();
  t.after(() => closed.abort());
  const client = team.client(closed.signal) ?? assert.fail("an API process serves");

  const submit = async (name: string, statement: string): Promise<string> => {
    const job = { metadata: { name }, spec: { kind: "SomebodysJob", kindSpec: { statement } } };
    const created = await client.call(JobService.method.createJob, { job });
    return `gw-${created.job?.metadata?.uid}-1-1`;
  };
  const get = async (name: string): Promise<NonNullable<Job["status"]>> =>
    (await client.call(JobService.method.getJob, { name })).job?.status ?? assert.fail(`there is a job ${name}`);
  const held = async () =>
    (await team.db.query("select 1 from allocations where pool = 'warehouse' and released_ms is null")).length;

  warehouse.stalls = true;
  const first = await submit("first", "forever");
  await until(() => warehouse.started.includes(first), "the warehouse was told of the task, and has not answered");
  assert.equal(await held(), 1);
  const calling = team.children.find(({ child }) => String(child.pid) === warehouse.calledBy);
  assert.equal(calling?.roles, "worker");
  warehouse.stalls = false;
  await team.replace(calling ?? assert.fail("the caller is one of the team"));
  await until(async () => (await get("first")).phase === JobPhase.RUNNING, "another worker has gone on");
  assert.ok(warehouse.puts > 1, "the call was made again");
  assert.deepEqual(warehouse.started, [first], "and started nothing twice");
  assert.equal(await held(), 1, "nor did it take another token");

  const second = await submit("second", "count");
  const isWaiting = async () => (await get("second")).info?.phase === TaskPhase.WAITING_FOR_RESOURCES;
  await until(isWaiting, "the second waits for the only slot");
  await client.call(JobService.method.cancelJob, { name: "first", reason: "enough" });
  await until(async () => (await get("second")).phase === JobPhase.SUCCEEDED, "the second has had its turn");
  const cancelled = await get("first");
  assert.equal(cancelled.phase, JobPhase.CANCELLED);
  assert.equal(cancelled.plugin?.stage, PluginStage.DONE);
  assert.deepEqual(warehouse.deleted, [first], "what was cancelled was aborted");
  assert.deepEqual(warehouse.started, [first, second]);
  assert.equal(warehouse.together, 1);
  await until(async () => (await held()) === 0, "every token is given back");
});

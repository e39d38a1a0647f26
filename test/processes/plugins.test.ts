import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Job, JobPhase, PluginStage, TaskPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { Warehouse } from "../support/warehouse.ts";
import { Team } from "./team.ts";

const server = await postgresServer();
const left = server === null || !hasRedisServer();
const PLUGIN = fileURLToPath(new URL("./task-plugin.ts", import.meta.url));

test("the default plugin runs an unknown kind in several processes, also after a kill during its call", {
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
  await waitUntil("the warehouse has the task, and has not answered", () => warehouse.started.includes(first));
  assert.equal(await held(), 1);
  const calling = team.children.find(({ child }) => String(child.pid) === warehouse.calledBy);
  assert.equal(calling?.roles, "worker");
  warehouse.stalls = false;
  await team.replace(calling ?? assert.fail("the caller is one of the team"));
  await waitUntil("another worker has continued", async () => (await get("first")).phase === JobPhase.RUNNING);
  assert.ok(warehouse.puts > 1, "the call was repeated");
  assert.deepEqual(warehouse.started, [first], "the repeated call started no second task");
  assert.equal(await held(), 1, "the repeated call took no second token");

  const second = await submit("second", "count");
  const isWaiting = async () => (await get("second")).info?.phase === TaskPhase.WAITING_FOR_RESOURCES;
  await waitUntil("the second waits for the only slot", isWaiting);
  await client.call(JobService.method.cancelJob, { name: "first", reason: "enough" });
  await waitUntil("the second has succeeded", async () => (await get("second")).phase === JobPhase.SUCCEEDED);
  const cancelled = await get("first");
  assert.equal(cancelled.phase, JobPhase.CANCELLED);
  assert.equal(cancelled.plugin?.stage, PluginStage.DONE);
  assert.deepEqual(warehouse.deleted, [first], "the cancelled task was aborted");
  assert.deepEqual(warehouse.started, [first, second]);
  assert.equal(warehouse.together, 1);
  await waitUntil("every token is released", async () => (await held()) === 0);
});

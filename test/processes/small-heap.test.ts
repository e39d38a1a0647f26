import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { Team } from "./team.ts";

const server = await postgresServer();
const left = server === null || !hasRedisServer();
const PLUGIN = fileURLToPath(new URL("./poison-plugin.ts", import.meta.url));
/** More than a worker needs to begin; it is full within seconds. */
const HEAP_MIB = 300;
/** Each bucket is then held by a second worker that dies soon after it took it, and its jobs are stepped alone. */
const ENDS = 5;
const template = {
  metadata: { annotations: { "sim.gangway.dev/run": "forever" } },
  spec: { containers: [{ name: "main", image: "train:1", command: ["train"] }] },
};

test("workers whose memory is too small end again and again, and none of their jobs is set aside", {
  skip: left,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-leak-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "leak");
  writeFileSync(file, "");
  const env = { GANGWAY_PLUGINS: PLUGIN, LEAK_FILE: file, NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` };
  const team = await Team.start(server ?? "", ["api", "planner", "worker", "worker"], { env });
  t.after(() => team.close());
  const closed = new AbortController();
  t.after(() => closed.abort());
  const client = team.client(closed.signal) ?? assert.fail("an API process serves");
  const names = ["a", "b", "c", "d", "e", "f"];
  for (const name of names) {
    const spec = { kind: "PoisonJob", kindSpec: { harm: "none" }, replicaSpecs: { Worker: { replicas: 1, template } } };
    await client.call(JobService.method.createJob, { job: { metadata: { name }, spec } });
  }
  let ends = 0;
  await waitUntil("workers have ended often", async () => {
    for (const child of team.children.filter(({ hasEnded }) => hasEnded)) {
      ends += 1;
      await team.replace(child);
    }
    return ends >= ENDS;
  });
  const steppedAlone = await team.db.query("select 1 from bucket_leases where died_ms is not null limit 1");
  assert.equal(steppedAlone.length, 1, "workers have taken buckets of others that had ended");
  rmSync(file);
  for (const child of team.children.filter(({ hasEnded }) => hasEnded)) await team.replace(child);
  await waitUntil("all jobs run", async () => {
    const { jobs } = await client.call(JobService.method.listJobs, {});
    return jobs.length === names.length && jobs.every(({ status }) => status?.phase === JobPhase.RUNNING);
  });
  const { jobs } = await client.call(JobService.method.listJobs, {});
  for (const { status } of jobs) {
    assert.ok(status?.conditions.every(({ type }) => type !== "SetAside"));
  }
  assert.deepEqual(await team.db.query("select uid from jobs where set_aside_ms is not null"), []);
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Job, JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { Team } from "./team.ts";

const server = await postgresServer();
const left = server === null || !hasRedisServer();
const PLUGIN = fileURLToPath(new URL("./poison-plugin.ts", import.meta.url));
/** A heap that is filled before its code counts as blocking, also where memory is slow, and that is noted. */
const HEAP_MIB = 530;
const HAS_RUN: readonly JobPhase[] = [JobPhase.RUNNING, JobPhase.SUCCEEDED];
const template = { spec: { containers: [{ name: "main", image: "train:1", command: ["train"] }] } };

for (const harm of ["block", "fill"]) {
  test(`a job whose step stops every worker (${harm}) is set aside; jobs beside it go on`, {
    skip: left,
  }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "gangway-poison-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "poison");
    writeFileSync(file, "");
    const options = `--max-old-space-size=${HEAP_MIB}`;
    const env = { GANGWAY_PLUGINS: PLUGIN, POISON_FILE: file, NODE_OPTIONS: options };
    const team = await Team.start(server ?? "", ["api", "planner", "worker", "worker"], { env });
    t.after(() => team.close());
    const closed = new AbortController();
    t.after(() => closed.abort());
    const client = team.client(closed.signal) ?? assert.fail("an API process serves");
    const submit = (name: string, how: string) => {
      const spec = { kind: "PoisonJob", kindSpec: { harm: how }, replicaSpecs: { Worker: { replicas: 1, template } } };
      return client.call(JobService.method.createJob, { job: { metadata: { name }, spec } });
    };
    const get = async (name: string): Promise<NonNullable<Job["status"]>> =>
      (await client.call(JobService.method.getJob, { name })).job?.status ?? assert.fail(`there is a job ${name}`);
    const condition = async (name: string) => (await get(name)).conditions.find(({ type }) => type === "SetAside");
    let ends = 0;
    /** As a supervisor does. */
    const restart = async () => {
      for (const child of team.children.filter(({ hasEnded }) => hasEnded)) {
        ends += 1;
        await team.replace(child);
      }
    };

    await submit("before", "none");
    await submit("poison", harm);
    await waitUntil("the job is set aside", async () => {
      await restart();
      return (await condition("poison"))?.status === "True";
    });
    const aside = await condition("poison");
    assert.equal(aside?.reason, harm === "block" ? "BlocksWorkers" : "FillsWorkers");
    assert.match(aside?.message ?? "", /the plugin poison .*gangway resume/s);
    t.diagnostic(`${ends} workers had ended`);

    await submit("beside", "none");
    for (const name of ["before", "beside"]) {
      await waitUntil(`job ${name} runs`, async () => HAS_RUN.includes((await get(name)).phase));
      assert.equal(await condition(name), undefined);
    }
    const { summary, reason } = await client.call(JobService.method.explainJob, { name: "poison" });
    assert.equal(reason, "SetAside");
    assert.match(summary, /is set aside.*gangway resume/s);

    rmSync(file);
    const job = { metadata: { name: "poison" }, spec: { runPolicy: { suspend: false } } };
    await client.call(JobService.method.updateJob, { job, updateMask: { paths: ["spec.run_policy.suspend"] } });
    await waitUntil("the resumed job runs", async () => HAS_RUN.includes((await get("poison")).phase));
    assert.equal((await condition("poison"))?.status, "False");
    const audited = "select details from audit_entries where action = 'UpdateJob' and subject = 'default/poison'";
    const entries = await team.db.query<{ details: { before: { setAside?: string } } }>(audited);
    assert.equal(entries.at(-1)?.details.before.setAside, aside?.reason);
  });
}

/** The clock of a process's machine steps by an hour and back, as one that is corrected after its start. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { addDatabase } from "../support/data-folder.ts";
import { MainProcess } from "../support/main-process.ts";
import { createDatabase, postgresServer } from "../support/postgres.ts";

const server = await postgresServer();
const SECONDS = 1_800;
const RUNNING = Array.from({ length: 6 }, (_, at) => `runs-${at}`);
const folder = mkdtempSync(join(tmpdir(), "gangway-clock-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A job with a limit of half an hour for everything. */
function job(name: string, run: string) {
  const annotations = { "sim.gangway.dev/run": run };
  const resources = { limits: { "nvidia.com/gpu": 1 } };
  const template = { metadata: { annotations }, spec: { containers: [{ name: "main", image: "busybox", resources }] } };
  const runPolicy = { activeDeadlineSeconds: BigInt(SECONDS), ttlSecondsAfterFinished: SECONDS };
  return {
    metadata: { name, namespace: "default" },
    spec: { kind: "Job", replicaSpecs: { Worker: { replicas: 1, template } }, runPolicy },
  };
}

async function phaseOf(client: GangwayClient, name: string): Promise<JobPhase | undefined> {
  const { job } = await client.call(JobService.method.getJob, { namespace: "default", name });
  return job?.status?.phase;
}

async function reaches(client: GangwayClient, names: readonly string[], phase: JobPhase): Promise<void> {
  for (const name of names) {
    await waitUntil(`${name} is ${phase}`, async () => {
      const found = await phaseOf(client, name);
      assert.notEqual(found, JobPhase.FAILED, `${name} has failed`);
      return found === phase;
    });
  }
}

async function submit(client: GangwayClient, names: readonly string[], run: string): Promise<void> {
  for (const name of names) {
    await client.call(JobService.method.createJob, { job: job(name, run), requestId: name });
  }
}

async function requireUnmoved(data: string, env: Readonly<Record<string, string>>, clock: string): Promise<void> {
  const preloaded = new URL("../support/stepping-clock.ts", import.meta.url).href;
  const service = new MainProcess(["up", "--no-examples", "--listen", "127.0.0.1:0", "--data", data], {
    ...env,
    NODE_OPTIONS: `--import ${preloaded}`,
    GANGWAY_LEASE_SECONDS: "3",
  });
  const stopped = new AbortController();
  try {
    await service.printed("listening on");
    const client = connect(service.address ?? "", stopped.signal);
    const steps = () =>
      readFileSync(join(data, "gangway.log"), "utf8").split(`clock of the ${clock} stepped`).length - 1;
    await submit(client, RUNNING, "1h");
    await submit(client, ["is-done"], "10ms");
    await reaches(client, RUNNING, JobPhase.RUNNING);
    await reaches(client, ["is-done"], JobPhase.SUCCEEDED);
    for (const [count, name] of ["starts-ahead", "starts-back"].entries()) {
      service.child.kill("SIGUSR2");
      // Workers step what is due at least as often as the planner admits: a job runs that came after the step.
      await submit(client, [name], "1h");
      await reaches(client, [name], JobPhase.RUNNING);
      await waitUntil(`the log has ${count + 1} steps`, async () => {
        await reaches(client, RUNNING, JobPhase.RUNNING);
        return steps() > count;
      });
    }
    for (const name of [...RUNNING, "starts-ahead", "starts-back"]) {
      assert.equal(await phaseOf(client, name), JobPhase.RUNNING, name);
    }
    assert.equal(await phaseOf(client, "is-done"), JobPhase.SUCCEEDED, "its time to live is not over");
    client.close();
  } finally {
    stopped.abort();
    await service.end("SIGTERM");
  }
}

test("no job fails, starts anew or is deleted when the machine's clock, the embedded database's, steps", () => {
  const data = join(folder, "embedded");
  addDatabase(data);
  return requireUnmoved(data, { DATABASE_URL: "", REDIS_URL: "" }, "database");
});

test("nor when the clock of the worker's machine steps beside a database server", {
  skip: server === null,
}, async () => {
  const database = await createDatabase(server ?? "");
  try {
    await requireUnmoved(join(folder, "server"), { DATABASE_URL: database.url, REDIS_URL: "" }, "machine");
  } finally {
    await database.drop();
  }
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect } from "../../src/cli/rpc/client.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { pytorchJob } from "../api/jobs.ts";
import { WAIT_MS_MAX, waitUntil, within } from "../support/bounded.ts";
import { MainProcess } from "../support/main-process.ts";
import { createDatabase, postgresServer } from "../support/postgres.ts";

const server = await postgresServer();
const PRELOAD = fileURLToPath(new URL("../support/collect-often.ts", import.meta.url));
/** Each follows a watch that begins while the stream ends. */
const STREAMS = 20;
const { method } = JobService;

test("a process ends after streams of logs that were over at once, although garbage is collected all the time", {
  skip: server === null,
}, async (t) => {
  const database = await createDatabase(server ?? "");
  t.after(() => database.drop());
  const folder = mkdtempSync(join(tmpdir(), "gangway-ends-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const args = ["up", "--no-examples", "--listen", "127.0.0.1:0", "--data", folder];
  const service = new MainProcess(args, {
    DATABASE_URL: database.url,
    REDIS_URL: "",
    NODE_OPTIONS: `--import=${PRELOAD}`,
  });
  t.after(() => service.end("SIGKILL"));
  await service.printed("listening on");

  const closing = new AbortController();
  const client = connect(service.address ?? "", closing.signal);
  t.after(() => client.close());
  await client.call(method.createJob, { job: pytorchJob() });
  await client.call(method.cancelJob, { name: "mnist" });
  await waitUntil("the job has ended", async () => {
    const { job } = await client.call(method.getJob, { name: "mnist" });
    return job?.status?.phase === JobPhase.CANCELLED;
  });
  for (let stream = 0; stream < STREAMS; stream += 1) {
    const lines = client.stream(method.streamJobLogs, { name: "mnist", follow: true }, closing.signal);
    for await (const _ of lines) assert.fail("the job never ran");
  }

  assert.equal(await within("the end of the process", WAIT_MS_MAX, service.end("SIGTERM")), 0);
});

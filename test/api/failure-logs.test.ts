import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { KeptLog } from "../../src/core/job/failure-logs/kept-logs.ts";
import { JobService, JobView } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { run } from "../cli/harness.ts";
import { readRefusal, startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;

function logOf(changed: Partial<KeptLog> = {}): KeptLog {
  return {
    podUid: "uid",
    container: "pytorch",
    restarts: 0,
    replica: "Worker/0",
    attempt: 1,
    admission: 1,
    cluster: "east",
    pod: "mnist-worker-0",
    exitCode: 1,
    reason: "Error",
    lines: { text: "step 1\nboom \u001b[31m", cut: true },
    problem: null,
    readMs: 1_750_000_000_000,
    ...changed,
  };
}

/** A served job `mnist` whose pods are gone. */
async function start(t: TestContext, kept: { readonly keeps?: boolean; readonly logs?: readonly KeptLog[] } = {}) {
  const fixture = await startFixture(t, {
    logs: { look: async () => ({ kind: "absent" }), open: async () => assert.fail("there are no pods") },
  });
  await fixture.call(method.createJob, { job: pytorchJob("mnist") });
  const { job } = fixture.store.jobs.get("default/mnist")!;
  const attempts = { ...job.status.attempts, user: 2, byReplica: { "Worker/0": 3 } };
  fixture.store.put({ ...job, version: 2, status: { ...job.status, attempts } });
  const logs = kept.logs ?? [logOf({ attempt: 2, lines: { text: "second", cut: false } }), logOf()];
  fixture.store.failureLogs.set(job.uid, { keeps: kept.keeps ?? true, logs });
  const cli = (...argv: readonly string[]) => run(argv, { address: fixture.api.address });
  const end = () =>
    fixture.store.put({ ...job, version: 3, status: { ...job.status, attempts, phase: "FAILED", waiting: null } });
  return { ...fixture, cli, end };
}

test("GetJob has what is kept in view FULL, ExplainJob that of the newest attempt", async (t) => {
  const { call } = await start(t);
  const { ok } = await call(method.getJob, { name: "mnist", view: JobView.FULL });
  const failureLogs = ok?.failureLogs;
  assert.deepEqual(
    failureLogs?.logs.map(({ attempt, text, cut }) => ({ attempt, text, cut })),
    [
      { attempt: 2, text: "second", cut: false },
      { attempt: 1, text: "step 1\nboom \u001b[31m", cut: true },
    ],
  );
  const basic = await call(method.getJob, { name: "mnist", view: JobView.BASIC });
  assert.equal(basic.ok?.failureLogs, undefined);
  const explained = await call(method.explainJob, { name: "mnist" });
  assert.deepEqual(
    explained.ok?.failureLogs?.logs.map(({ attempt }) => attempt),
    [2],
  );
});

test("a namespace that keeps none says so, once something has failed", async (t) => {
  const { call } = await start(t, { keeps: false, logs: [] });
  const { ok } = await call(method.getJob, { name: "mnist", view: JobView.FULL });
  const failureLogs = ok?.failureLogs;
  assert.match(failureLogs?.leftOut ?? "", /namespace default keeps no lines/);
});

test("gangway logs prints the kept lines of an attempt below a line that says so", async (t) => {
  const { cli } = await start(t);
  const { stdout, exitCode } = await cli("logs", "mnist", "--attempt", "1");
  const heading =
    "Worker/0 pytorch, attempt 1, exit code 1: the last lines, kept when it failed in pod mnist-worker-0 on east";
  assert.equal(stdout, `==> ${heading} <==\nstep 1\nboom \u001b[31m\n`);
  assert.equal(exitCode, 0);
  assert.equal(
    (await cli("logs", "mnist", "--attempt", "1", "--tail", "1")).stdout,
    `==> ${heading} <==\nboom \u001b[31m\n`,
  );
});

test("without a pod, gangway logs prints the kept lines of the newest attempt", async (t) => {
  const { cli } = await start(t);
  const { stdout } = await cli("logs", "mnist");
  assert.match(stdout, /^==> Worker\/0 pytorch, attempt 2, .*all lines, kept when it failed.* <==\nsecond\n$/);
  assert.match(
    (await cli("explain", "mnist")).stdout,
    /attempt 2, .* <==\nsecond\n\nAll lines.*logs mnist --attempt 2/,
  );
});

test("gangway logs --follow prints the kept lines of an ended job too, as its options say", async (t) => {
  const { cli, end } = await start(t);
  end();
  const { stdout } = await cli("logs", "mnist");
  assert.match(stdout, /second/);
  const followed = await cli("logs", "mnist", "--follow");
  assert.deepEqual([followed.stdout, followed.exitCode], [stdout, 0]);
  assert.equal((await cli("logs", "mnist", "-f", "--replica", "Worker/0", "--timestamps")).stdout, stdout);
  assert.match((await cli("logs", "mnist", "-f", "--prefix")).stdout, / <==\n\[Worker\/0 pytorch\] second\n$/);
  assert.equal((await cli("logs", "mnist", "-f", "--container", "sidecar")).stdout, "");
});

test("a log that could not be read shows its reason", async (t) => {
  const problem = { reason: "Forbidden", message: "the account lacks pods/log" };
  const { cli } = await start(t, { logs: [logOf({ attempt: 2, lines: { text: "", cut: false }, problem })] });
  assert.match(
    (await cli("logs", "mnist")).stdout,
    /no lines were kept of pod .*: Forbidden: the account lacks pods\/log/,
  );
  assert.match((await cli("explain", "mnist")).stdout, /Forbidden: the account lacks pods\/log/);
});

const refusals: Readonly<Record<string, readonly [attempt: number, why: RegExp, container?: string]>> = {
  "an attempt that has not begun": [9, /attempt 9 of job default\/mnist has not begun: the newest attempt is 3/],
  "the newest attempt, which has not failed": [3, /no failed container yet.*attempts with lines: 1, 2/],
  "a container that has not failed": [
    1,
    /no lines of a failed container sidecar: those that failed are pytorch/,
    "sidecar",
  ],
};
for (const [name, [attempt, why, container = ""]] of Object.entries(refusals)) {
  test(`refused with its reason: ${name}`, async (t) => {
    const { stream } = await start(t);
    const reading = async () => {
      for await (const _ of stream(method.streamJobLogs, { name: "mnist", attempt, container })) assert.fail();
    };
    await assert.rejects(reading(), (error: Parameters<typeof readRefusal>[0]) => why.test(readRefusal(error).message));
  });
}

const usage: Readonly<Record<string, readonly [argv: readonly string[], why: RegExp]>> = {
  "no number": [["--attempt", "two"], /number of an attempt, 1 or more/],
  "an attempt 0": [["--attempt", "0"], /number of an attempt, 1 or more/],
  "a negative attempt": [["--attempt=-1"], /number of an attempt, 1 or more/],
  "an attempt that is followed": [["--attempt", "1", "--follow"], /--attempt and --follow cannot be combined/],
  "times of kept lines": [["--attempt", "1", "--timestamps"], /--attempt and --timestamps cannot be combined/],
  "kept lines by their age": [["--attempt", "1", "--since", "1m"], /--attempt and --since cannot be combined/],
};
for (const [name, [argv, why]] of Object.entries(usage)) {
  test(`the command line refuses ${name}`, async (t) => {
    const { cli } = await start(t);
    const { stderr, exitCode } = await cli("logs", "mnist", ...argv);
    assert.match(stderr, why);
    assert.notEqual(exitCode, 0);
  });
}

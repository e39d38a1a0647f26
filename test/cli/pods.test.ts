/** A gang that does not start, on a terminal of 80 columns. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { JobTable } from "../../src/cli/service/up-job-table.ts";
import { withRuns } from "../../src/core/job/placement/placement.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { CREATED, serveStuckGang } from "../api/stuck-gang.ts";
import { type Ran, run, type World } from "./harness.ts";

async function served(t: TestContext, of: { readonly away?: boolean } = {}) {
  const fixture = await serveStuckGang(t, of);
  const clock = { ...systemClock(), nowMs: () => Date.parse(CREATED) + 50_000 };
  const world: World = { address: fixture.api.address, isTty: true, columns: 80, clock };
  const gangway = (line: string, more: World = {}): Promise<Ran> => run(line.split(" "), { ...world, ...more });
  return { ...fixture, gangway };
}

/** The lines of an output, without those that other tests are about. */
const lines = ({ stdout }: Ran) => stdout.trimEnd().split("\n");

test("gangway pods shows where each pod is, and why one does not run", async (t) => {
  const { gangway } = await served(t);
  const { exitCode, stdout } = await gangway("pods mnist");
  assert.equal(exitCode, 0);
  assert.equal(
    stdout,
    `\
POD             NODE   PHASE    RESTARTS  AGE  REASON
mnist-master-0  gpu-1  Running         2  50s  -
mnist-worker-0  -      Pending         0  50s  Unschedulable: 5 Insufficient nv…
mnist-worker-1  -      Pending         0  50s  Unschedulable: 5 Insufficient nv…
`,
  );
  assert.ok(stdout.split("\n").every((line) => line.length <= 80));
  assert.equal((await gangway("pod pytorchjob/mnist")).stdout, stdout, "the same command by its other name");
});

test("gangway pods prints every format", async (t) => {
  const { gangway } = await served(t);
  assert.equal(
    (await gangway("pods mnist -o name")).stdout,
    "pod/mnist-master-0\npod/mnist-worker-0\npod/mnist-worker-1\n",
  );
  assert.deepEqual(lines(await gangway("pods mnist -o wide"))[0]?.split(/ +/), [
    ...["POD", "REPLICA", "ATTEMPT", "NODE", "PLANNED", "PHASE", "READY", "RESTARTS", "AGE", "REASON"],
  ]);
  const json = JSON.parse((await gangway("pods mnist -o json")).stdout);
  assert.deepEqual(json.pods[0], {
    name: "mnist-master-0",
    replicaType: "Master",
    attempt: 1,
    phase: "Running",
    node: "gpu-1",
    ready: true,
    restarts: 2,
    createTime: CREATED,
  });
  assert.match((await gangway("pods mnist -o yaml")).stdout, /^pods:\n {2}- name: mnist-master-0\n/);
  const columns = await gangway("pods mnist -o custom-columns=POD:.name,NODE:.node");
  assert.deepEqual(lines(columns)[1]?.split(/ +/), ["mnist-master-0", "gpu-1"]);
  assert.equal((await gangway("pods mnist -o jsonpath={.items[1].reason}")).stdout, "Unschedulable");
});

test("pods and jobs say where pods are planned, and why one is elsewhere", async (t) => {
  const { gangway, store } = await served(t);
  const { job } = store.jobs.get("default/mnist") ?? assert.fail();
  const run = (role: string, first: number, node: string) => ({ role, first, count: 1, node, others: ["gpu-1"] });
  const placement = withRuns(null, [run("Master", 0, "gpu-0"), run("Worker", 0, "gpu-2"), run("Worker", 1, "gpu-2")]);
  const master = [{ role: "master", index: 0 }];
  const nodes = [
    { name: "gpu-0", exists: true, trouble: "cordoned", members: [] },
    { name: "gpu-1", exists: true, trouble: "", members: master },
    { name: "gpu-2", exists: true, trouble: "", members: [] },
  ];
  store.planned.set(job.uid, { placement, nodes });
  const why = "planned on gpu-0, which is cordoned now";
  const rows = lines(await gangway("pods mnist -o wide")).slice(1);
  assert.match(rows[0] ?? "", new RegExp(`gpu-1 +gpu-0 +Running .* ${why}$`));
  assert.match(rows[1] ?? "", / - +gpu-2 +Pending .* Unschedulable/);
  assert.match((await gangway("get mnist -o wide")).stdout, /gpu-1 \(1, planned on gpu-0\), gpu-2 \(2 planned\)/);
  assert.match((await gangway("explain mnist")).stdout, new RegExp(`Master/0 on gpu-1 \\(${why}\\)`));
  assert.doesNotMatch((await gangway("list -o wide")).stdout, /NODES/, "lists do not read nodes");
});

test("gangway pods says why it shows what was recorded", async (t) => {
  const { gangway } = await served(t, { away: true });
  const { exitCode, stdout, stderr } = await gangway("pods mnist");
  assert.equal(exitCode, 0);
  assert.match(stdout, /mnist-worker-1 +- +Pending +0 +- +-/);
  assert.match(stderr, /^cluster east does not answer: these are the first pods as they were last recorded\n$/);
});

test("gangway pods of a job that waits has none", async (t) => {
  const { gangway, put } = await served(t);
  put({ admissions: [] });
  assert.deepEqual(await gangway("pods mnist"), {
    exitCode: 0,
    stdout: "",
    stderr: "no pods: the job is not admitted, or runs without pods\n",
  });
});

test("gangway pods --watch shows the pods, then those that change", async (t) => {
  const { gangway, put, change } = await served(t);
  const stop = new AbortController();
  let rows = 0;
  const onOutput = (text: string) => {
    rows += text.split("\n").length - 1;
    if (rows === 4) {
      change("mnist-worker-1", { nodeName: "gpu-2", phase: "Running" });
      put({ version: 9 });
    }
    if (rows > 4) stop.abort();
  };
  const ran = await gangway("pods mnist -w", { onOutput, signal: stop.signal });
  assert.equal(ran.exitCode, 130);
  assert.match(lines(ran)[4] ?? "", /^mnist-worker-1 +gpu-2 +Running/);
  assert.equal(lines(ran).length, 5);
  const refused = await gangway("pods mnist -w -o json");
  assert.deepEqual([refused.exitCode, refused.stderr.includes("--watch")], [2, true]);
});

test("the names of jobs are completed", async (t) => {
  const { gangway } = await served(t);
  assert.equal((await gangway("__complete pods mn")).stdout, "mnist\n");
});

test("list, get and explain say why the pods of an admitted gang do not run", async (t) => {
  const { gangway } = await served(t);
  for (const command of ["list", "get mnist"]) {
    const [, row = ""] = lines(await gangway(`${command} -o wide`, { isTty: false }));
    assert.match(row, /Unschedulable \(2 pods\): 5 Insufficient nvidia.com\/gpu\.$/);
  }
  assert.deepEqual(lines(await gangway("explain mnist")), [
    "default/mnist starts on cluster east: 0 of 3 pods active, at least 3 must run together; 2 Worker pods do not " +
      "run: Unschedulable (0/5 nodes are available: 5 Insufficient nvidia.com/gpu)",
    "",
    "Phase:     STARTING",
    "Reason:    Unschedulable",
    "Admission: 1 on east (1 Master, 2 Worker)",
    "",
    "PODS  OF      REASON         SINCE  MESSAGE",
    "2     Worker  Unschedulable  50s    0/5 nodes are available: 5 Insufficient nvi…",
  ]);
});

test("the live table of up says why the pods of an admitted gang do not run", async (t) => {
  const { call } = await served(t);
  const table = new JobTable();
  const [job] = (await call(JobService.method.listJobs, {})).ok?.jobs ?? [];
  assert.ok(job);
  table.set(job);
  assert.deepEqual(table.table({ columns: 80, color: false }, 10), [
    "JOB    PHASE     CLUSTER  PODS  WAITING FOR",
    "mnist  STARTING  east      0/3  Unschedulable (2 pods): 5 Insufficient nvidia.c…",
  ]);
});

test("a job that get -o yaml prints with its pods and problems can be submitted again", async (t) => {
  const { gangway } = await served(t);
  const { stdout } = await gangway("get mnist -o yaml", { isTty: false });
  assert.match(stdout, /\n {2}podProblems:\n(.*\n)* {2}pods:\n {4}- name: mnist-master-0\n/);
  assert.equal((await gangway("submit -", { stdin: stdout })).stdout, "pytorchjob/mnist unchanged\n");
});

/** What explain, get and list say of jobs that are not as healthy as their phase. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { explainJob } from "../../src/api/job/explain-job.ts";
import { CallAccess } from "../../src/api/rpc/call-access.ts";
import { ANONYMOUS } from "../../src/core/access/identity.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { SilentClusters } from "../../src/core/job/request/concerns.ts";
import { ExplainJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { pytorchManifest, run } from "../cli/harness.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { startFixture } from "./fixture.ts";

const access = new CallAccess(null, { identity: ANONYMOUS, rpc: "gangway.v1.JobService/ExplainJob" });
const context = { signal: new AbortController().signal, identity: ANONYMOUS, access, violations: [] };

async function explained(job: Job, nowMs: number, silent: SilentClusters = new Map()) {
  const reads = {
    silentClusters: async () => silent,
    plannedNodes: async () => null,
    failureLogs: async () => null,
    getJob: async () => ({ job, position: null, tokens: [] }),
    refusalOf: async () => null,
  } as unknown as Parameters<typeof explainJob>[0]["reads"];
  const request = create(ExplainJobRequestSchema, { name: job.name });
  const { summary, reason } = await explainJob(
    { reads, kinds: OWN_KINDS, simulate: async () => null, clock: { nowMs: () => nowMs } },
    request,
    context,
  );
  return { summary: summary ?? "", reason };
}

test("explain says what failed, how often, and when it starts again, also for failures of the system", async () => {
  const scene = new Scene(pytorch()).start();
  scene.set("j-worker-0", "Failed", { reason: "Evicted" });
  scene.step();
  const { summary } = await explained(scene.job, scene.nowMs + 3000);
  const again = new Date(scene.nowMs + 10_000).toISOString();
  assert.match(summary, /^ns\/j restarts failed pods on cluster c1: 2 of 3 pods active, /);
  assert.match(summary, /, 1 failure of the system counted, the last 3 s ago: Evicted \(/);
  assert.ok(summary.endsWith(`; Worker/0 starts again at ${again}`), summary);
  scene.cluster.collect();
  scene.step();
  assert.equal(scene.job.status.phase, "RUNNING");
  const waiting = await explained(scene.job, scene.nowMs);
  assert.ok(waiting.summary.endsWith(`; Worker/0 starts again at ${again}`), "also while the others run");
  const later = await explained(scene.job, scene.nowMs + 10_000);
  assert.doesNotMatch(later.summary, /starts again|counted/);
  const { attempts } = scene.job.status;
  const both = {
    ...scene.job,
    status: { ...scene.job.status, phase: "RESTARTING" as const, attempts: { ...attempts, user: 2 } },
  };
  const said = await explained(both, scene.nowMs + 10_000);
  assert.match(said.summary, /, 2 failures of its program and 1 of the system counted, the last 10 s ago: /);
});

test("explain says that the cluster of a job that looks healthy does not answer, and since when", async () => {
  const { job, nowMs } = new Scene(pytorch()).start();
  assert.equal((await explained(job, nowMs)).reason, "PodsReady");
  const { summary, reason } = await explained(job, nowMs, new Map([["c1", { sinceMs: nowMs, unusable: null }]]));
  assert.equal(reason, "ClusterUnreachable");
  const unusable = await explained(job, nowMs, new Map([["c1", { sinceMs: nowMs, unusable: "no" }]]));
  assert.equal(unusable.reason, "ClusterUnusable");
  const since = new Date(nowMs).toISOString();
  assert.equal(summary, `ns/j runs on cluster c1: 3 of 3 pods active; cluster c1 has not answered since ${since}`);
});

test("a gang that waits for pods on a silent node says so, and not that a time in the past is awaited", async () => {
  const scene = new Scene(pytorch()).start();
  const eviction = {
    admission: 1,
    reason: "Preempted",
    message: "it was preempted",
    preemption: "InClusterQueue",
  } as const;
  scene.job = { ...scene.job, status: { ...scene.job.status, eviction } };
  scene.silentNode("j-worker-0");
  scene.step();
  scene.nowMs += 3_600_000;
  scene.step();
  assert.equal(scene.job.status.phase, "WAITING");
  assert.equal(scene.job.status.waiting?.reason, "Backoff");
  const { summary, reason } = await explained(scene.job, scene.nowMs);
  assert.equal(reason, "NodeSilent");
  assert.match(summary, /; 1 Worker pod may have stopped: NodeSilent \(node \S+ is silent since /);
  scene.cluster.collect();
  scene.rest();
  assert.equal(scene.job.status.podProblems, undefined);
});

test("get and list show the cluster that does not answer, and the end that was requested", async (t) => {
  const { api, store } = await startFixture(t);
  const files = { "llama.yaml": pytorchManifest("llama") };
  const gangway = async (line: string) => (await run(line.split(" "), { address: api.address, files })).stdout;
  await gangway("submit llama.yaml");
  const { job: made } = store.jobs.get("default/llama") ?? assert.fail("nothing was submitted");
  const { status, admissions } = new Scene(pytorch()).start().job;
  const shown = { ...made, version: 2, status, admissions };
  store.put(shown);
  assert.doesNotMatch(await gangway("list"), /ClusterUnreachable/);
  store.silent.set("c1", { sinceMs: Date.UTC(2026, 0, 2), unusable: null });
  for (const line of ["list", "get llama", "get -o wide"])
    assert.match(await gangway(line), /ClusterUnreachable: cluster c1 has not answered since 2026-01-02T00:00:00.000Z/);
  assert.match(await gangway("get llama -o json"), /"reason": "ClusterUnreachable"/);
  store.silent.clear();
  store.put({ ...shown, version: 9, cancel: { reason: "wrong data", atMs: Date.UTC(2026, 0, 3) } });
  assert.match(await gangway("list"), /Cancelling: it is being cancelled since 2026-01-03T00:00:00.000Z: wrong data/);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { CREATED, MESSAGE, PROBLEM, serveStuckGang } from "./stuck-gang.ts";

const { method } = JobService;

test("ListJobPods returns every pod as its cluster reports it, by replica type and index", async (t) => {
  const { call, asked } = await serveStuckGang(t);
  const { ok } = await call(method.listJobPods, { name: "mnist" });
  assert.deepEqual(
    ok?.pods.map(({ name, replicaType, index, phase, node, ready, restarts, reason, message }) => {
      return [name, replicaType, index, phase, node, ready, restarts, reason, message];
    }),
    [
      ["mnist-master-0", "Master", 0, "Running", "gpu-1", true, 2, "", ""],
      ["mnist-worker-0", "Worker", 0, "Pending", "", false, 0, "Unschedulable", MESSAGE],
      ["mnist-worker-1", "Worker", 1, "Pending", "", false, 0, "Unschedulable", MESSAGE],
    ],
  );
  const [master] = ok?.pods ?? [];
  assert.equal(master?.createTime && timestampMs(master.createTime), Date.parse(CREATED));
  assert.equal(master?.attempt, 1);
  assert.deepEqual([ok?.nextPageToken, ok?.cluster, ok?.staleReason], ["", "east", ""]);
  assert.deepEqual([asked[0]?.cluster, asked[0]?.namespace], ["east", "default"]);
});

test("ListJobPods returns pages", async (t) => {
  const { call } = await serveStuckGang(t);
  const names: string[][] = [];
  let pageToken = "";
  do {
    const { ok } = await call(method.listJobPods, { name: "mnist", pageSize: 2, pageToken });
    names.push(ok?.pods.map(({ name }) => name) ?? []);
    pageToken = ok?.nextPageToken ?? "";
  } while (pageToken !== "");
  assert.deepEqual(names, [["mnist-master-0", "mnist-worker-0"], ["mnist-worker-1"]]);
  const beyond = await call(method.listJobPods, { name: "mnist", pageToken: "900000" });
  assert.deepEqual(beyond.ok?.pods, []);
});

test("ListJobPods returns what was recorded if the cluster does not answer, and says so", async (t) => {
  const { call } = await serveStuckGang(t, { away: true });
  const { ok } = await call(method.listJobPods, { name: "mnist" });
  assert.deepEqual(
    ok?.pods.map(({ phase, node, ready, reason, message }) => [phase, node, ready, reason, message]),
    [
      ["Running", "gpu-1", true, "", ""],
      ["Pending", "", false, "Unschedulable", MESSAGE],
      ["Pending", "", false, "", ""],
    ],
  );
  assert.match(ok?.staleReason ?? "", /cluster east does not answer/);
});

test("ListJobPods asks no cluster for a job that waits", async (t) => {
  const { call, asked, put } = await serveStuckGang(t);
  put({ admissions: [] });
  const { ok } = await call(method.listJobPods, { name: "mnist" });
  assert.deepEqual([ok?.pods, ok?.cluster, ok?.staleReason, asked], [[], "", "", []]);
});

for (const [name, { request, code, says }] of Object.entries({
  "a job that does not exist": { request: { name: "no" }, code: "NOT_FOUND", says: /default\/no/ },
  "no name": { request: {}, code: "INVALID_ARGUMENT", says: /name/ },
  "a page size of 1,001": { request: { name: "mnist", pageSize: 1_001 }, code: "INVALID_ARGUMENT", says: /page_size/ },
  "another list's page token": {
    request: { name: "mnist", pageToken: "-1" },
    code: "INVALID_ARGUMENT",
    says: /page_token/,
  },
})) {
  test(`ListJobPods refuses ${name}`, async (t) => {
    const { call } = await serveStuckGang(t);
    const { error } = await call(method.listJobPods, request);
    assert.equal(error?.code, code);
    assert.match([error?.message, ...(error?.fields ?? []).map(({ field }) => field)].join(" "), says);
  });
}

test("GetJob shows the recorded pods and problems; lists and watches show the problems", async (t) => {
  const { call } = await serveStuckGang(t);
  const { ok } = await call(method.getJob, { name: "mnist" });
  const status = ok?.job?.status;
  assert.deepEqual(
    status?.pods.map(({ name, phase, node, reason }) => [name, phase, node, reason]),
    [
      ["mnist-master-0", "Running", "gpu-1", ""],
      ["mnist-worker-0", "Pending", "", "Unschedulable"],
      ["mnist-worker-1", "Pending", "", ""],
    ],
  );
  const listed = (await call(method.listJobs, {})).ok?.jobs[0]?.status;
  assert.deepEqual(listed?.pods, []);
  for (const { podProblems } of [status!, listed!]) {
    const [{ replicaType, pods, reason, message, since } = {}] = podProblems;
    assert.deepEqual([replicaType, pods, reason, message], ["Worker", 2, "Unschedulable", MESSAGE]);
    assert.equal(since && timestampMs(since), PROBLEM.sinceMs);
  }
});

test("ExplainJob says why pods of an admitted gang do not run", async (t) => {
  const { call } = await serveStuckGang(t);
  const { ok } = await call(method.explainJob, { name: "mnist" });
  assert.equal(
    ok?.summary,
    "default/mnist starts on cluster east: 0 of 3 pods active, at least 3 must run together; " +
      `2 Worker pods do not run: Unschedulable (${MESSAGE.slice(0, -1)})`,
  );
  assert.deepEqual([ok?.reason, ok?.podProblems.length], ["Unschedulable", 1]);
});

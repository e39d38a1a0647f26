import assert from "node:assert/strict";
import { connect } from "node:http2";
import { type TestContext, test } from "node:test";
import { type ClientReadableStream, type ServiceError, status } from "@grpc/grpc-js";
import type { JobWatch } from "../../src/api/ports.ts";
import {
  JobService,
  JobView,
  WatchJobsResponse_Type as Type,
  type WatchJobsResponse,
} from "../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { readRefusal, startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;

/** Reads the responses of a stream one by one, then its status. */
function reader(stream: ClientReadableStream<WatchJobsResponse>) {
  const responses = stream[Symbol.asyncIterator]();
  const next = async () => (await responses.next()).value as WatchJobsResponse;
  const end = () => new Promise<ServiceError>((resolve) => stream.on("error", resolve).resume());
  return { next, end };
}

const until = (holds: () => boolean) => waitUntil("the watch is as expected", holds, { pollMs: 1 });

test("a watch starts with all jobs, then sends every change with its cursor", async (t) => {
  const { call, stream, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob("one") });
  const { next } = reader(stream(method.watchJobs, {}));
  const added = await next();
  assert.deepEqual([added.type, added.job?.metadata?.name], [Type.ADDED, "one"]);
  assert.equal(added.job?.spec?.replicaSpecs["Worker"]?.template, undefined);
  const bookmark = await next();
  assert.deepEqual([bookmark.type, bookmark.job], [Type.BOOKMARK, undefined]);
  await call(method.createJob, { job: pytorchJob("two") });
  const second = await next();
  assert.deepEqual([second.type, second.job?.metadata?.name], [Type.ADDED, "two"]);
  await call(method.cancelJob, { name: "one", reason: "enough" });
  assert.equal((await next()).type, Type.MODIFIED);
  store.forget(store.jobs.get("default/one")!.job);
  assert.equal((await next()).type, Type.DELETED);

  const again = reader(stream(method.watchJobs, { cursor: second.cursor, view: JobView.FULL }));
  const modified = await again.next();
  assert.deepEqual([modified.type, modified.job?.metadata?.name], [Type.MODIFIED, "one"]);
  assert.notEqual(modified.job?.spec?.replicaSpecs["Worker"]?.template, undefined);
});

test("a watch ends when its client leaves, and leaves nothing behind", async (t) => {
  const { stream, store } = await startFixture(t);
  const watching = stream(method.watchJobs, {});
  const { next, end } = reader(watching);
  await next();
  assert.equal(store.watching, 1);
  const ended = end();
  watching.cancel();
  assert.equal((await ended).code, status.CANCELLED);
  await until(() => store.watching === 0);
});

test("a watch whose deadline passes ends with DEADLINE_EXCEEDED, and leaves nothing behind", async (t) => {
  const { client, store } = await startFixture(t);
  const path = "/gangway.v1.JobService/WatchJobs";
  const empty = () => Buffer.alloc(0);
  const watching = client.makeServerStreamRequest(path, empty, (bytes) => bytes, null, { deadline: Date.now() + 100 });
  const error = await new Promise<ServiceError>((resolve) => watching.on("error", resolve).resume());
  assert.equal(error.code, status.DEADLINE_EXCEEDED);
  await until(() => store.watching === 0);
});

async function startScripted(t: TestContext, entries: ReturnType<JobWatch["watch"]>) {
  const watch: JobWatch = { checkCursor: () => true, watch: () => entries };
  return startFixture(t, { watch });
}

test("a slow reader gets RESOURCE_EXHAUSTED, with the cursor to resume from", async (t) => {
  async function* entries() {
    yield { type: "BOOKMARK" as const, cursor: "41" };
    yield { type: "TOO_SLOW" as const, cursor: "41" };
  }
  const { stream } = await startScripted(t, entries());
  const watching = stream(method.watchJobs, {});
  const refusal = readRefusal(await reader(watching).end());
  assert.deepEqual([refusal.code, refusal.reason], ["RESOURCE_EXHAUSTED", "WATCH_TOO_SLOW"]);
  assert.deepEqual([refusal.metadata, refusal.retries], [{ cursor: "41" }, true]);
});

test("a cursor older than the log is answered with GAP", async (t) => {
  async function* entries() {
    yield { type: "GAP" as const, cursor: "90" };
  }
  const { stream } = await startScripted(t, entries());
  const { next } = reader(stream(method.watchJobs, { cursor: "1" }));
  const gap = await next();
  assert.deepEqual([gap.type, gap.cursor], [Type.GAP, "90"]);
});

test("nothing is read from the log while the client does not read", async (t) => {
  let taken = 0;
  const entryCount = 2000;
  async function* entries() {
    // Each cursor is 1 KiB, so that flow control has something to hold back.
    while (taken < entryCount) yield { type: "BOOKMARK" as const, cursor: String(taken++).padStart(1024, "0") };
  }
  const { api, call } = await startScripted(t, entries());
  // The client of grpc-js reads ahead even when it is paused; plain HTTP/2 does not.
  const session = connect(`http://${api.address}`);
  t.after(() => session.destroy());
  const headers = { ":method": "POST", "content-type": "application/grpc", te: "trailers" };
  const watching = session.request({ ...headers, ":path": "/gangway.v1.JobService/WatchJobs" });
  watching.end(Buffer.alloc(5));
  let before = -1;
  while (taken === 0 || before !== taken) {
    before = taken;
    for (let round = 0; round < 10; round++) await call(method.listKinds, {});
  }
  assert.ok(taken < entryCount / 2, `${taken} entries were taken`);
  const chunks = await watching.toArray();
  assert.ok(Buffer.concat(chunks).length > entryCount * 1024);
});

test("an error in the middle of a watch becomes a status", async (t) => {
  async function* entries(): AsyncGenerator<{ type: "BOOKMARK"; cursor: string }> {
    yield { type: "BOOKMARK", cursor: "1" };
    throw new Error("secret of the store");
  }
  const { stream, internal } = await startScripted(t, entries());
  const refusal = readRefusal(await reader(stream(method.watchJobs, {})).end());
  assert.equal(refusal.code, "INTERNAL");
  assert.doesNotMatch(JSON.stringify(refusal), /secret/);
  assert.equal(internal.length, 1);
});

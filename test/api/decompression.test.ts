/** Compressed requests, through a real server: they are paid for first, and have a size and a ratio. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, compressionAlgorithms, credentials } from "@grpc/grpc-js";
import { type LimitCalls, UNLIMITED_CALL } from "../../src/core/access/call-limits.ts";
import {
  BatchCreateJobsRequestSchema,
  CreateJobRequestSchema,
  JobService,
} from "../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { callsOf, startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import { frameOf, sendFrames, sendRaw } from "./send-raw.ts";

const MIB = 1024 * 1024;
const GZIP = { "grpc-encoding": "gzip" };
const DEFLATE = { "grpc-encoding": "deflate" };
const job = pytorchJob();
const bytesOf = (name: string) =>
  Buffer.from(
    toBinary(CreateJobRequestSchema, create(CreateJobRequestSchema, { job: { ...job, metadata: { name } } })),
  );

/** A service that notes what calls pay, and lets them have so many bytes. */
async function servePaid(t: TestContext, bytesMax = Number.POSITIVE_INFINITY) {
  const paid: number[] = [];
  const limited = { kind: "limited", limit: "callsPerSecond", max: 1, retryMs: 1, heldMs: 0 } as const;
  const pay = (bytes: number) => {
    paid.push(bytes);
    return bytes > bytesMax ? limited : null;
  };
  const limits: LimitCalls = { enter: () => ({ ...UNLIMITED_CALL, pay }), robotsOf: () => null };
  return { ...(await startFixture(t, { limits })), paid };
}

test("compressed calls of a client work, small and large ones, by gzip and by deflate", async (t) => {
  const { api, store, internal } = await startFixture(t);
  for (const algorithm of [compressionAlgorithms.gzip, compressionAlgorithms.deflate]) {
    const options = { "grpc.default_compression_algorithm": algorithm };
    const client = new Client(api.address, credentials.createInsecure(), options);
    t.after(() => client.close());
    const { call } = callsOf(client);
    const { error } = await call(JobService.method.createJob, {
      job: { ...job, metadata: { name: `one-${algorithm}` } },
    });
    assert.equal(error, null);
    const requests = Array.from({ length: 400 }, (_, at) => ({
      job: { ...job, metadata: { name: `a${algorithm}-${at}` } },
    }));
    assert.equal((await call(JobService.method.batchCreateJobs, { requests })).error, null);
  }
  assert.equal(store.jobs.size, 802);
  assert.deepEqual(internal, []);
});

test("a thousand equal jobs of a small batch may have any ratio", async (t) => {
  const { api, store } = await startFixture(t);
  const requests = Array.from({ length: 1_000 }, () => ({
    job: { ...job, metadata: { generateName: "a" } },
    validateOnly: true,
  }));
  const bytes = toBinary(BatchCreateJobsRequestSchema, create(BatchCreateJobsRequestSchema, { requests }));
  assert.ok(bytes.length < MIB);
  const path = "/gangway.v1.JobService/BatchCreateJobs";
  assert.equal((await sendRaw(api.address, GZIP, 1, gzipSync(bytes), path)).code, "OK");
  assert.equal(store.jobs.size, 0);
});

test("a caller pays for all bytes of a compressed request before one of them is decompressed", async (t) => {
  const { api, paid, store } = await servePaid(t, 100_000);
  // No decompression of these bytes would succeed.
  const broken = gzipSync(Buffer.alloc(500_000, "a"));
  broken.fill(0xff, 10, broken.length - 8);
  const refused = await sendRaw(api.address, GZIP, 1, broken);
  assert.deepEqual([refused.code, refused.reason], ["RESOURCE_EXHAUSTED", "TOO_MANY_CALLS"]);
  assert.deepEqual(paid, [500_000]);
  assert.equal(store.jobs.size, 0);
});

test("a compressed request is paid for once", async (t) => {
  const { api, paid, store } = await servePaid(t);
  const bytes = bytesOf("a");
  assert.equal((await sendRaw(api.address, GZIP, 1, gzipSync(bytes))).code, "OK");
  assert.deepEqual(paid, [bytes.length, 0]);
  assert.equal(store.jobs.size, 1);
});

const tooFar = {
  "beyond the size": { headers: GZIP, bytes: gzipSync(Buffer.alloc(17 * MIB)), says: /has 17825792 bytes/ },
  "beyond the ratio": { headers: GZIP, bytes: gzipSync(Buffer.alloc(15 * MIB)), says: /more than 100 times/ },
  "beyond the size that it names": {
    headers: GZIP,
    bytes: named(gzipSync(Buffer.alloc(2 * MIB)), 10),
    says: /the 10 that it names/,
  },
  "beyond the size of several parts": {
    headers: GZIP,
    bytes: Buffer.concat([gzipSync(Buffer.alloc(2 * MIB)), gzipSync(Buffer.alloc(10))]),
    says: /the 10 that it names/,
  },
  "deflated beyond the ratio": {
    headers: DEFLATE,
    bytes: deflateSync(Buffer.alloc(2 * MIB)),
    says: /more than 100 times/,
  },
};
for (const [name, { headers, bytes, says }] of Object.entries(tooFar)) {
  test(`a compressed request ${name} is refused`, async (t) => {
    const { api, store } = await startFixture(t);
    const refused = await sendRaw(api.address, headers, 1, bytes);
    assert.deepEqual([refused.code, refused.reason], ["RESOURCE_EXHAUSTED", "COMPRESSED_TOO_FAR"]);
    assert.match(refused.message, says);
    assert.equal(store.jobs.size, 0);
  });
}

test("a request that is not compressed as it says is the caller's mistake", async (t) => {
  const { api } = await startFixture(t);
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(10), Buffer.alloc(30)]) {
    const refused = await sendRaw(api.address, GZIP, 1, bytes);
    assert.deepEqual([refused.code, refused.reason], ["INVALID_ARGUMENT", "UNDECODABLE_REQUEST"]);
  }
});

test("of many compressed messages of one call only the first is decompressed", async (t) => {
  const { api, paid } = await servePaid(t);
  const message = frameOf(gzipSync(Buffer.alloc(MIB)), 1);
  const frames = Buffer.concat(Array.from({ length: 100 }, () => message));
  const refused = await sendFrames(api.address, { ":path": "/gangway.v1.JobService/CreateJob", ...GZIP }, frames);
  assert.notEqual(refused.code, "OK");
  assert.equal(paid.filter((bytes) => bytes === MIB).length, 1);
});

test("a caller at its limits pays for the bytes of a stream's request too", async (t) => {
  const { stream, paid } = await servePaid(t, 100);
  const names = Array.from({ length: 100 }, (_, at) => `name-${at}`);
  const refused = new Promise<Error>((resolve) => {
    stream(JobService.method.watchJobs, { filter: { names } })
      .on("error", resolve)
      .on("data", () => {});
  });
  assert.match((await refused).message, /makes more than 1 calls per second/);
  assert.equal(paid.length, 1);
});

test("renewals may be compressed, and are exempt from limits as before", async (t) => {
  const { api } = await startFixture(t);
  const client = new Client(api.address, credentials.createInsecure(), {
    "grpc.default_compression_algorithm": compressionAlgorithms.gzip,
  });
  t.after(() => client.close());
  const lines = Array.from({ length: 1_000 }, (_, at) => ({ resourceNamespace: "lic:x", allocationToken: `t${at}` }));
  const { error } = await callsOf(client).call(ResourceManager.method.renewAllocations, { lines });
  assert.notEqual(error?.code, "RESOURCE_EXHAUSTED");
});

/** A gzip that names another size in its trailer. */
function named(gzip: Buffer, size: number): Buffer {
  const changed = Buffer.from(gzip);
  changed.writeUInt32LE(size, changed.length - 4);
  return changed;
}

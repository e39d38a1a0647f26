import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { startApi } from "../../src/api/server.ts";
import { NO_CALL_LIMITS } from "../../src/core/access/call-limits.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Serving,
} from "../../src/gen/grpc/health/v1/health_pb.ts";
import { isLoopback, parseListenAddress } from "../../src/runtime/listen-address.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { anonymous } from "../support/anonymous.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { memoryRobots } from "../support/memory-robots.ts";
import { noResources } from "../support/no-resources.ts";
import { readRefusal, startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import { MemoryStore } from "./memory-store.ts";

const { method } = JobService;

test("a client sees only the reference of an internal error; the operator gets the cause", async (t) => {
  const cause = new Error("password in a connection string");
  const store = new MemoryStore();
  const reads = { ...store.reads, getJob: () => Promise.reject(cause) };
  const references: string[] = [];
  const { call } = await startFixture(t, {
    reads,
    onInternalError: (reference, seen) => {
      references.push(reference);
      assert.equal(seen, cause);
    },
  });
  const { error } = await call(method.getJob, { name: "mnist" });
  assert.equal(error?.code, "INTERNAL");
  assert.equal(error.message, `internal error, reference ${references[0]}`);
  assert.doesNotMatch(JSON.stringify(error), /password/);
});

test("a response that cannot be encoded is an internal error that the operator gets", async (t) => {
  const store = new MemoryStore();
  const reads = { ...store.reads, listJobs: async () => ({ jobs: [], next: null, total: 2 ** 40 }) };
  const { call, internal } = await startFixture(t, { reads });
  assert.equal((await call(method.listJobs, {})).error?.code, "INTERNAL");
  assert.equal(internal.length, 1);
});

test("a store that is away is UNAVAILABLE with RetryInfo", async (t) => {
  const store = new MemoryStore();
  const reads = { ...store.reads, listJobs: () => Promise.reject(new UnavailableError("the database is closed")) };
  const { call, internal } = await startFixture(t, { reads });
  const { error } = await call(method.listJobs, {});
  assert.deepEqual([error?.code, error?.reason, error?.retries], ["UNAVAILABLE", "STORE_UNAVAILABLE", true]);
  assert.deepEqual(internal, []);
});

test("a call whose deadline passes ends, although its handler still runs", async (t) => {
  const store = new MemoryStore();
  const finish = Promise.withResolvers<null>();
  let started = false;
  const getJob = () => {
    started = true;
    return finish.promise;
  };
  const { sendBytes, call, internal } = await startFixture(t, { reads: { ...store.reads, getJob } });
  const name = new Uint8Array([0x12, 1, 0x61]);
  // On a busy machine a deadline may pass before the handler is called.
  for (let deadlineMs = 100; !started; deadlineMs *= 2) {
    const { error } = await sendBytes(method.getJob, name, deadlineMs);
    assert.equal(error?.code, "DEADLINE_EXCEEDED");
  }
  finish.resolve(null);
  assert.equal((await call(method.listKinds, {})).error, null);
  assert.deepEqual(internal, []);
});

test("a message over 16 MiB is refused before it is read", async (t) => {
  const { sendBytes } = await startFixture(t);
  const { error } = await sendBytes(method.createJob, new Uint8Array(17 * 1024 * 1024));
  assert.equal(error?.code, "RESOURCE_EXHAUSTED");
});

test("health is reported per service and for the server, and changes when the server drains", async (t) => {
  const { call, stream, api } = await startFixture(t);
  for (const service of ["", "gangway.v1.JobService", "gangway.v1.QueueService"]) {
    assert.equal((await call(Health.method.check, { service })).ok?.status, Serving.SERVING, service);
  }
  assert.equal((await call(Health.method.check, { service: "nothing" })).error?.code, "NOT_FOUND");
  const watching = stream(Health.method.watch, create(HealthCheckRequestSchema, {}));
  watching.on("error", () => {});
  const statuses = watching[Symbol.asyncIterator]();
  assert.equal((await statuses.next()).value?.status, Serving.SERVING);
  api.drain();
  assert.equal((await statuses.next()).value?.status, Serving.NOT_SERVING);
  assert.equal((await call(Health.method.check, {})).ok?.status, Serving.NOT_SERVING);
});

test("closing ends streams with UNAVAILABLE, lets a call finish, and does not wait for a health watch", async (t) => {
  const store = new MemoryStore();
  const asked = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const reads = {
    ...store.reads,
    getJob: async () => {
      asked.resolve();
      await finish.promise;
      return null;
    },
  };
  const { api, stream, call } = await startFixture(t, { reads });
  const watching = stream(method.watchJobs, {});
  const ended = new Promise<ServiceError>((resolve) => watching.on("error", resolve));
  await new Promise((resolve) => watching.once("data", resolve));
  const health = stream(Health.method.watch, {});
  health.on("error", () => {});
  await new Promise((resolve) => health.once("data", resolve));
  const running = call(method.getJob, { name: "mnist" });
  await asked.promise;
  const closed = api.close();
  const refusal = readRefusal(await ended);
  assert.deepEqual([refusal.code, refusal.reason, refusal.retries], ["UNAVAILABLE", "SERVER_STOPPING", true]);
  finish.resolve();
  assert.equal((await running).error?.code, "NOT_FOUND");
  await closed;
  await api.close();
  const late = await call(method.createJob, { job: pytorchJob() });
  assert.equal(late.error?.code, "UNAVAILABLE");
});

test("an address that other machines can reach is refused without --insecure", async (t) => {
  const store = new MemoryStore();
  const { api } = await startFixture(t);
  const ports = {
    kinds: OWN_KINDS,
    intake: {
      submit: () => assert.fail(),
      submitAll: () => assert.fail(),
      check: () => assert.fail(),
      change: () => assert.fail(),
      cancel: () => assert.fail(),
      remove: () => assert.fail(),
      make: () => assert.fail(),
    },
    reads: store.reads,
    simulate: () => assert.fail(),
    watch: store.watch,
    logs: { look: () => assert.fail(), open: () => assert.fail() },
    pods: { ofJob: () => assert.fail() },
    admin: store.admin,
    priorityClasses: store.priorityClasses,
    runtimes: store.runtimes,
    clusters: store.clusterAdmin,
    resources: noResources(),
    limitsChanged: async () => {},
    wakePlanner: () => {},
    clock: (await import("../../src/runtime/clock.ts")).systemClock(),
    authenticate: anonymous,
    limits: NO_CALL_LIMITS,
    authorization: null,
    access: memoryAccess().admin,
    robots: memoryRobots(),
    onInternalError: () => {},
  };
  await assert.rejects(
    startApi(ports, { listen: "0.0.0.0:0", insecure: false, tls: null, authenticates: false }),
    /will not listen on 0\.0\.0\.0:0: .*--insecure/,
  );
  const open = await startApi(ports, { listen: "0.0.0.0:0", insecure: true, tls: null, authenticates: false });
  await open.close();
  await assert.rejects(
    startApi(ports, { listen: "nonsense", insecure: false, tls: null, authenticates: false }),
    /it must be HOST:PORT/,
  );
  await assert.rejects(
    startApi(ports, { listen: api.address, insecure: false, tls: null, authenticates: false }),
    /cannot listen on 127\.0\.0\.1:\d+: .*(in use|EADDRINUSE)/i,
  );
});

test("addresses are read with their brackets, and recognized as loopback or not", () => {
  assert.deepEqual(parseListenAddress("[::1]:50051"), { host: "::1", port: 50051 });
  assert.deepEqual(parseListenAddress("localhost:0"), { host: "localhost", port: 0 });
  for (const wrong of ["", "1234", "host:", "host:70000", "::1:50"])
    assert.throws(() => parseListenAddress(wrong), /HOST:PORT/);
  for (const host of ["127.0.0.1", "127.9.9.9", "::1", "localhost"]) assert.equal(isLoopback(host), true, host);
  for (const host of ["0.0.0.0", "10.0.0.1", "::", "example.com"]) assert.equal(isLoopback(host), false, host);
});

test("the server listens on IPv6 if the machine has it", async (t) => {
  const hasIpv6 = await new Promise<boolean>((resolve) => {
    const probe = createServer().once("error", () => resolve(false));
    probe.listen(0, "::1", () => probe.close(() => resolve(true)));
  });
  if (!hasIpv6) return t.skip("this machine has no IPv6 loopback: give its loopback interface the address ::1");
  const store = new MemoryStore();
  const { systemClock } = await import("../../src/runtime/clock.ts");
  const intake = {
    submit: () => assert.fail(),
    submitAll: () => assert.fail(),
    check: () => assert.fail(),
    change: () => assert.fail(),
    cancel: () => assert.fail(),
    remove: () => assert.fail(),
    make: () => assert.fail(),
  };
  const { reads, watch, admin, priorityClasses, runtimes, clusterAdmin: clusters } = store;
  const logs = { look: () => assert.fail(), open: () => assert.fail() };
  const hooks = {
    limitsChanged: async () => {},
    wakePlanner: () => {},
    onInternalError: () => {},
    authenticate: anonymous,
    limits: NO_CALL_LIMITS,
    authorization: null,
    access: memoryAccess().admin,
    robots: memoryRobots(),
  };
  const rest = { runtimes, simulate: () => assert.fail(), resources: noResources(), clock: systemClock(), ...hooks };
  const pods = { ofJob: () => assert.fail() };
  const ports = { kinds: OWN_KINDS, intake, reads, watch, logs, pods, admin, priorityClasses, clusters, ...rest };
  const api = await startApi(ports, { listen: "[::1]:0", insecure: false, tls: null, authenticates: false });
  assert.match(api.address, /^\[::1\]:\d+$/);
  const client = new Client(api.address, credentials.createInsecure());
  await new Promise<void>((resolve, reject) =>
    client.waitForReady(Date.now() + 60_000, (error) => (error ? reject(error) : resolve())),
  );
  client.close();
  await api.close();
});

test("a method that is not served is UNIMPLEMENTED", async (t) => {
  const { client } = await startFixture(t);
  const error = await new Promise<ServiceError | null>((resolve) => {
    const raw = (bytes: Buffer) => bytes;
    client.makeUnaryRequest("/gangway.v1.JobService/NoSuchMethod", raw, raw, Buffer.alloc(0), (failed) =>
      resolve(failed),
    );
  });
  assert.equal(error?.code, status.UNIMPLEMENTED);
});

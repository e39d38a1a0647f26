/** Limits of callers, through a real server: what is refused, in which words, and what frees a place. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type ServiceError, status } from "@grpc/grpc-js";
import { createCallRates } from "../../src/access/call-rates.ts";
import { limitCalls } from "../../src/access/limited-calls.ts";
import type { ApiPorts } from "../../src/api/server.ts";
import { CALL_LIMIT_DEFAULTS, type CallLimits } from "../../src/core/access/call-limits.ts";
import { AccessService } from "../../src/gen/gangway/v1/access_service_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { waitUntil } from "../support/bounded.ts";
import { knownCallers } from "../support/known-callers.ts";
import { callsOf, readRefusal, startFixture } from "./fixture.ts";
import { withToken } from "./with-token.ts";

/** A service whose limits a test may change. `as` gives the calls of a caller, by a connection of its own. */
async function serveLimited(t: TestContext, first: Partial<CallLimits>) {
  const known = await knownCallers(t);
  const of = { limits: { ...CALL_LIMIT_DEFAULTS, ...first } };
  const limited: string[] = [];
  const limits = limitCalls({
    clock: systemClock(),
    settings: () => ({ defaults: of.limits, callers: [] }),
    rates: createCallRates({ clock: systemClock(), runScript: null, onAway: (error) => assert.fail(String(error)) }),
    onLimited: (limit) => void limited.push(limit),
  });
  const fixture = await startFixture(t, { authenticate: known.authenticate, robots: known.robots, limits });
  const as = async (name: string) => {
    const { subject, token } = await known.caller("robot", name);
    return { subject, ...callsOf(withToken(fixture.client, token)) };
  };
  return { ...fixture, of, limited, as, limits };
}

const HELD_MS = 3_600_123;
const { whoAmI } = AccessService.method;

test("calls beyond the rate are refused with what is exceeded and when to try again", async (t) => {
  const { as, limited, of } = await serveLimited(t, { callsPerSecond: 1, burst: 1 });
  const [ann, bob] = [await as("ann"), await as("bob")];
  let refused = null;
  while (refused === null) refused = (await ann.call(whoAmI, {})).error;
  assert.deepEqual([refused.code, refused.reason, refused.retries], ["RESOURCE_EXHAUSTED", "TOO_MANY_CALLS", true]);
  assert.deepEqual(refused.quota, {
    subject: "caller robot:ann",
    description: "makes more than 1 calls per second; a large request or answer counts as several",
  });
  assert.equal(limited[0], "callsPerSecond");
  assert.equal((await bob.call(whoAmI, {})).error, null, "another caller has its own rate");
  const release = { resourceNamespace: "lic:x", name: "one" };
  for (let at = 0; at < 20; at++) {
    const { error } = await ann.call(ResourceManager.method.releaseResource, release);
    assert.notEqual(error?.code, "RESOURCE_EXHAUSTED");
  }
  of.limits = CALL_LIMIT_DEFAULTS;
  assert.equal((await ann.call(whoAmI, {})).error, null, "new limits count at once");
});

test("a refusal that is held back is given up with its call", async (t) => {
  const held: { readonly ms: number; readonly signal: AbortSignal | undefined }[] = [];
  const real = systemClock();
  const sleep: Clock["sleep"] = (ms, signal) => {
    if (ms === HELD_MS) held.push({ ms, signal });
    return real.sleep(ms, signal);
  };
  const limited = { kind: "limited", limit: "callsPerSecond", max: 1, retryMs: 1, heldMs: HELD_MS } as const;
  const limits = { enter: async () => limited, robotsOf: () => null };
  const { client } = await startFixture(t, { limits, clock: { ...real, sleep } });
  const [path, same] = ["/gangway.v1.AccessService/WhoAmI", (bytes: Buffer) => bytes];
  const call = client.makeUnaryRequest(path, same, same, Buffer.alloc(0), () => {});
  await waitUntil("the refusal is held back", () => held.length === 1);
  assert.equal(held[0]?.signal?.aborted, false);
  call.cancel();
  await waitUntil("nothing waits for the call", () => held[0]?.signal?.aborted === true);
});

test("a caller that calls on and on is refused with the same words, later", async (t) => {
  const { as } = await serveLimited(t, { callsPerSecond: 1, burst: 1 });
  const { call } = await as("ann");
  const answers = await Promise.all(Array.from({ length: 130 }, () => call(whoAmI, {})));
  const refused = answers.flatMap(({ error }) => (error === null ? [] : [error]));
  assert.ok(refused.length > 120);
  for (const { code, reason, retries } of refused) {
    assert.deepEqual([code, reason, retries], ["RESOURCE_EXHAUSTED", "TOO_MANY_CALLS", true]);
  }
});

test("while others make calls a caller has eight that run, and its others follow as those end", async (t) => {
  const known = await knownCallers(t);
  let gate = Promise.withResolvers<void>();
  let running: string[] = [];
  const getJob: ApiPorts["reads"]["getJob"] = async (which) => {
    running.push("name" in which ? which.name : "");
    await gate.promise;
    return null;
  };
  const { client } = await startFixture(t, {
    authenticate: known.authenticate,
    reads: { getJob } as unknown as ApiPorts["reads"],
    // No time passes, so that both callers have made a call a moment ago.
    clock: { ...systemClock(), monotonicMs: () => 0 },
    limits: limitCalls({
      clock: { monotonicMs: () => 0 },
      settings: () => ({ defaults: CALL_LIMIT_DEFAULTS, callers: [] }),
      rates: { take: async () => null },
      onLimited: (limit) => assert.fail(limit),
    }),
  });
  const as = async (name: string) => withToken(client, (await known.caller("robot", name)).token);
  const [ann, bob] = [await as("ann"), await as("bob")];
  const asked = (of: typeof client, name: string) => callsOf(of).call(JobService.method.getJob, { name });
  assert.equal((await callsOf(ann).call(whoAmI, {})).error, null);
  assert.equal((await callsOf(bob).call(whoAmI, {})).error, null);
  const calls = Array.from({ length: 30 }, () => asked(ann, "of-ann"));
  await waitUntil("eight run", () => running.length === 8);
  calls.push(asked(bob, "of-bob"));
  await waitUntil("a call of another caller runs beside them", () => running.includes("of-bob"));
  assert.equal(running.length, 9);
  const { releaseResource } = ResourceManager.method;
  const released = await callsOf(ann).call(releaseResource, { resourceNamespace: "lic:x", allocationToken: "one" });
  assert.notEqual(released.error?.code, "RESOURCE_EXHAUSTED", "a release waits for none of them");
  const carl = await as("carl");
  assert.equal((await callsOf(carl).call(whoAmI, {})).error, null, "and neither does a third caller");
  const same = (bytes: Buffer) => bytes;
  for (let at = 0; at < 10; at++) {
    const gone = ann.makeUnaryRequest("/gangway.v1.JobService/GetJob", same, same, Buffer.alloc(0), () => {});
    gone.cancel();
  }
  gate.resolve();
  const answers = await Promise.all(calls);
  assert.deepEqual(new Set(answers.map(({ error }) => error?.code)), new Set(["NOT_FOUND"]));
  [gate, running] = [Promise.withResolvers<void>(), []];
  const more = Array.from({ length: 8 }, () => asked(ann, "of-ann"));
  await waitUntil("as many run as before, whatever was given up", () => running.length === 8);
  gate.resolve();
  await Promise.all(more);
});

test("bytes of a request count as calls", async (t) => {
  const { as } = await serveLimited(t, { callsPerSecond: 1, burst: 20 });
  const { call } = await as("ann");
  const template = { spec: { containers: [{ args: ["x".repeat(15 * 65_536)] }] } };
  const big = { job: { metadata: { name: "-" }, spec: { kind: "Job", replicaSpecs: { Worker: { template } } } } };
  const first = await call(JobService.method.createJob, big);
  assert.equal(first.error?.code, "INVALID_ARGUMENT", "a request within the burst is handled");
  assert.equal((await call(JobService.method.createJob, big)).error?.reason, "TOO_MANY_CALLS");
});

test("a watch holds a place until it ends", async (t) => {
  const { as, limited } = await serveLimited(t, { watches: 2 });
  const { stream, call } = await as("ann");
  const watch = () => {
    const opened = stream(JobService.method.watchJobs, {});
    const ended = new Promise<number>((resolve) => opened.on("error", (error: ServiceError) => resolve(error.code)));
    const sent = new Promise<"sent">((resolve) => opened.once("data", () => resolve("sent")));
    return { opened, first: Promise.race([ended, sent]) };
  };
  const open = [watch(), watch()];
  assert.deepEqual(await Promise.all(open.map(({ first }) => first)), ["sent", "sent"]);
  assert.equal(await watch().first, status.RESOURCE_EXHAUSTED);
  assert.deepEqual(limited, ["watches"]);
  assert.equal((await call(whoAmI, {})).error, null, "watches take no place of other calls");
  open[0]?.opened.cancel();
  await waitUntil("there is a place for a watch", async () => (await watch().first) === "sent");
});

const places: Record<
  string,
  { rpc: string; reason: string; send: (by: ReturnType<typeof callsOf>) => Promise<unknown> }
> = {
  callsInFlight: {
    rpc: "gangway.v1.JobService/ListKinds",
    reason: "TOO_MANY_CALLS_IN_FLIGHT",
    send: ({ call }) => call(JobService.method.listKinds, {}),
  },
  watches: {
    rpc: "gangway.v1.JobService/WatchJobs",
    reason: "TOO_MANY_WATCHES",
    send: ({ stream }) => errorOf(stream(JobService.method.watchJobs, {})),
  },
  logStreams: {
    rpc: "gangway.v1.JobService/StreamJobLogs",
    reason: "TOO_MANY_LOG_STREAMS",
    send: ({ stream }) => errorOf(stream(JobService.method.streamJobLogs, { name: "a" })),
  },
  waitingRequests: {
    rpc: "gangway.v1.ResourceManager/WaitForResource",
    reason: "TOO_MANY_WAITING_REQUESTS",
    send: ({ call }) =>
      call(ResourceManager.method.waitForResource, { resourceNamespace: "lic:x", allocationToken: "t" }),
  },
};

async function errorOf(stream: { on: (event: "error", heard: (error: ServiceError) => void) => unknown }) {
  return { error: readRefusal(await new Promise<ServiceError>((resolve) => stream.on("error", resolve))) };
}

for (const [limit, { rpc, reason, send }] of Object.entries(places)) {
  test(`a call beyond ${limit} says what is exceeded and when to try again, and releases go on`, async (t) => {
    const { as, limits, limited } = await serveLimited(t, { [limit]: 1 });
    const ann = await as("ann");
    const identity = { subject: ann.subject, groups: [], method: "robot", issuer: "", expiresAtMs: null } as const;
    const held = await limits.enter(identity, rpc);
    assert.ok(held.kind === "entered");
    const { error } = (await send(ann)) as { error: ReturnType<typeof readRefusal> | null };
    assert.deepEqual([error?.code, error?.reason, error?.retries], ["RESOURCE_EXHAUSTED", reason, true]);
    assert.equal(error?.quota?.subject, "caller robot:ann");
    assert.match(error?.quota?.description ?? "", / 1 /);
    assert.deepEqual(limited, [limit]);
    const { releaseResource, renewAllocations } = ResourceManager.method;
    const answers = [
      await ann.call(releaseResource, { resourceNamespace: "lic:x", allocationToken: "t" }),
      await ann.call(renewAllocations, { lines: [{ resourceNamespace: "lic:x", allocationToken: "t" }] }),
    ];
    for (const answer of answers) assert.notEqual(answer.error?.code, "RESOURCE_EXHAUSTED");
    assert.deepEqual(limited, [limit]);
  });
}

test("probes are never limited", async (t) => {
  const { as } = await serveLimited(t, { callsPerSecond: 1, burst: 0, callsInFlight: 1 });
  const { call } = await as("ann");
  const answers = await Promise.all(Array.from({ length: 30 }, () => call(Health.method.check, {})));
  assert.deepEqual(new Set(answers.map(({ error }) => error)), new Set([null]));
});

test("robots beyond the limit of their maker are refused, and a revoked one makes room", async (t) => {
  const { as, of, limited } = await serveLimited(t, { robots: 2 });
  const [ann, bob] = [await as("ann"), await as("bob")];
  const { createRobotToken, revokeRobotToken } = AccessService.method;
  for (const name of ["one", "two"]) assert.equal((await ann.call(createRobotToken, { name })).error, null);
  const { error } = await ann.call(createRobotToken, { name: "three" });
  assert.deepEqual(
    [error?.code, error?.reason, error?.message],
    [
      "RESOURCE_EXHAUSTED",
      "TOO_MANY_ROBOTS_OF_CALLER",
      "caller robot:ann has made 2 robots whose tokens count, which is its limit: " +
        "revoke one first: gangway robot revoke NAME",
    ],
  );
  assert.equal((await bob.call(createRobotToken, { name: "three" })).error, null);
  await ann.call(revokeRobotToken, { name: "one" });
  assert.equal((await ann.call(createRobotToken, { name: "four" })).error, null);
  assert.equal((await ann.call(createRobotToken, { name: "five" })).error?.reason, "TOO_MANY_ROBOTS_OF_CALLER");
  of.limits = { ...of.limits, robots: null };
  assert.equal((await ann.call(createRobotToken, { name: "five" })).error, null);
  assert.deepEqual(limited, []);
});

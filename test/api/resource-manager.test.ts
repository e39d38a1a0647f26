import assert from "node:assert/strict";
import { test } from "node:test";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type ClientReadableStream, type ServiceError, status } from "@grpc/grpc-js";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import {
  AllocationStatus,
  Durability,
  QuotaDifference_Kind,
  ReleaseOutcome,
  RenewResult_Outcome,
  ResourceManager,
  Violation_Scope,
  type WaitForResourceResponse,
} from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { TokenContendedError, UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { noResources } from "../support/no-resources.ts";
import { readRefusal, startFixture } from "./fixture.ts";

const { method } = ResourceManager;
const POOL = "ex:warehouse";
const { GRANTED, EXHAUSTED, NAMESPACE_QUOTA_EXCEEDED } = AllocationStatus;
const ask = (allocationToken: string, more: object = {}) => ({ resourceNamespace: POOL, allocationToken, ...more });

async function withPool(t: Parameters<typeof startFixture>[0], settings: object = {}) {
  const fixture = await startFixture(t);
  const { call } = fixture;
  const pool = { resourceNamespace: POOL, quota: 4n, defaultLease: durationFromMs(3_600_000) };
  const { error } = await call(method.registerResourceQuota, { ...pool, ...settings });
  assert.equal(error, null);
  return fixture;
}

test("tokens of a pool of which only the quota is given do not lapse, and are listed by age", async (t) => {
  const { call } = await startFixture(t);
  const plain = { resourceNamespace: POOL, quota: 4n };
  const made = await call(method.registerResourceQuota, plain);
  assert.equal(made.ok?.pool?.defaultLease?.seconds, 0n);
  const tokens = [{ allocationToken: "old" }, { allocationToken: "leased", lease: durationFromMs(60_000) }];
  for (const token of [...tokens, { allocationToken: "young" }]) {
    const granted = await call(method.allocateResource, { resourceNamespace: POOL, ...token });
    assert.equal(granted.ok?.expireTime === undefined, !("lease" in token));
  }
  const listed = await call(method.listAllocations, { filter: { neverLapses: true } });
  const names = listed.ok?.allocations.map(({ allocationToken }) => allocationToken);
  assert.deepEqual(names, ["old", "young"]);
  const leased = { resourceNamespace: "ex:leased", quota: 4n, projectDefault: 1n };
  assert.equal((await call(method.registerResourceQuota, leased)).ok?.pool?.defaultLease?.seconds, 3600n);
  const again = await call(method.registerResourceQuota, { resourceNamespace: "ex:leased", quota: 5n });
  assert.equal(again.ok?.pool?.defaultLease?.seconds, 3600n, "a pool that exists stays as it is");
});

test("a pool has its defaults when it is new, and keeps what a change does not name", async (t) => {
  const { call, woken } = await startFixture(t);
  const made = await call(method.registerResourceQuota, { resourceNamespace: POOL, quota: 4n, projectDefault: 2n });
  const { version, domain, durability, defaultLease, maxLease, projectDefault, namespaceDefault } = made.ok!.pool!;
  assert.deepEqual([version, domain, durability, defaultLease?.seconds], [1n, "default", Durability.LEDGER, 3600n]);
  assert.deepEqual([maxLease, projectDefault, namespaceDefault], [undefined, 2n, undefined]);
  assert.equal(woken.planner, 1);
  const changed = await call(method.registerResourceQuota, {
    resourceNamespace: POOL,
    quota: 8n,
    defaultLease: durationFromMs(0),
    maxLease: durationFromMs(90_500),
    version: 1n,
  });
  const pool = changed.ok!.pool!;
  assert.deepEqual([pool.quota, pool.projectDefault, pool.version], [8n, 2n, 2n]);
  assert.deepEqual([pool.defaultLease?.seconds, pool.maxLease?.seconds, pool.maxLease?.nanos], [0n, 90n, 500_000_000]);
  const lifted = { resourceNamespace: POOL, quota: 8n, projectDefault: 2n ** 53n - 1n };
  assert.equal((await call(method.registerResourceQuota, lifted)).ok?.pool?.projectDefault, undefined);
});

test("refuses a change of a pool from a stale version, of a fixed field, and with an unknown queue", async (t) => {
  const { call } = await withPool(t);
  const change = (more: object) => call(method.registerResourceQuota, { resourceNamespace: POOL, quota: 1n, ...more });
  const stale = await change({ version: 7n });
  assert.deepEqual([stale.error?.code, stale.error?.reason], ["ABORTED", "STALE_RESOURCE_VERSION"]);
  const domain = await change({ domain: "other" });
  assert.deepEqual([domain.error?.code, domain.error?.precondition], ["FAILED_PRECONDITION", "DOMAIN_FIXED"]);
  assert.match(domain.error!.message, /pool ex:warehouse has domain default/);
  const durability = await change({ durability: Durability.REDIS });
  assert.equal(durability.error?.precondition, "DURABILITY_FIXED");
  const queue = await change({ queue: "nobody" });
  assert.deepEqual([queue.error?.code, queue.error?.resource], ["NOT_FOUND", "nobody"]);
  assert.equal((await call(method.getPool, { name: POOL })).ok?.pool?.version, 1n);
});

test("there are only so many pools, tokens and waiters", async (t) => {
  const { call, stream, resources } = await withPool(t);
  for (let at = 1; at < 50; at++) await call(method.registerResourceQuota, { resourceNamespace: `p${at}`, quota: 1n });
  const pools = await call(method.registerResourceQuota, { resourceNamespace: "one-more", quota: 1n });
  assert.deepEqual([pools.error?.code, pools.error?.reason], ["RESOURCE_EXHAUSTED", "TOO_MANY_POOLS"]);
  assert.equal(pools.error?.quota?.subject, "the service");
  assert.match(pools.error!.quota!.description, /would have more than 50 pools/);
  resources.tokensMax = 1;
  resources.waitersMax = 0;
  resources.refresh();
  await call(method.allocateResource, ask("a", { amount: 4n }));
  const tokens = await call(method.allocateResource, ask("b"));
  assert.deepEqual([tokens.error?.code, tokens.error?.reason], ["RESOURCE_EXHAUSTED", "TOO_MANY_TOKENS"]);
  assert.equal(tokens.error?.retries, true);
  resources.tokensMax = 10;
  resources.refresh();
  const failed = await read(stream(method.waitForResource, ask("b"))).failure();
  assert.equal(readRefusal(failed).reason, "LINE_FULL");
});

test("a token is granted once however often it is asked for, and released once", async (t) => {
  const { call, resources } = await withPool(t);
  const before = Date.now();
  const first = await call(method.allocateResource, ask("q1", { amount: 3n, lease: durationFromMs(60_000) }));
  assert.deepEqual([first.ok?.status, first.ok?.held, first.ok?.violated], [GRANTED, false, undefined]);
  assert.ok(timestampMs(first.ok!.expireTime!) >= before + 60_000);
  const again = await call(method.allocateResource, ask("q1", { amount: 3n }));
  assert.deepEqual([again.ok?.status, again.ok?.held, again.ok?.fence], [GRANTED, true, first.ok!.fence]);
  assert.equal((await call(method.getPool, { name: POOL })).ok?.pool?.used, 3n);
  const outcomes = [];
  for (let n = 0; n < 2; n++) outcomes.push((await call(method.releaseResource, ask("q1"))).ok?.outcome);
  assert.deepEqual(outcomes, [ReleaseOutcome.RELEASED, ReleaseOutcome.NOT_HELD]);
  assert.equal(resources.held.length, 0);
  const later = await call(method.allocateResource, ask("q1"));
  assert.ok(later.ok!.fence > first.ok!.fence);
});

test("an answer that refuses says what is in the way: scope, name, used, limit", async (t) => {
  const { call, resources } = await withPool(t, { projectDefault: 3n });
  resources.queues.push({ queue: "etl", pool: POOL, parent: null, ceiling: 1, guarantee: 0 });
  resources.refresh();
  const refused = async (token: string, more: object) => {
    const { ok } = await call(method.allocateResource, ask(token, more));
    const { scope, name, used, limit, requested, resourceNamespace } = ok!.violated!;
    assert.equal(resourceNamespace, POOL);
    return [ok!.status, scope, name, used, limit, requested];
  };
  await call(method.allocateResource, ask("a", { amount: 2n, project: "nlp", namespace: "dev" }));
  const { POOL: pool, PROJECT, NAMESPACE, QUEUE } = Violation_Scope;
  assert.deepEqual(await refused("b", { amount: 3n }), [EXHAUSTED, pool, POOL, 2n, 4n, 3n]);
  assert.deepEqual(await refused("b", { amount: 2n, queue: "etl" }), [EXHAUSTED, QUEUE, "etl", 0n, 1n, 2n]);
  const inProject = { project: "nlp", amount: 2n };
  assert.deepEqual(await refused("b", inProject), [NAMESPACE_QUOTA_EXCEEDED, PROJECT, "nlp", 2n, 3n, 2n]);
  const capped = { project: "nlp", namespace: "dev", resourceConstraints: { namespaceScope: { value: 2n } } };
  assert.deepEqual(await refused("b", capped), [NAMESPACE_QUOTA_EXCEEDED, NAMESPACE, "nlp/dev", 2n, 2n, 1n]);
  const none = { project: "cv", resourceConstraints: { projectScope: { value: 0n } } };
  assert.deepEqual(await refused("b", none), [NAMESPACE_QUOTA_EXCEEDED, PROJECT, "cv", 0n, 0n, 1n]);
  assert.equal(resources.held.length, 1);
});

test("of a frozen pool nothing is granted; who holds goes on, and who waits gets its turn later", async (t) => {
  const { call, stream } = await withPool(t);
  await call(method.allocateResource, ask("a", { amount: 2n }));
  const frozen = await call(method.freezePool, { name: POOL, reason: "audit" });
  assert.deepEqual([frozen.ok?.pool?.freeze?.reason, frozen.ok?.pool?.quota], ["audit", 4n]);
  const refused = await call(method.allocateResource, ask("b"));
  const { frozen: isFrozen, used, limit, scope } = refused.ok!.violated!;
  assert.deepEqual([refused.ok?.status, isFrozen, scope], [EXHAUSTED, true, Violation_Scope.POOL]);
  assert.deepEqual([used, limit], [2n, 0n]);
  const again = await call(method.allocateResource, ask("a", { amount: 2n }));
  assert.deepEqual([again.ok?.status, again.ok?.held], [GRANTED, true]);
  const line = read(stream(method.waitForResource, ask("c")));
  const first = await line.next();
  assert.equal(first.case === "position" && first.value.violated?.frozen, true);
  assert.equal((await call(method.releaseResource, ask("a"))).ok?.outcome, ReleaseOutcome.RELEASED);
  assert.equal((await call(method.allocateResource, ask("b"))).ok?.violated?.frozen, true);
  await call(method.unfreezePool, { name: POOL });
  for (let update = await line.next(); update.case !== "granted"; ) update = await line.next();
  assert.equal((await call(method.getPool, { name: POOL })).ok?.pool?.freeze, undefined);
  const long = await call(method.freezePool, { name: POOL, reason: "x".repeat(1025) });
  assert.equal(long.error?.code, "INVALID_ARGUMENT");
  assert.equal((await call(method.freezePool, { name: "nothing" })).error?.reason, "POOL_NOT_FOUND");
});

test("only its holder renews and releases a token, with the amount that it has", async (t) => {
  const { call } = await withPool(t);
  const { ok } = await call(method.allocateResource, ask("a", { holder: "ann", project: "nlp" }));
  const bob = await call(method.allocateResource, ask("a", { holder: "bob" }));
  assert.deepEqual([bob.error?.code, bob.error?.reason], ["ALREADY_EXISTS", "TOKEN_HELD_OTHERWISE"]);
  assert.match(bob.error!.message, new RegExp(`held by ann with amount 1 under fence ${ok!.fence}`));
  const amount = await call(method.allocateResource, ask("a", { holder: "ann", amount: 2n }));
  assert.equal(amount.error?.code, "ALREADY_EXISTS");
  const release = await call(method.releaseResource, ask("a"));
  assert.deepEqual([release.error?.code, release.error?.reason], ["PERMISSION_DENIED", "OTHER_HOLDER"]);
  const elsewhere = await call(method.releaseResource, ask("a", { holder: "ann", project: "cv" }));
  assert.deepEqual([elsewhere.error?.code, elsewhere.error?.precondition], ["FAILED_PRECONDITION", "OTHER_SCOPE"]);
  assert.match(elsewhere.error!.message, /held in project nlp and namespace default/);
  const mine = await call(method.releaseResource, ask("a", { holder: "ann", project: "nlp" }));
  assert.equal(mine.ok?.outcome, ReleaseOutcome.RELEASED);
});

test("a renewal says of each line what became of it, and what lapsed is lost for good", async (t) => {
  const { call, resources } = await withPool(t, { defaultLease: durationFromMs(10_000) });
  const { ok } = await call(method.allocateResource, ask("a"));
  await call(method.allocateResource, ask("b", { holder: "bob" }));
  await call(method.allocateResource, ask("long", { lease: durationFromMs(60_000) }));
  const lines = [ask("a"), ask("b"), ask("c"), { resourceNamespace: "nowhere", allocationToken: "a" }];
  const renewed = await call(method.renewAllocations, { lines, lease: durationFromMs(30_000) });
  const { RENEWED, OTHER_HOLDER, LOST, UNKNOWN_POOL } = RenewResult_Outcome;
  const outcomes = renewed.ok?.results.map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, [RENEWED, OTHER_HOLDER, LOST, UNKNOWN_POOL]);
  assert.equal(renewed.ok?.results[0]?.fence, ok!.fence);
  resources.pass(31_000);
  const late = await call(method.renewAllocations, { lines: [ask("a"), ask("long")] });
  assert.deepEqual(
    late.ok?.results.map(({ outcome }) => outcome),
    [LOST, RENEWED],
  );
  assert.equal((await call(method.releaseResource, ask("a"))).ok?.outcome, ReleaseOutcome.NOT_HELD);
});

test("a lease longer than the pool's longest is refused by its field", async (t) => {
  const { call } = await withPool(t, { defaultLease: durationFromMs(1000), maxLease: durationFromMs(60_000) });
  const lease = durationFromMs(60_001);
  const one = await call(method.allocateResource, ask("a", { lease }));
  assert.deepEqual(one.error?.fields, [{ field: "lease", description: "must be at most 60s, the pool's max_lease" }]);
  const line = await call(method.batchAllocateResources, { lines: [ask("a"), ask("b", { lease })] });
  assert.equal(line.error?.fields[0]?.field, "lines[1].lease");
  const batch = await call(method.batchAllocateResources, { lines: [ask("a")], lease });
  assert.equal(batch.error?.fields[0]?.field, "lease");
  await call(method.allocateResource, ask("a"));
  const renewal = await call(method.renewAllocations, { lines: [ask("a")], lease });
  assert.equal(renewal.error?.fields[0]?.field, "lease");
});

test("a batch is granted as a whole under one fence, or not at all", async (t) => {
  const { call, resources } = await withPool(t, { defaultLease: durationFromMs(0) });
  const leased = { resourceNamespace: "gpu/h100", quota: 8n, defaultLease: durationFromMs(60_000) };
  await call(method.registerResourceQuota, leased);
  const gpu = { resourceNamespace: "gpu/h100", allocationToken: "a", amount: 8n };
  const lines = [ask("a", { amount: 4n }), gpu];
  const granted = await call(method.batchAllocateResources, { lines, holder: "ann" });
  assert.deepEqual([granted.ok?.status, granted.ok?.held], [GRANTED, false]);
  assert.deepEqual(
    granted.ok?.lines.map((line) => [line.resourceNamespace, line.expireTime === undefined]),
    [
      [POOL, true],
      ["gpu/h100", false],
    ],
  );
  assert.deepEqual(new Set(resources.held.map(({ fence }) => fence)), new Set([granted.ok!.fence]));
  const again = await call(method.batchAllocateResources, { lines, holder: "ann" });
  assert.deepEqual([again.ok?.held, again.ok?.fence], [true, granted.ok!.fence]);
  await call(method.releaseResource, ask("a", { holder: "ann" }));
  const second = { ...gpu, allocationToken: "b" };
  const refused = await call(method.batchAllocateResources, { lines: [ask("b"), second] });
  assert.deepEqual([refused.ok?.status, refused.ok?.line, refused.ok?.violated?.name], [EXHAUSTED, 1, "gpu/h100"]);
  assert.equal(resources.held.length, 1);
});

test("pools of different domains or durabilities are not granted together", async (t) => {
  const { call } = await withPool(t);
  await call(method.registerResourceQuota, { resourceNamespace: "b", quota: 1n, domain: "other" });
  const lines = [ask("a"), { resourceNamespace: "b", allocationToken: "a" }];
  const { error } = await call(method.batchAllocateResources, { lines });
  assert.deepEqual([error?.code, error?.precondition], ["FAILED_PRECONDITION", "POOLS_APART"]);
  assert.match(error!.message, /pools ex:warehouse and b /);
});

test("a batch of releases says of each line what became of it", async (t) => {
  const { call } = await withPool(t);
  await call(method.allocateResource, ask("a"));
  await call(method.allocateResource, ask("b", { holder: "bob" }));
  await call(method.allocateResource, ask("c"));
  const lines = [
    ask("a"),
    ask("b"),
    ask("c", { namespace: "elsewhere" }),
    ask("d"),
    { resourceNamespace: "nowhere", allocationToken: "a" },
  ];
  const { RELEASED, OTHER_HOLDER, OTHER_SCOPE, NOT_HELD, UNKNOWN_POOL } = ReleaseOutcome;
  const { ok } = await call(method.batchReleaseResources, { lines });
  assert.deepEqual(ok?.outcomes, [RELEASED, OTHER_HOLDER, OTHER_SCOPE, NOT_HELD, UNKNOWN_POOL]);
});

test("pools and queues that are not there are named", async (t) => {
  const { call, stream } = await withPool(t);
  const nowhere = { resourceNamespace: "nowhere", allocationToken: "a" };
  const refusals = [
    (await call(method.allocateResource, nowhere)).error,
    (await call(method.batchAllocateResources, { lines: [ask("a"), nowhere] })).error,
    (await call(method.releaseResource, nowhere)).error,
    (await call(method.forceRelease, { ...nowhere, reason: "gone" })).error,
    (await call(method.getPool, { name: "nowhere" })).error,
    (await call(method.reconcileQuota, { pool: "nowhere" })).error,
    readRefusal(await read(stream(method.waitForResource, nowhere)).failure()),
  ];
  for (const error of refusals) {
    assert.deepEqual([error?.code, error?.reason, error?.resource], ["NOT_FOUND", "POOL_NOT_FOUND", "nowhere"]);
  }
  const queue = await call(method.allocateResource, ask("a", { queue: "nobody" }));
  assert.deepEqual([queue.error?.reason, queue.error?.resource], ["QUEUE_NOT_FOUND", "nobody"]);
});

/** Reads a stream message by message; `failure` is what it ends with. */
function read(stream: ClientReadableStream<WaitForResourceResponse>) {
  const messages = stream[Symbol.asyncIterator]();
  const next = async () => ((await messages.next()).value as WaitForResourceResponse).update;
  const failure = async () => {
    try {
      while ((await messages.next()).done !== true);
    } catch (error) {
      return error as ServiceError;
    }
    return assert.fail("it ended with no error");
  };
  return { next, failure, cancel: () => stream.cancel() };
}

test("who waits hears where it stands, then its grant; priority goes first, and who cancels leaves", async (t) => {
  const { call, stream, resources } = await withPool(t);
  await call(method.allocateResource, ask("all", { amount: 4n }));
  const patient = read(stream(method.waitForResource, ask("patient", { amount: 4n })));
  const first = await patient.next();
  assert.equal(first.case === "position" && first.value.position, 1);
  assert.equal(first.case === "position" && first.value.violated?.used, 4n);
  const urgent = read(stream(method.waitForResource, ask("urgent", { amount: 4n, priority: 5 })));
  assert.equal((await urgent.next()).case, "position");
  await call(method.releaseResource, ask("nothing"));
  const second = await patient.next();
  assert.equal(second.case === "position" && second.value.position, 2);
  assert.equal((await call(method.getPool, { name: POOL })).ok?.pool?.waiters, 2n);
  patient.cancel();
  assert.equal((await patient.failure()).code, status.CANCELLED);
  await call(method.releaseResource, ask("all"));
  const last = await urgent.next();
  assert.equal(last.case === "granted" && last.value.status, GRANTED);
  assert.deepEqual(
    resources.held.map(({ token }) => token),
    ["urgent"],
  );
});

test("what is free is kept for the first of the line, unless a request stands before it", async (t) => {
  const { call, stream } = await withPool(t);
  await call(method.allocateResource, ask("a", { amount: 2n }));
  const head = read(stream(method.waitForResource, ask("head", { amount: 3n })));
  await head.next();
  const behind = await call(method.allocateResource, ask("b"));
  assert.deepEqual([behind.ok?.status, behind.ok?.violated?.reservedForHead], [EXHAUSTED, 3n]);
  const before = await call(method.allocateResource, ask("b", { priority: 1 }));
  assert.equal(before.ok?.status, GRANTED);
  head.cancel();
  await head.failure();
});

test("who asks for more than there will ever be is told so, and does not wait", async (t) => {
  const { stream } = await withPool(t);
  const failed = await read(stream(method.waitForResource, ask("a", { amount: 5n }))).failure();
  const { code, precondition, message } = readRefusal(failed);
  assert.deepEqual([code, precondition], ["FAILED_PRECONDITION", "NEVER_FITS"]);
  assert.match(message, /needs 5 of pool ex:warehouse, whose limit is 4/);
});

test("a server that stops ends waits as unavailable, to be called again, and they leave the line", async (t) => {
  const { call, stream, api, resources } = await withPool(t);
  await call(method.allocateResource, ask("all", { amount: 4n }));
  const waiting = read(stream(method.waitForResource, ask("a")));
  await waiting.next();
  await api.close();
  const { code, reason, retries } = readRefusal(await waiting.failure());
  assert.deepEqual([code, reason, retries], ["UNAVAILABLE", "SERVER_STOPPING", true]);
  assert.equal(resources.waiting, 0);
});

test("what is held is listed by pool, project, namespace, holder and age, in pages", async (t) => {
  const { call, resources } = await withPool(t);
  await call(method.allocateResource, ask("a", { project: "nlp", holder: "ann" }));
  await call(method.allocateResource, ask("b", { project: "cv", namespace: "dev", amount: 2n }));
  resources.jobs.set("uid-1", "default/mnist");
  const line = { pool: POOL, token: "job", amount: 1, project: "nlp", namespace: "default", queue: null };
  resources.admit(line, { kind: "admission", jobUid: "uid-1", admission: 3 });
  const tokens = async (filter: object) =>
    (await call(method.listAllocations, { filter })).ok?.allocations.map((one) => one.allocationToken);
  assert.deepEqual(await tokens({}), ["a", "b", "job"]);
  assert.deepEqual(await tokens({ project: "nlp" }), ["a", "job"]);
  assert.deepEqual(await tokens({ namespace: "dev" }), ["b"]);
  assert.deepEqual(await tokens({ holder: "ann" }), ["a"]);
  assert.deepEqual(await tokens({ pool: "gpu/h100" }), []);
  assert.deepEqual(await tokens({ olderThan: durationFromMs(60_000) }), []);
  const paged = await call(method.listAllocations, { pageSize: 2 });
  const rest = await call(method.listAllocations, { pageSize: 2, pageToken: paged.ok!.nextPageToken });
  const [job] = rest.ok!.allocations;
  assert.deepEqual([job?.holder, job?.expireTime, rest.ok?.nextPageToken], ["job/default/mnist/3", undefined, ""]);
  const [, b] = paged.ok!.allocations;
  assert.deepEqual([b?.amount, b?.holder, b?.expireTime !== undefined], [2n, "anonymous", true]);
  const pools = await call(method.listPools, { prefix: "ex:" });
  assert.deepEqual(
    pools.ok?.pools.map(({ name, used, tokens: held }) => [name, used, held]),
    [[POOL, 4n, 3n]],
  );
  const wrong = [
    await call(method.listPools, { pageToken: "?" }),
    await call(method.listAllocations, { pageToken: "?" }),
    await call(QueueService.method.listAuditEntries, { pageToken: "?" }),
  ];
  for (const { error } of wrong) assert.equal(error?.fields[0]?.field, "page_token");
});

test("an admin takes a token with a reason, but not that of a job that runs; both can be looked up", async (t) => {
  const { call, resources } = await withPool(t);
  await call(method.allocateResource, ask("a", { holder: "ann" }));
  resources.jobs.set("uid-1", "default/mnist");
  const line = { pool: POOL, token: "job", amount: 1, project: "nlp", namespace: "default", queue: null };
  resources.admit(line, { kind: "admission", jobUid: "uid-1", admission: 3 });
  const live = await call(method.forceRelease, ask("job", { reason: "why not" }));
  assert.deepEqual([live.error?.code, live.error?.precondition], ["FAILED_PRECONDITION", "LIVE_ADMISSION"]);
  assert.match(live.error!.message, /job default\/mnist: cancel the job instead/);
  const taken = await call(method.forceRelease, ask("a", { reason: "its host is gone" }));
  assert.equal(taken.ok?.outcome, ReleaseOutcome.RELEASED);
  const renewed = await call(method.renewAllocations, { lines: [ask("a")], holder: "ann" });
  assert.equal(renewed.ok?.results[0]?.outcome, RenewResult_Outcome.LOST);
  const audit = await call(QueueService.method.listAuditEntries, { filter: { action: "ForceRelease" } });
  assert.deepEqual(
    audit.ok?.entries.map(({ actor, action, subject, reason, details }) => [actor, action, subject, reason, details]),
    [["anonymous", "ForceRelease", POOL, "its host is gone", { token: "a", holder: "ann" }]],
  );
  const all = await call(QueueService.method.listAuditEntries, { filter: { subject: POOL } });
  assert.deepEqual(
    all.ok?.entries.map(({ action }) => action),
    ["ForceRelease", "RegisterResourceQuota"],
  );
});

test("a reconciliation says what differs, and repairs it unless it is a dry run", async (t) => {
  const { call, resources } = await withPool(t);
  const line = { pool: POOL, token: "job", amount: 2, project: "nlp", namespace: "default", queue: null };
  resources.admit(line, { kind: "admission", jobUid: "gone", admission: 1 });
  const dry = await call(method.reconcileQuota, { dryRun: true });
  const [found] = dry.ok!.differences;
  assert.deepEqual(
    [found?.kind, found?.subject, found?.counters, found?.ledger, found?.repaired],
    [QuotaDifference_Kind.HOLDER_GONE, "job", 2n, undefined, false],
  );
  assert.deepEqual([dry.ok?.repaired, resources.held.length], [false, 1]);
  const done = await call(method.reconcileQuota, { pool: POOL });
  assert.deepEqual([done.ok?.repaired, done.ok?.epoch, resources.held.length], [true, 1n, 0]);
  assert.deepEqual((await call(method.reconcileQuota, {})).ok?.differences, []);
});

test("a call that meets another about the same token is told so, and not that a store is away", async (t) => {
  const met = () => Promise.reject(new TokenContendedError("the token is being released"));
  const { call } = await startFixture(t, { resources: { ...noResources(), allocate: met } });
  const { error } = await call(method.allocateResource, ask("a"));
  assert.deepEqual([error?.code, error?.reason, error?.retries], ["UNAVAILABLE", "TOKEN_CONTENDED", true]);
});

test("while a store is away, every call is unavailable and says when to try again", async (t) => {
  const away = () => Promise.reject(new UnavailableError("the quota domain default is being rebuilt"));
  const resources = { ...noResources(), allocate: away, release: away, renew: away };
  const { call } = await startFixture(t, { resources });
  const refusals = [
    (await call(method.allocateResource, ask("a"))).error,
    (await call(method.releaseResource, ask("a"))).error,
    (await call(method.renewAllocations, { lines: [ask("a")] })).error,
  ];
  for (const error of refusals) {
    assert.deepEqual([error?.code, error?.retries], ["UNAVAILABLE", true]);
    assert.match(error!.message, /being rebuilt/);
  }
});

test("a pool is deleted at its version, once nothing uses it, and the audit log says so", async (t) => {
  const { call } = await startFixture(t);
  await call(method.registerResourceQuota, { resourceNamespace: POOL, quota: 4n });
  await call(method.allocateResource, { resourceNamespace: POOL, allocationToken: "a" });
  const used = await call(method.deletePool, { name: POOL });
  assert.deepEqual([used.error?.code, used.error?.precondition], ["FAILED_PRECONDITION", "POOL_IN_USE"]);
  await call(method.releaseResource, { resourceNamespace: POOL, allocationToken: "a" });
  const stale = await call(method.deletePool, { name: POOL, version: 2n });
  assert.deepEqual([stale.error?.code, stale.error?.reason], ["ABORTED", "STALE_RESOURCE_VERSION"]);
  assert.equal((await call(method.deletePool, { name: POOL, version: 1n })).error, null);
  assert.equal((await call(method.getPool, { name: POOL })).error?.reason, "POOL_NOT_FOUND");
  assert.equal((await call(method.deletePool, { name: POOL })).error?.reason, "POOL_NOT_FOUND");
  const audit = await call(QueueService.method.listAuditEntries, { filter: { action: "DeletePool" } });
  assert.deepEqual(
    audit.ok?.entries.map(({ subject }) => subject),
    [POOL],
  );
});

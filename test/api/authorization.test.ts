/** What callers see and do within their scopes: lists, batches, watches, holders, queues, and what they give away. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { toJsonString } from "@bufbuild/protobuf";
import { CallError, codeName, STATUS } from "../../src/cli/rpc/call-error.ts";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import type { NewBinding } from "../../src/core/access/binding.ts";
import type { CallPermission } from "../../src/core/access/permissions.ts";
import { BUILT_IN_ROLES } from "../../src/core/access/roles.ts";
import { INSTALLATION } from "../../src/core/access/scope.ts";
import { AccessService } from "../../src/gen/gangway/v1/access_service_pb.ts";
import {
  JobService,
  JobView,
  SimulateJobResponseSchema,
  WatchJobsResponse_Type as Type,
} from "../../src/gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import {
  ReleaseOutcome,
  RenewResult_Outcome as Renewal,
  ResourceManager,
} from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { amounts, cluster, node } from "../core/plan/plan-world.ts";
import { within } from "../support/bounded.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { startFixture } from "./fixture.ts";
import { type JobInit, pytorchJob } from "./jobs.ts";
import { queueRecord } from "./memory-store.ts";

const never = new AbortController().signal;
const nlp = { kind: "namespace", name: "nlp" } as const;
const vision = { kind: "namespace", name: "vision" } as const;
const queue = (name: string) => ({ kind: "queue", name }) as const;

/** Namespaces nlp and vision of project p, and queues default and other. `as` gives a caller roles. */
async function serveKnown(t: TestContext) {
  const known = await knownCallers(t);
  const time = { laterMs: 0 };
  const real = systemClock();
  const clock = { ...real, monotonicMs: () => real.monotonicMs() + time.laterMs };
  const access = memoryAccess({ enforces: true, clock });
  const { authorization, admin } = access;
  const ports = { authenticate: known.authenticate, robots: known.robots, authorization, access: admin };
  const fixture = await startFixture(t, ports);
  const clientOf = (token: string) => {
    const client = connect(fixture.api.address, never, { tls: null, token: async () => token });
    t.after(() => client.close());
    return client;
  };
  type Roles = readonly (readonly [role: string, scope: NewBinding["scope"]])[];
  const as = async (name: string, ...roles: Roles) => {
    const { subject, token } = await known.caller("oidc", name);
    const to = { kind: "subject", name: subject } as const;
    const unbind = await access.bind(...roles.map(([role, scope]) => ({ to, role, scope })));
    return { ...clientOf(token), subject, unbind };
  };
  const root = await as("root", ["admin", INSTALLATION]);
  const { createNamespace } = NamespaceService.method;
  for (const name of ["nlp", "vision"]) await root.call(createNamespace, { namespace: { name, project: "p" } });
  await root.call(QueueService.method.createQueue, { queue: { name: "other" } });
  const directory = { namespaces: new Map<string, { project: string; defaultQueue: string }>(), parents: new Map() };
  for (const name of ["nlp", "vision"]) directory.namespaces.set(name, { project: "p", defaultQueue: "default" });
  access.of.directory = {
    ...directory,
    parents: new Map([
      ["default", null],
      ["other", null],
    ]),
  };
  await access.followed.refresh();
  return { ...fixture, known, access, time, as, root };
}

const jobIn = (namespace: string, name: string, more: { readonly queue?: string } = {}): JobInit => {
  const policy = more.queue === undefined ? {} : { runPolicy: { schedulingPolicy: { queue: more.queue } } };
  return { ...pytorchJob(name, policy), metadata: { namespace, name } };
};
const submit = (client: Pick<GangwayClient, "call">, ...of: Parameters<typeof jobIn>) =>
  client.call(JobService.method.createJob, { job: jobIn(...of) });

const nameOf = (type: Type) => Object.entries(Type).find(([, value]) => value === type)?.[0] ?? "";

/** The code and the message of a call that is refused. */
async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => assert.fail("the call was allowed"),
    (caught: unknown) => caught,
  );
  assert.ok(error instanceof CallError, String(error));
  return { code: codeName(error.code), message: error.details };
}

test("without a binding a caller may ask who it is, what it may do, and for health, and nothing else", async (t) => {
  const { as, root } = await serveKnown(t);
  await submit(root, "nlp", "a");
  const ann = await as("ann");
  assert.equal((await ann.call(AccessService.method.whoAmI, {})).identity?.subject, "login:ann");
  assert.equal((await ann.call(AccessService.method.checkAccess, { permission: "jobs.get" })).allowed, false);
  await ann.call(Health.method.check, {});
  assert.equal((await refusal(ann.call(JobService.method.listJobs, {}))).code, "PERMISSION_DENIED");
  assert.deepEqual(await refusal(ann.call(JobService.method.getJob, { namespace: "nlp", name: "a" })), {
    code: "NOT_FOUND",
    message: "job nlp/a does not exist",
  });
});

test("a job is found by its uid only by who may see its namespace, and lists have only those", async (t) => {
  const { as, root } = await serveKnown(t);
  for (const name of ["a", "b", "c"]) await submit(root, "nlp", name);
  const { job } = await submit(root, "vision", "hidden");
  const ann = await as("ann", ["viewer", nlp]);
  const uid = job?.metadata?.uid ?? "";
  const hidden = await refusal(ann.call(JobService.method.getJob, { uid }));
  assert.deepEqual(hidden, { code: "NOT_FOUND", message: `job ${uid} does not exist` });
  const none = "01900000-0000-7000-8000-000000000000";
  assert.equal(
    (await refusal(ann.call(JobService.method.getJob, { uid: none }))).message,
    `job ${none} does not exist`,
  );
  const names: string[] = [];
  for (let pageToken = "", pages = 0; pages === 0 || pageToken !== ""; pages++) {
    const page = await ann.call(JobService.method.listJobs, { pageSize: 2, pageToken, orderBy: "name" });
    assert.equal(page.totalEstimate, 3);
    names.push(...page.jobs.map((one) => `${one.metadata?.namespace}/${one.metadata?.name}`));
    pageToken = page.nextPageToken;
  }
  assert.deepEqual(names, ["nlp/a", "nlp/b", "nlp/c"]);
  const filter = { namespace: "vision" };
  assert.deepEqual((await ann.call(JobService.method.listJobs, { filter })).jobs, []);
  assert.deepEqual(
    (await ann.call(NamespaceService.method.listNamespaces, {})).namespaces.map(({ name }) => name),
    ["nlp"],
  );
  assert.deepEqual((await ann.call(QueueService.method.listQueues, {})).queues, []);
});

test("templates are shown only to who may see secrets", async (t) => {
  const { as, root } = await serveKnown(t);
  await submit(root, "nlp", "a");
  await submit(root, "vision", "b");
  const ann = await as("ann", ["viewer", { kind: "project", name: "p" }], ["submitter", vision]);
  const templateOf = async (namespace: string, name: string) => {
    const { job } = await ann.call(JobService.method.getJob, { namespace, name });
    return Object.values(job?.spec?.replicaSpecs ?? {})[0]?.template;
  };
  assert.equal(await templateOf("nlp", "a"), undefined);
  assert.notEqual(await templateOf("vision", "b"), undefined);
  const full = { namespace: "nlp", name: "a", view: JobView.FULL };
  assert.equal((await refusal(ann.call(JobService.method.getJob, full))).code, "PERMISSION_DENIED");
  const listed = await ann.call(JobService.method.listJobs, { view: JobView.FULL });
  assert.deepEqual(
    listed.jobs.map((job) => job.metadata?.name),
    ["b"],
  );
});

test("a role in use is not deleted, and its binding is named only to who may see it", async (t) => {
  const { as, root } = await serveKnown(t);
  const { createRole, deleteRole, createBinding } = AccessService.method;
  await root.call(createRole, { role: { name: "definer", permissions: ["access.define"] } });
  await root.call(createRole, { role: { name: "used", permissions: ["jobs.get"] } });
  const to = { case: "subject", value: "login:x" } as const;
  await root.call(createBinding, { binding: { name: "hidden", to, role: "used", scope: {} } });
  const definer = await as("ann", ["definer", INSTALLATION]);
  for (const [by, user] of [
    [definer, "a binding"],
    [root, "binding hidden"],
  ] as const) {
    const { code, message } = await refusal(by.call(deleteRole, { name: "used" }));
    assert.deepEqual([code, message], ["FAILED_PRECONDITION", `role used is in use by ${user}`]);
  }
});

test("a namespace with a job is not deleted, and the job is named only to who may see it", async (t) => {
  const { as, root } = await serveKnown(t);
  await submit(root, "nlp", "hidden");
  const permissions = ["namespaces.get", "namespaces.delete"];
  await root.call(AccessService.method.createRole, { role: { name: "cleaner", permissions } });
  const cleaner = await as("ann", ["cleaner", nlp]);
  const seeing = await as("bob", ["cleaner", nlp], ["viewer", nlp]);
  const { deleteNamespace } = NamespaceService.method;
  for (const [by, user] of [
    [cleaner, "a job"],
    [seeing, "job nlp/hidden"],
  ] as const) {
    const { code, message } = await refusal(by.call(deleteNamespace, { name: "nlp" }));
    assert.deepEqual([code, message], ["FAILED_PRECONDITION", `namespace nlp is in use by ${user}`]);
  }
});

test("a name that is taken shows values of the other job's templates only to who may see secrets", async (t) => {
  const { as, root } = await serveKnown(t);
  const { createRole } = AccessService.method;
  await root.call(createRole, { role: { name: "maker", permissions: ["jobs.create", "jobs.get", "namespaces.get"] } });
  const withKey = (value: string): JobInit => {
    const containers = [{ name: "pytorch", image: "i", env: [{ name: "KEY", value }] }];
    const job = pytorchJob("a", { replicaSpecs: { Worker: { replicas: 1, template: { spec: { containers } } } } });
    return { ...job, metadata: { namespace: "nlp", name: "a" } };
  };
  const use = ["submitter", queue("default")] as const;
  const [ann, bob] = [await as("ann", ["submitter", nlp], use), await as("bob", ["maker", nlp], use)];
  const send = (by: typeof ann, value: string) =>
    by.call(JobService.method.createJob, { job: withKey(value), requestId: "one" });
  await send(root, "hidden-value");
  for (const requestId of ["one", "two"]) {
    const sent = { job: withKey("other"), requestId };
    const seen = await refusal(ann.call(JobService.method.createJob, sent));
    assert.deepEqual([seen.code, /hidden-value/.test(seen.message)], ["ALREADY_EXISTS", true]);
    const unseen = await refusal(bob.call(JobService.method.createJob, sent));
    assert.deepEqual([unseen.code, / differs$/.test(unseen.message)], ["ALREADY_EXISTS", true], unseen.message);
    const { results } = await bob.call(JobService.method.batchCreateJobs, { requests: [sent] });
    const text = JSON.stringify(results, (_, value) => (typeof value === "bigint" ? String(value) : value));
    assert.match(text, / differs"/);
    assert.doesNotMatch(text, /hidden-value/);
  }
});

test("to run a job needs the queue too, when it is created and whenever it is changed", async (t) => {
  const { as, root, store } = await serveKnown(t);
  const ann = await as("ann", ["submitter", nlp], ["submitter", queue("default")]);
  const hidden = await refusal(submit(ann, "nlp", "a", { queue: "other" }));
  const missing = await refusal(submit(ann, "nlp", "a", { queue: "none" }));
  assert.equal(hidden.code, "INVALID_ARGUMENT");
  assert.equal(hidden.message, missing.message.replaceAll("none", "other"));
  const bob = await as("bob", ["submitter", nlp], ["viewer", queue("other")]);
  assert.deepEqual(await refusal(submit(bob, "nlp", "a", { queue: "other" })), {
    code: "PERMISSION_DENIED",
    message: "the caller lacks the permission queues.use for queue other",
  });
  const simulated = refusal(bob.call(JobService.method.simulateJob, { job: jobIn("nlp", "a", { queue: "other" }) }));
  assert.equal((await simulated).code, "PERMISSION_DENIED");
  assert.equal(store.jobs.size, 0);
  await submit(root, "nlp", "a", { queue: "other" });
  const suspend = { ...jobIn("nlp", "a"), spec: { runPolicy: { suspend: true } } };
  const change = { job: suspend, updateMask: { paths: ["spec.run_policy.suspend"] } };
  assert.equal((await refusal(ann.call(JobService.method.updateJob, change))).code, "PERMISSION_DENIED");
  assert.equal((await refusal(bob.call(JobService.method.updateJob, change))).code, "PERMISSION_DENIED");
  await root.call(JobService.method.updateJob, change);
});

test("a simulation leaves out the clusters that its caller may not see, and words about them", async (t) => {
  const { as, store } = await serveKnown(t);
  const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 32 }];
  store.queues.set("default", { ...queueRecord("default"), quotas });
  const record = { uid: null, simulated: false, observedMs: 1, version: 1, createTimeMs: 1, gangScheduler: "none" };
  for (const name of ["east", "west"]) {
    const made = cluster(name, { nodes: [node(`${name}-node`, "h100", { free: amounts(0) })] });
    store.clusters.set(name, { ...made, ...record } as never);
  }
  const pod = {
    spec: { containers: [{ name: "pytorch", image: "i", resources: { limits: { "nvidia.com/gpu": 8 } } }] },
  };
  const job = { ...pytorchJob("a", { replicaSpecs: { Worker: { replicas: 1, template: pod } } }) };
  const sent = { job: { ...job, metadata: { namespace: "nlp", name: "a" } } };
  const simulated = async (...roles: Parameters<typeof as> extends [string, ...infer R] ? R : never) => {
    const caller = await as(`caller-${roles.length}`, ["submitter", nlp], ["submitter", queue("default")], ...roles);
    const answer = await caller.call(JobService.method.simulateJob, sent);
    return {
      clusters: answer.clusters.map((one) => one.cluster),
      text: toJsonString(SimulateJobResponseSchema, answer),
    };
  };
  const none = await simulated();
  assert.deepEqual(none.clusters, []);
  assert.doesNotMatch(none.text, /east|west/);
  assert.match(none.text, /0 of 1 pods fit now on another cluster/);
  const west = await simulated(["viewer", { kind: "cluster", name: "west" }]);
  assert.deepEqual(west.clusters, ["west"]);
  assert.doesNotMatch(west.text, /east/);
});

test("the error for logs of a job that waits does not name the jobs that it waits for", async (t) => {
  const { as, store } = await serveKnown(t);
  const ann = await as("ann", ["submitter", nlp], ["submitter", queue("default")]);
  await submit(ann, "nlp", "a");
  const [stored] = store.jobs.values();
  assert.ok(stored !== undefined);
  const { job } = stored;
  const message = "waits behind vision/secret, the head of the strict queue default";
  const waiting = { reason: "BehindHead", message, sinceMs: 1 };
  store.put({ ...job, version: job.version + 1, status: { ...job.status, waiting } });
  const logs = ann.stream(JobService.method.streamJobLogs, { namespace: "nlp", name: "a" }, never);
  const refused = await refusal(logs[Symbol.asyncIterator]().next());
  assert.equal(refused.code, "FAILED_PRECONDITION");
  assert.match(refused.message, /waits behind another job, the head/);
});

test("a recorded reason names no cluster that the caller may not see, wherever it is shown", async (t) => {
  const { as, store } = await serveKnown(t);
  const ann = await as("ann", ["submitter", nlp], ["submitter", queue("default")]);
  await submit(ann, "nlp", "a");
  const [stored] = store.jobs.values();
  assert.ok(stored !== undefined);
  const { job } = stored;
  const message = "no cluster can be used: secret: it has no label a=b; secret-2: it is cordoned";
  const waiting = { reason: "NoCluster", message, sinceMs: 1 };
  store.put({ ...job, version: job.version + 1, status: { ...job.status, waiting } });
  const shown = [
    (await ann.call(JobService.method.getJob, { namespace: "nlp", name: "a" })).job,
    (await ann.call(JobService.method.listJobs, {})).jobs[0],
  ];
  for (const one of shown) assert.equal(one?.status?.waiting?.message, "no cluster can be used");
  const seeing = await as("bob", ["viewer", INSTALLATION]);
  const { job: whole } = await seeing.call(JobService.method.getJob, { namespace: "nlp", name: "a" });
  assert.equal(whole?.status?.waiting?.message, message);
});

test("each item of a batch is judged by itself, and refused items change nothing", async (t) => {
  const { as, root, store } = await serveKnown(t);
  const ann = await as("ann", ["submitter", nlp], ["viewer", vision], ["submitter", queue("default")]);
  const requests = ["nlp", "vision", "hidden", "nlp"].map((namespace, at) => ({ job: jobIn(namespace, `j${at}`) }));
  const { results } = await ann.call(JobService.method.batchCreateJobs, { requests });
  const codes = results.map(({ result }) => (result.case === "error" ? codeName(result.value.code) : "OK"));
  assert.deepEqual(codes, ["OK", "PERMISSION_DENIED", "NOT_FOUND", "OK"]);
  assert.equal(store.jobs.size, 2);

  const { registerResourceQuota, allocateResource } = ResourceManager.method;
  for (const resourceNamespace of ["ex:a", "ex:b"])
    await root.call(registerResourceQuota, { resourceNamespace, quota: 9n });
  const bob = await as("bob", ["submitter", { kind: "pool", name: "ex:a" }]);
  await bob.call(allocateResource, { resourceNamespace: "ex:a", allocationToken: "t" });
  await root.call(allocateResource, { resourceNamespace: "ex:b", allocationToken: "t" });
  const lines = ["ex:a", "ex:b", "ex:none"].map((resourceNamespace) => ({ resourceNamespace, allocationToken: "t" }));
  const renewed = await bob.call(ResourceManager.method.renewAllocations, { lines });
  assert.deepEqual(
    renewed.results.map(({ outcome }) => outcome),
    [Renewal.RENEWED, Renewal.UNKNOWN_POOL, Renewal.UNKNOWN_POOL],
  );
  const named = await bob.call(ResourceManager.method.batchReleaseResources, {
    lines: lines.map((line) => ({ ...line, holder: root.subject })),
  });
  assert.deepEqual(named.outcomes, [ReleaseOutcome.DENIED, ReleaseOutcome.UNKNOWN_POOL, ReleaseOutcome.UNKNOWN_POOL]);
});

for (const { name: role, permissions } of BUILT_IN_ROLES) {
  test(`items of batches inside and outside the scope of a caller with the role ${role}`, async (t) => {
    const { as, root, store } = await serveKnown(t);
    const { registerResourceQuota, allocateResource, listAllocations } = ResourceManager.method;
    for (const resourceNamespace of ["ex:a", "ex:b"]) {
      await root.call(registerResourceQuota, { resourceNamespace, quota: 9n });
      await root.call(allocateResource, { resourceNamespace, allocationToken: "roots" });
    }
    const pool = { kind: "pool", name: "ex:a" } as const;
    const ann = await as("ann", [role, nlp], [role, queue("default")], [role, pool]);
    const may = (...needed: readonly CallPermission[]) => needed.every((one) => permissions.includes(one));

    const requests = ["nlp", "vision", "none", "nlp"].map((namespace, at) => ({ job: jobIn(namespace, `j${at}`) }));
    const { results } = await ann.call(JobService.method.batchCreateJobs, { requests });
    const answers = results.map(({ result }) => (result.case === "error" ? result.value : null));
    const codes = answers.map((error) => (error === null ? "OK" : codeName(error.code)));
    const inside = may("jobs.create", "queues.use") ? "OK" : "PERMISSION_DENIED";
    assert.deepEqual(codes, [inside, "NOT_FOUND", "NOT_FOUND", inside]);
    assert.equal(answers[1]?.message.replaceAll("vision", "none"), answers[2]?.message);
    assert.equal(store.jobs.size, inside === "OK" ? 2 : 0);

    const held = may("tokens.allocate");
    if (held) await ann.call(allocateResource, { resourceNamespace: "ex:a", allocationToken: "t" });
    const of = (...pools: readonly string[]) =>
      pools.map((resourceNamespace) => ({ resourceNamespace, allocationToken: "t" }));
    const lines = of("ex:b", "ex:a", "ex:none");
    const renewed = await ann.call(ResourceManager.method.renewAllocations, { lines });
    assert.deepEqual(
      renewed.results.map(({ outcome }) => outcome),
      [Renewal.UNKNOWN_POOL, held ? Renewal.RENEWED : Renewal.DENIED, Renewal.UNKNOWN_POOL],
    );
    const { outcomes } = await ann.call(ResourceManager.method.batchReleaseResources, { lines });
    const released = held ? ReleaseOutcome.RELEASED : ReleaseOutcome.DENIED;
    assert.deepEqual(outcomes, [ReleaseOutcome.UNKNOWN_POOL, released, ReleaseOutcome.UNKNOWN_POOL]);
    const rootsLines = ["ex:b", "ex:none"].map((resourceNamespace) => ({
      resourceNamespace,
      allocationToken: "roots",
      holder: root.subject,
    }));
    const others = await ann.call(ResourceManager.method.batchReleaseResources, { lines: rootsLines });
    assert.deepEqual(others.outcomes, [ReleaseOutcome.UNKNOWN_POOL, ReleaseOutcome.UNKNOWN_POOL]);

    // All or nothing: a line outside the scope refuses the batch, in the words for a pool that does not exist.
    const { batchAllocateResources } = ResourceManager.method;
    const [hidden, missing] = [
      await refusal(ann.call(batchAllocateResources, { lines: of("ex:b") })),
      await refusal(ann.call(batchAllocateResources, { lines: of("ex:none") })),
    ];
    assert.deepEqual({ ...hidden, message: hidden.message.replaceAll("ex:b", "ex:none") }, missing);
    assert.equal(missing.code, "NOT_FOUND");
    if (held) assert.deepEqual(await refusal(ann.call(batchAllocateResources, { lines: of("ex:a", "ex:b") })), hidden);
    const { allocations } = await root.call(listAllocations, {});
    assert.deepEqual(
      allocations.map(({ resourceNamespace, allocationToken }) => `${resourceNamespace} ${allocationToken}`).sort(),
      ["ex:a roots", "ex:b roots"],
    );
  });
}

test("a token's holder is the caller, and only who manages tokens names another", async (t) => {
  const { as, root } = await serveKnown(t);
  const { registerResourceQuota, allocateResource, releaseResource, listAllocations } = ResourceManager.method;
  await root.call(registerResourceQuota, { resourceNamespace: "ex:a", quota: 9n });
  const pool = { kind: "pool", name: "ex:a" } as const;
  const ann = await as("ann", ["submitter", pool]);
  const bob = await as("bob", ["submitter", pool]);
  const ops = await as("ops", ["operator", pool]);
  const token = { resourceNamespace: "ex:a", allocationToken: "t" };
  await ann.call(allocateResource, token);
  assert.equal(
    (await refusal(bob.call(allocateResource, { ...token, holder: ann.subject }))).code,
    "PERMISSION_DENIED",
  );
  assert.equal((await refusal(bob.call(releaseResource, { ...token, holder: ann.subject }))).code, "PERMISSION_DENIED");
  const taken = await refusal(bob.call(allocateResource, token));
  assert.deepEqual([taken.code, taken.message.includes(ann.subject)], ["ALREADY_EXISTS", false]);
  assert.match(taken.message, /is held by another holder/);
  const charged = refusal(ann.call(allocateResource, { ...token, allocationToken: "u", project: "q" }));
  assert.equal(
    (await charged).message,
    "the caller lacks the permission tokens.charge for namespace default of project q",
  );
  assert.equal((await ops.call(listAllocations, {})).allocations.length, 1);
  await ops.call(releaseResource, { ...token, holder: ann.subject });
});

test("a watch shows what its caller may see, starts again when that changes, and ends without any", async (t) => {
  const { as, root, access } = await serveKnown(t);
  await submit(root, "nlp", "a");
  await submit(root, "vision", "b");
  const ann = await as("ann", ["viewer", nlp]);
  const more = await access.bind({ to: { kind: "subject", name: ann.subject }, role: "viewer", scope: vision });
  const seen: string[] = [];
  const waiting = new Set<() => void>();
  const watched = (async () => {
    for await (const { type, job } of ann.stream(JobService.method.watchJobs, {}, never)) {
      seen.push(`${nameOf(type)} ${job?.metadata?.name ?? ""}`.trim());
      for (const wake of waiting) wake();
    }
  })();
  const ended = watched.then(
    () => "OK",
    (error: CallError) => `${codeName(error.code)}: ${error.details}`,
  );
  const until = (what: readonly string[]) =>
    within(
      what.join(),
      20_000,
      new Promise<void>((resolve) => {
        const look = () => {
          if (seen.join() !== what.join()) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    );
  const start = ["ADDED a", "ADDED b", "BOOKMARK"];
  await until(start);
  await more();
  await until([...start, "GAP", "ADDED a", "BOOKMARK"]);
  await submit(root, "vision", "c");
  await submit(root, "nlp", "d");
  await until([...start, "GAP", "ADDED a", "BOOKMARK", "ADDED d"]);
  await ann.unbind();
  assert.match(await within("the end of the watch", 20_000, ended), /^PERMISSION_DENIED: .*permission was taken away/);
});

test("while roles and bindings cannot be read, nothing is changed and reads go on", async (t) => {
  const { root, access, time } = await serveKnown(t);
  await submit(root, "nlp", "a");
  access.of.away = true;
  time.laterMs += 59_000;
  await root.call(JobService.method.cancelJob, { namespace: "nlp", name: "a" });
  time.laterMs += 2_000;
  assert.equal((await refusal(submit(root, "nlp", "b"))).code, "UNAVAILABLE");
  await root.call(JobService.method.getJob, { namespace: "nlp", name: "a" });
  access.of.away = false;
  await access.followed.refresh();
  await submit(root, "nlp", "b");
});

test("nobody gives away what it does not have, also not by a robot that is bound before it is made", async (t) => {
  const { as, root, access } = await serveKnown(t);
  const { createBinding, createRole, createRobotToken, listBindings, deleteBinding, getBinding } = AccessService.method;
  const bind = (name: string, role: string, scope: object, subject = "login:bob") => ({
    binding: { name, role, scope, to: { case: "subject", value: subject } as const },
  });
  const inNlp = { of: { case: "namespace", value: "nlp" } } as const;
  await root.call(createRole, {
    role: { name: "binder", permissions: ["access.bind", "access.get", "jobs.get", "robots.create", "runtimes.get"] },
  });
  const ann = await as("ann", ["binder", nlp]);
  const beyond = await refusal(ann.call(createBinding, bind("one", "submitter", inNlp)));
  assert.deepEqual([beyond.code, /jobs\.create/.test(beyond.message)], ["PERMISSION_DENIED", true]);
  assert.equal((await refusal(ann.call(createBinding, bind("one", "binder", {})))).code, "PERMISSION_DENIED");
  await ann.call(createBinding, bind("one", "binder", inNlp));
  assert.deepEqual(
    (await ann.call(listBindings, {})).bindings.map(({ role }) => role),
    ["binder", "binder"],
  );
  await root.call(createBinding, bind("top", "admin", {}, "robot:boss"));
  for (const call of [ann.call(getBinding, { name: "top" }), ann.call(deleteBinding, { name: "top" })]) {
    assert.deepEqual(await refusal(call), { code: "NOT_FOUND", message: "binding top does not exist" });
  }
  const wrong = { role: { name: "more", permissions: ["jobs.fly"] } };
  assert.match((await refusal(root.call(createRole, wrong))).message, /role\.permissions\[0\]: jobs\.fly is not a/);
  const maker = await as("maker", ["binder", INSTALLATION]);
  assert.match((await refusal(maker.call(createRobotToken, { name: "boss" }))).message, /cannot give them away/);
  await maker.call(createRobotToken, { name: "worker" });
  await ann.call(deleteBinding, { name: "one" });
  assert.equal(access.followed.copy().bindings.has("one"), false);
});

test("a refusal names the permission and the scope, and is told once to the audit log", async (t) => {
  const { as, access } = await serveKnown(t);
  const ann = await as("ann", ["viewer", nlp]);
  const error = await ann
    .call(JobService.method.cancelJob, { namespace: "nlp", name: "a" })
    .catch((one: unknown) => one);
  assert.ok(error instanceof CallError && error.code === STATUS.PERMISSION_DENIED);
  assert.equal(error.details, "the caller lacks the permission jobs.cancel for namespace nlp");
  assert.deepEqual(access.of.denied.at(-1), {
    rpc: "gangway.v1.JobService/CancelJob",
    subject: "login:ann",
    method: "oidc",
    resource: "nlp/a",
    permission: "jobs.cancel",
    scope: "namespace nlp",
    outcome: "PERMISSION_DENIED",
  });
});

test("roles, bindings and robots are listed in pages by name, and a token of another list is refused", async (t) => {
  const { root } = await serveKnown(t);
  const { createBinding, createRole, listBindings, listRoles } = AccessService.method;
  for (let at = 0; at < 5; at++) {
    const role = { name: `made-${at}`, permissions: ["jobs.get"] };
    await root.call(createRole, { role });
    const to = { case: "group", value: "login:g" } as const;
    await root.call(createBinding, { binding: { name: `b-${at}`, to, role: role.name, scope: {} } });
  }
  const all = async (list: (page: { pageSize: number; pageToken: string }) => Promise<Listed>) => {
    const names: string[] = [];
    for (let pageToken = "", pages = 0; pages === 0 || pageToken !== ""; pages++) {
      const { items, next } = await list({ pageSize: 2, pageToken });
      assert.ok(items.length <= 2 && items.length > 0);
      names.push(...items.map(({ name }) => name));
      pageToken = next;
    }
    return names;
  };
  type Listed = { readonly items: readonly { readonly name: string }[]; readonly next: string };
  const roles = async (page: object) => {
    const { roles: items, nextPageToken: next } = await root.call(listRoles, page);
    return { items, next };
  };
  const bindings = async (page: object) => {
    const { bindings: items, nextPageToken: next } = await root.call(listBindings, page);
    return { items, next };
  };
  const named = await all(roles);
  assert.deepEqual(named, [...new Set(named)].sort());
  assert.deepEqual(
    named,
    (await roles({})).items.map(({ name }) => name),
  );
  assert.ok(named.length > 10);
  const bound = await all(bindings);
  assert.deepEqual(bound.slice(0, 5), ["b-0", "b-1", "b-2", "b-3", "b-4"]);
  const { next } = await roles({ pageSize: 1 });
  for (const pageToken of [next, "?", "Ym9ndXM"]) {
    assert.equal((await refusal(root.call(listBindings, { pageToken }))).code, "INVALID_ARGUMENT", pageToken);
  }
});

test("callers who may not read logs are told that lines of failed containers are left out", async (t) => {
  const { as, root, store } = await serveKnown(t);
  const { job } = await submit(root, "nlp", "a");
  const lines = { text: "boom", cut: false };
  const run = {
    podUid: "uid",
    container: "pytorch",
    restarts: 0,
    replica: "Worker/0",
    attempt: 1,
    admission: 1,
  } as const;
  const end = { cluster: "east", pod: "a-worker-0", exitCode: 1, reason: "Error", problem: null, readMs: 1 };
  store.failureLogs.set(job?.metadata?.uid ?? "", { keeps: true, logs: [{ ...run, ...end, lines }] });
  const made = store.jobs.get("nlp/a")?.job ?? assert.fail("it was not submitted");
  const attempts = { ...made.status.attempts, user: 1 };
  store.put({ ...made, version: made.version + 1, status: { ...made.status, attempts } });
  const which = { namespace: "nlp", name: "a" };
  const shown = async ({ call }: Pick<GangwayClient, "call">) => {
    const got = await call(JobService.method.getJob, { ...which, view: JobView.FULL });
    const explained = await call(JobService.method.explainJob, which);
    return [got.failureLogs, explained.failureLogs].map((all) => [all?.logs.map(({ text }) => text), all?.leftOut]);
  };
  assert.deepEqual(await shown(await as("sue", ["submitter", nlp])), [
    [["boom"], ""],
    [["boom"], ""],
  ]);
  const leftOut = "only callers with the permission jobs.logs in namespace nlp see them";
  const permissions = ["jobs.get", "jobs.secrets"];
  await root.call(AccessService.method.createRole, { role: { name: "reader", permissions } });
  assert.deepEqual(await shown(await as("ann", ["reader", nlp])), [
    [[], leftOut],
    [[], leftOut],
  ]);
});

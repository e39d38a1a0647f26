/** Lists and counts of jobs by the filters that dashboards use, and what of them callers see. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { PLAIN } from "../../src/cli/rpc/channel.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import type { NewBinding } from "../../src/core/access/binding.ts";
import { INSTALLATION } from "../../src/core/access/scope.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { Admission, JobPhase as Phase } from "../../src/core/job/status.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import {
  type CountJobsResponse,
  type JobFilterSchema,
  JobProperty,
  JobService,
} from "../../src/gen/gangway/v1/job_service_pb.ts";
import { NO_STATUS, NOW, newJob, sentOf } from "../store/jobs.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { startFixture } from "./fixture.ts";
import { type MemoryStore, queueRecord } from "./memory-store.ts";

const { method } = JobService;
type Filter = MessageInitShape<typeof JobFilterSchema>;

type Made = Parameters<typeof newJob>[0] & {
  readonly phase?: Phase;
  readonly flavor?: string;
  readonly waits?: string;
};

function put(store: MemoryStore, { phase = "WAITING", flavor, waits, ...more }: Made): Job {
  const none = { tokensReleasedMs: null, goneMs: null, belowMinSinceMs: null, flavorLabels: {}, members: {} };
  const held = { "nvidia.com/gpu": flavor ?? "" };
  const live: Admission = { number: 1, cluster: "east", state: "live", admitTimeMs: NOW, flavors: held, ...none };
  const isEnded = phase === "FAILED" || phase === "SUCCEEDED";
  const status = {
    ...NO_STATUS,
    phase,
    waiting: waits === undefined ? null : { reason: waits, message: "", sinceMs: NOW },
    completionTimeMs: isEnded ? Date.now() : null,
  };
  const job = newJob({ namespace: "nlp", status, admissions: flavor === undefined ? [] : [live], ...more });
  store.jobs.set(`${job.namespace}/${job.name}`, { job, sent: sentOf(job) });
  return job;
}

/** Queue nlp with nlp-a below it, and vision. */
function fill(store: MemoryStore): Readonly<Record<string, Job>> {
  for (const [name, parent] of [
    ["nlp", null],
    ["nlp-a", "nlp"],
    ["nlp-b", "nlp-a"],
    ["vision", null],
  ] as const) {
    store.queues.set(name, { ...queueRecord(name), parent });
  }
  return {
    a: put(store, { name: "train-a", queue: "nlp", createdBy: "ann", waits: "NoCapacity", createTimeMs: NOW }),
    b: put(store, { name: "train-b", queue: "nlp-a", createdBy: "bob", project: "p", createTimeMs: NOW + 10 }),
    c: put(store, { name: "eval-c", queue: "nlp-b", phase: "RUNNING", flavor: "gpu/h100", createTimeMs: NOW + 20 }),
    d: put(store, { name: "eval-d", queue: "vision", namespace: "vision", phase: "FAILED", createTimeMs: NOW + 30 }),
  };
}

const FILTERS: Readonly<Record<string, { readonly filter: Filter; readonly names: readonly string[] }>> = {
  "several namespaces": { filter: { namespaces: ["vision", "other"] }, names: ["eval-d"] },
  "several queues": { filter: { queues: ["nlp", "vision"] }, names: ["eval-d", "train-a"] },
  "a queue and all below it": { filter: { queueSubtree: "nlp" }, names: ["eval-c", "train-a", "train-b"] },
  "a queue below another": { filter: { queueSubtree: "nlp-a" }, names: ["eval-c", "train-b"] },
  "a subtree and queues": { filter: { queueSubtree: "nlp-a", queues: ["nlp", "nlp-b"] }, names: ["eval-c"] },
  "a queue that does not exist": { filter: { queueSubtree: "none" }, names: [] },
  creators: { filter: { createdBy: ["ann", "bob"] }, names: ["train-a", "train-b"] },
  "reasons of waiting": { filter: { reasons: ["NoCapacity"] }, names: ["train-a"] },
  "jobs without a reason yet": { filter: { reasons: ["NotEvaluated"] }, names: ["train-b"] },
  "the beginning of the name": { filter: { namePrefix: "train" }, names: ["train-a", "train-b"] },
  "a flavor": { filter: { flavor: "gpu/h100" }, names: ["eval-c"] },
  "a node": { filter: { node: "e-0" }, names: ["eval-c"] },
  "a node of another cluster": { filter: { node: "e-0", cluster: "west" }, names: [] },
  "a project": { filter: { project: "p" }, names: ["train-b"] },
  "a time of creation, up to its nanosecond": {
    filter: { createdSince: { seconds: BigInt(NOW / 1000), nanos: 1 }, createdBefore: timestampFromMs(NOW + 20) },
    names: ["train-b"],
  },
  "the time of the end": { filter: { endedSince: timestampFromMs(NOW) }, names: ["eval-d"] },
};
for (const [name, { filter, names }] of Object.entries(FILTERS)) {
  test(`lists and counts select jobs by ${name}`, async (t) => {
    const { call, store } = await startFixture(t);
    const { c } = fill(store);
    store.nodeEntries.set("east", [
      { kind: "node", name: "e-0", node: null, members: [{ jobUid: c?.uid, index: 0 } as never] },
    ]);
    const listed = await call(method.listJobs, { filter, orderBy: "name" });
    assert.deepEqual(listed.ok?.jobs.map((job) => job.metadata?.name).sort(), [...names]);
    const phases = [JobPhase.WAITING, JobPhase.RUNNING, JobPhase.FAILED];
    const counted = await call(method.countJobs, { filter: { ...filter, phases } });
    assert.equal(Number(counted.ok?.groups[0]?.jobs), names.length);
  });
}

test("a watch follows the filters that the log can answer, and refuses the others by their names", async (t) => {
  const { call, api, store } = await startFixture(t);
  fill(store);
  const client = connect(api.address, new AbortController().signal, PLAIN);
  t.after(() => client.close());
  const watched = async (filter: Filter) => {
    const names: string[] = [];
    for await (const item of client.stream(method.watchJobs, { filter }, new AbortController().signal)) {
      if (item.job === undefined) return names;
      names.push(item.job.metadata?.name ?? "");
    }
    return names;
  };
  assert.deepEqual(await watched({ namePrefix: "eval", queues: ["nlp-b"], namespaces: ["nlp"] }), ["eval-c"]);
  assert.deepEqual(await watched({ endedSince: timestampFromMs(NOW) }), ["eval-d"]);
  const filter = { queueSubtree: "nlp", reasons: ["NoCapacity"], flavor: "gpu/h100", node: "e-0" };
  for (const [member, value] of Object.entries(filter)) {
    const field = member === "queueSubtree" ? "filter.queue_subtree" : `filter.${member}`;
    const { error } = await call(method.watchJobs, { filter: { [member]: value } });
    assert.equal(error?.code, "INVALID_ARGUMENT");
    assert.deepEqual(error?.fields, [
      {
        field,
        description: "must not be set: a watch filters by none of queue_subtree, reasons, flavor, node; use ListJobs",
      },
    ]);
  }
});

const PHASES_NEEDED = {
  "complete_time desc": "needs a filter by ended_since, or by phases, and allows only SUCCEEDED, FAILED, CANCELLED",
  wait_since: "needs a filter by phases, and allows only WAITING",
  "held desc": "needs a filter by phases, and allows only ADMITTED, STARTING, RUNNING, RESTARTING",
};
for (const [orderBy, needs] of Object.entries(PHASES_NEEDED)) {
  test(`the order ${orderBy} says which filter it needs`, async (t) => {
    const { call, store } = await startFixture(t);
    fill(store);
    for (const phases of [[], [JobPhase.WAITING, JobPhase.FAILED]]) {
      const { error } = await call(method.listJobs, { orderBy, filter: { phases } });
      assert.deepEqual(error?.fields, [{ field: "order_by", description: `${orderBy} ${needs}` }]);
    }
  });
}

test("a list of jobs that ended, and of those that wait, has an order of its own", async (t) => {
  const { call, store } = await startFixture(t);
  fill(store);
  const ended = { endedSince: timestampFromMs(0) };
  const last = await call(method.listJobs, { orderBy: "complete_time desc", filter: ended });
  assert.deepEqual(
    last.ok?.jobs.map((job) => job.metadata?.name),
    ["eval-d"],
  );
  const waiting = await call(method.listJobs, { orderBy: "wait_since", filter: { phases: [JobPhase.WAITING] } });
  assert.deepEqual(
    waiting.ok?.jobs.map((job) => job.metadata?.name),
    ["train-a", "train-b"],
  );
});

const rows = (counted: CountJobsResponse | undefined | null) =>
  counted?.groups.map(({ values, jobs }) => [...values, Number(jobs)]);

test("jobs are counted by the properties in their order; ended ones if the filter asks for them", async (t) => {
  const { call, store } = await startFixture(t);
  fill(store);
  const { PHASE, QUEUE, REASON } = JobProperty;
  const byPhase = await call(method.countJobs, { groupBy: [PHASE, REASON] });
  assert.deepEqual(rows(byPhase.ok), [
    ["RUNNING", "", 1],
    ["WAITING", "NoCapacity", 1],
    ["WAITING", "NotEvaluated", 1],
  ]);
  assert.deepEqual([byPhase.ok?.endedSince, byPhase.ok?.rest], [undefined, undefined]);
  const swapped = await call(method.countJobs, { groupBy: [REASON, PHASE] });
  assert.deepEqual(rows(swapped.ok)?.[0], ["", "RUNNING", 1]);
  const [oldest] = byPhase.ok?.groups.slice(1) ?? [];
  assert.deepEqual([oldest?.pods, oldest?.oldestCreateTime], [4n, timestampFromMs(NOW)]);
  const filter = { phases: [JobPhase.FAILED, JobPhase.RUNNING] };
  const ended = await call(method.countJobs, { groupBy: [QUEUE], filter });
  assert.deepEqual(rows(ended.ok), [
    ["nlp-b", 1],
    ["vision", 1],
  ]);
  assert.ok(ended.ok?.endedSince);
  const none = await call(method.countJobs, { filter: { names: ["none"] } });
  assert.deepEqual(rows(none.ok), [[0]]);
});

test("a count names each property once, and two at most", async (t) => {
  const { call } = await startFixture(t);
  const { PHASE, QUEUE, KIND } = JobProperty;
  for (const groupBy of [[PHASE, PHASE], [PHASE, QUEUE, KIND], [JobProperty.UNSPECIFIED], [99 as JobProperty]]) {
    const { error } = await call(method.countJobs, { groupBy });
    assert.equal(error?.code, "INVALID_ARGUMENT");
    assert.match(error?.fields[0]?.field ?? "", /^group_by/);
  }
});

async function served(t: TestContext) {
  const known = await knownCallers(t);
  const access = memoryAccess({ enforces: true });
  const { authenticate, robots } = known;
  const ports = { authenticate, robots, authorization: access.authorization, access: access.admin };
  const { api, store } = await startFixture(t, ports);
  const parents = [
    ["nlp", null],
    ["nlp-a", "nlp"],
    ["nlp-b", "nlp-a"],
    ["vision", null],
  ] as const;
  const namespaces = ["nlp", "vision"].map((name) => [name, { project: "p", defaultQueue: "default" }] as const);
  access.of.directory = { namespaces: new Map(namespaces), parents: new Map(parents) };
  await access.followed.refresh();
  return async (name: string, ...bound: readonly Pick<NewBinding, "scope">[]) => {
    const { subject, token } = await known.caller("oidc", name);
    const to = { kind: "subject", name: subject } as const;
    for (const { scope } of bound) await access.bind({ to, role: "viewer", scope });
    const client = connect(api.address, new AbortController().signal, { tls: null, token: async () => token });
    t.after(() => client.close());
    return { client, store };
  };
}

test("what a caller may not see is not counted, and a queue that it may not see leads to none below it", async (t) => {
  const as = await served(t);
  const { client: ann, store } = await as("ann", { scope: { kind: "namespace", name: "nlp" } });
  fill(store);
  const filter = { phases: [JobPhase.WAITING, JobPhase.RUNNING, JobPhase.FAILED] };
  const { client: root } = await as("root", { scope: INSTALLATION });
  const groupBy = [JobProperty.NAMESPACE];
  assert.deepEqual(rows(await root.call(method.countJobs, { filter, groupBy })), [
    ["nlp", 3],
    ["vision", 1],
  ]);
  assert.deepEqual(rows(await ann.call(method.countJobs, { filter, groupBy })), [["nlp", 3]]);
  const named = { ...filter, namespaces: ["vision"] };
  assert.deepEqual(rows(await ann.call(method.countJobs, { filter: named, groupBy })), []);
  assert.deepEqual((await ann.call(method.listJobs, { filter: named })).jobs, []);
  const below = { filter: { queueSubtree: "nlp" }, groupBy: [JobProperty.QUEUE] };
  assert.deepEqual(rows(await root.call(method.countJobs, below)), [
    ["nlp", 1],
    ["nlp-a", 1],
    ["nlp-b", 1],
  ]);
  assert.deepEqual(rows(await ann.call(method.countJobs, below)), [["nlp", 1]]);
  const seesQueue = { scope: { kind: "queue", name: "nlp-a" } } as const;
  const { client: bob } = await as("bob", { scope: { kind: "namespace", name: "nlp" } }, seesQueue);
  assert.deepEqual(rows(await bob.call(method.countJobs, below)), [
    ["nlp", 1],
    ["nlp-a", 1],
    ["nlp-b", 1],
  ]);
  const { client: nobody } = await as("nobody");
  await assert.rejects(nobody.call(method.countJobs, {}), /PERMISSION_DENIED|needs the permission|may not/);
});

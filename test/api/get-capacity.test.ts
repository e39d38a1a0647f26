/** What callers see of nodes: the clusters and jobs that they may see, in the order and the pages that they want. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { CallError } from "../../src/cli/rpc/call-error.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import type { NewBinding } from "../../src/core/access/binding.ts";
import type { ClusterRecord } from "../../src/core/admin/cluster.ts";
import type { CapacityEntry } from "../../src/core/plan/model/capacity-entry.ts";
import type { NodeTrouble } from "../../src/core/plan/model/snapshot.ts";
import {
  ClusterService,
  type GetCapacityRequestSchema,
  GetCapacityResponseSchema,
  NodeState,
  NodeView,
} from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import type { MemoryStore } from "./memory-store.ts";

const GPU = "nvidia.com/gpu";

function cluster(name: string, more: Partial<ClusterRecord> = {}): ClusterRecord {
  const flavors = [{ name: "gpu/h100", resource: GPU, nodeLabels: { model: "h100" } }];
  const flags = { cordoned: false, simulated: false, reachable: true, uid: null, gangScheduler: "none" } as const;
  return {
    name,
    labels: {},
    flavors,
    ...flags,
    observedMs: 5_000,
    version: 1,
    createTimeMs: 1,
    capacity: null,
    ...more,
  };
}

type Member = { readonly jobUid: string; readonly index: number };

function node(
  name: string,
  held: number,
  more: { members?: readonly Member[]; trouble?: NodeTrouble } = {},
): CapacityEntry {
  const { members = [], trouble } = more;
  const facts = { name, labels: { model: "h100" }, taints: [{ key: "gpu", value: "yes", effect: "NoSchedule" }] };
  const amounts = {
    allocatable: { cpu: 8_000, [GPU]: 8_000 },
    free: { cpu: 6_500, [GPU]: (8 - held) * 1_000 },
  };
  return {
    kind: "node",
    name,
    node: { ...facts, unschedulable: trouble !== undefined, ...amounts, ...(trouble === undefined ? {} : { trouble }) },
    members: members.map((member) => ({ ...member, admission: 1, role: "worker" })),
  };
}

/** A service that knows its callers, with two clusters and a job in each of two namespaces. */
async function served(t: TestContext) {
  const known = await knownCallers(t);
  const access = memoryAccess({ enforces: true });
  const { authenticate, robots } = known;
  const { authorization, admin } = access;
  const { api, store } = await startFixture(t, { authenticate, robots, authorization, access: admin });
  const as = async (name: string, ...bound: readonly (Pick<NewBinding, "scope"> & { readonly role?: string })[]) => {
    const { subject, token } = await known.caller("oidc", name);
    const to = { kind: "subject", name: subject } as const;
    for (const { scope, role = "viewer" } of bound) await access.bind({ to, role, scope });
    const client = connect(api.address, new AbortController().signal, { tls: null, token: async () => token });
    t.after(() => client.close());
    return (request: MessageInitShape<typeof GetCapacityRequestSchema> = {}) =>
      client.call(ClusterService.method.getCapacity, request);
  };
  const jobs = await submitTwo(t, store, { address: api.address, known, access });
  for (const name of ["east", "west"]) store.clusters.set(name, cluster(name));
  const members = [
    { jobUid: jobs.mine, index: 0 },
    { jobUid: jobs.mine, index: 1 },
    { jobUid: jobs.theirs, index: 0 },
    { jobUid: "01900000-0000-7000-8000-00000000dead", index: 0 },
  ];
  store.nodeEntries.set("east", [node("e-0", 8, { members }), node("e-1", 0, { trouble: BROKEN })]);
  store.nodeEntries.set("west", [node("w-0", 3)]);
  return { as, store, jobs };
}

const BROKEN: NodeTrouble = {
  cordoned: true,
  notReady: { reason: "KubeletNotReady", message: "no network", sinceMs: 9_000 },
};
const INSTALLATION = { scope: { kind: "installation", name: "" } } as const;
const EAST = { scope: { kind: "cluster", name: "east" } } as const;
const MINE = { scope: { kind: "namespace", name: "mine" } } as const;

type Callers = {
  readonly address: string;
  readonly known: Awaited<ReturnType<typeof knownCallers>>;
  readonly access: ReturnType<typeof memoryAccess>;
};

/** Two jobs whose workers request two GPUs each. */
async function submitTwo(t: TestContext, store: MemoryStore, { address, known, access }: Callers) {
  const { subject, token } = await known.caller("oidc", "root");
  await access.bind({ to: { kind: "subject", name: subject }, role: "admin", scope: INSTALLATION.scope });
  const client = connect(address, new AbortController().signal, { tls: null, token: async () => token });
  t.after(() => client.close());
  const template = { spec: { containers: [{ name: "pytorch", image: "i", resources: { limits: { [GPU]: 2 } } }] } };
  const uidOf = async (namespace: string, name: string) => {
    const job = pytorchJob(name, { replicaSpecs: { Worker: { replicas: 4, template } } });
    const metadata = { ...job.metadata, namespace };
    const made = await client.call(JobService.method.createJob, { job: { ...job, metadata } });
    return made.job?.metadata?.uid ?? assert.fail("no job");
  };
  const uids = { mine: await uidOf("mine", "gpt"), theirs: await uidOf("theirs", "secret-plan") };
  assert.equal(store.jobs.size, 2);
  return uids;
}

test("who may see everything sees the holders of a node by job and pod, with amounts", async (t) => {
  const { as, jobs } = await served(t);
  const call = await as("ann", INSTALLATION);
  const { nodes, clusters, total } = await call();
  assert.deepEqual([nodes.map(({ name }) => name), total], [["e-0", "e-1", "w-0"], 3]);
  assert.deepEqual(
    clusters.map(({ name, complete, reachable }) => [name, complete, reachable]),
    [
      ["east", true, true],
      ["west", true, true],
    ],
  );
  const [full, broken] = nodes;
  assert.ok(full !== undefined && broken !== undefined);
  assert.deepEqual(
    full.gpus.map(({ resource, allocatable, held, free }) => [resource, allocatable, held, free]),
    [[GPU, 8n, 8n, 0n]],
  );
  assert.deepEqual([full.flavors, full.cluster, full.ready, full.held["cpu"]], [["gpu/h100"], "east", true, "1500m"]);
  assert.deepEqual(full.taints, ["gpu=yes:NoSchedule"]);
  assert.deepEqual(
    full.holders.map(({ namespace, name, queue, gpus, pods }) => [namespace, name, queue, gpus, pods]),
    [
      ["mine", "gpt", "default", 4n, 2],
      ["theirs", "secret-plan", "default", 2n, 1],
      ["", "", "", 0n, 1],
    ],
  );
  assert.deepEqual(
    full.holders[0]?.members.map(({ name, replicaType, index, requests }) => [name, replicaType, index, requests[GPU]]),
    [
      ["gpt-worker-0", "Worker", 0, "2"],
      ["gpt-worker-1", "Worker", 1, "2"],
    ],
  );
  assert.deepEqual([full.holders[0]?.uid, full.holders[2]?.uid.slice(-4), full.otherGpus], [jobs.mine, "dead", 2n]);
  const { ready, cordoned, unschedulable, reason, message, since } = broken;
  assert.deepEqual(
    [ready, cordoned, unschedulable, reason, message],
    [false, true, true, "KubeletNotReady", "no network"],
  );
  assert.equal(since?.seconds, 9n);
});

test("a job that the caller may not see is a holder without a name, and its pods are not named", async (t) => {
  const { as } = await served(t);
  const call = await as("bob", EAST, MINE);
  const answer = await call();
  const text = toJsonString(GetCapacityResponseSchema, answer);
  assert.doesNotMatch(text, /secret-plan|theirs|west|w-0|dead/);
  assert.match(text, /gpt-worker-1/);
  assert.deepEqual(
    answer.nodes[0]?.holders.map(({ name, uid, gpus, pods, members }) => [
      name,
      uid !== "",
      gpus,
      pods,
      members.length,
    ]),
    [
      ["gpt", true, 4n, 2, 2],
      ["", false, 2n, 1, 0],
      ["", false, 0n, 1, 0],
    ],
  );
});

test("a hidden cluster does not exist, and without any cluster nothing may be called", async (t) => {
  const { as } = await served(t);
  const call = await as("bob", EAST);
  const refused = async (run: Promise<unknown>) => {
    const error = await run.catch((caught: unknown) => caught);
    return error instanceof CallError ? error.details : assert.fail(String(error));
  };
  assert.equal(await refused(call({ name: "west" })), "cluster west does not exist");
  assert.equal(await refused(call({ name: "none" })), "cluster none does not exist");
  assert.deepEqual((await call({ name: "east" })).nodes.length, 2);
  const blind = await as("eve", MINE);
  assert.deepEqual(((answer) => [answer.nodes, answer.clusters, answer.total])(await blind()), [[], [], 0]);
  const stranger = await as("mallory");
  assert.match(await refused(stranger()), /lacks the permission clusters.get/);
});

test("the service filters, orders and pages", async (t) => {
  const { as } = await served(t);
  const call = await as("ann", INSTALLATION);
  const names = async (request: MessageInitShape<typeof GetCapacityRequestSchema>) =>
    (await call(request)).nodes.map(({ name }) => name);
  assert.deepEqual(await names({ orderBy: "held desc" }), ["e-0", "w-0", "e-1"]);
  assert.deepEqual(await names({ orderBy: "free desc" }), ["e-1", "w-0", "e-0"]);
  assert.deepEqual(await names({ filter: { states: [NodeState.READY] } }), ["e-0", "w-0"]);
  assert.deepEqual(await names({ filter: { states: [NodeState.NOT_READY, NodeState.LEAVING] } }), ["e-1"]);
  assert.deepEqual(await names({ filter: { names: ["w-0", "nope"] } }), ["w-0"]);
  assert.deepEqual(await names({ filter: { flavors: ["gpu/a100"] } }), []);
  const found: string[] = [];
  for (let pageToken = "", at = 0; at === 0 || pageToken !== ""; at += 1) {
    const page = await call({ orderBy: "held desc", pageSize: 1, pageToken });
    assert.equal(page.nodes.length, 1);
    found.push(page.nodes[0]?.name ?? "");
    pageToken = page.nextPageToken;
  }
  assert.deepEqual(found, ["e-0", "w-0", "e-1"]);
  const basic = await call({ view: NodeView.BASIC });
  const [first] = basic.nodes;
  assert.ok(first);
  assert.deepEqual([first.labels, first.taints, first.allocatable, first.holders[0]?.members], [{}, [], {}, []]);
  assert.deepEqual([first.gpus[0]?.held, first.holders[0]?.name], [8n, "gpt"]);
});

const wrong: Readonly<Record<string, { request: MessageInitShape<typeof GetCapacityRequestSchema>; field: RegExp }>> = {
  "an unknown order": { request: { orderBy: "free" }, field: /order_by/ },
  "a page that is too large": { request: { pageSize: 1_001 }, field: /page_size/ },
  "a negative page": { request: { pageSize: -1 }, field: /page_size/ },
  "a token of no list": { request: { pageToken: "x" }, field: /page_token/ },
  "too many names": { request: { filter: { names: Array.from({ length: 1_001 }, String) } }, field: /filter.names/ },
  "a state that there is not": { request: { filter: { states: [99 as NodeState] } }, field: /filter.states/ },
  "a version that is too long": { request: { newerThan: "v".repeat(65_537) }, field: /newer_than/ },
};
test("requests beyond the limits of the proto are refused with the field", async (t) => {
  const { api } = await startFixture(t);
  const client = connect(api.address, new AbortController().signal);
  t.after(() => client.close());
  for (const [name, { request, field }] of Object.entries(wrong)) {
    await assert.rejects(client.call(ClusterService.method.getCapacity, request), field, name);
  }
  const held = { orderBy: "held desc", filter: { phases: [JobPhase.RUNNING, JobPhase.ADMITTED] } };
  await client.call(JobService.method.listJobs, held);
  for (const phases of [[], [JobPhase.WAITING], [JobPhase.RUNNING, JobPhase.SUCCEEDED]]) {
    const call = client.call(JobService.method.listJobs, { orderBy: "held desc", filter: { phases } });
    await assert.rejects(call, /order_by: held desc needs a filter by phases/);
  }
});

test("only what has changed since a version is answered, and a caller that sees more gets all again", async (t) => {
  const { as } = await served(t);
  const call = await as("bob", EAST);
  const { version } = await call();
  const again = await call({ newerThan: version });
  assert.deepEqual([again.nodes, again.clusters.map(({ complete }) => complete)], [[], [false]]);
  const more = await as("bob", MINE);
  const shown = await more({ newerThan: version });
  assert.deepEqual([shown.nodes.length, shown.clusters.map(({ complete }) => complete)], [2, [true]]);
});

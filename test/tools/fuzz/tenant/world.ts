/** A service with two tenants: what its callers may use, and what the other tenant has, in names that tell of it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { DEMO_CLUSTERS } from "../../../../src/adapters/simcluster/demo-clusters.ts";
import { startSimCluster } from "../../../../src/adapters/simcluster/sim-cluster.ts";
import type { GangwayClient } from "../../../../src/cli/rpc/client.ts";
import { AccessService } from "../../../../src/gen/gangway/v1/access_service_pb.ts";
import { ClusterService } from "../../../../src/gen/gangway/v1/cluster_service_pb.ts";
import { JobPhase } from "../../../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../../../../src/gen/gangway/v1/namespace_service_pb.ts";
import { PriorityClassService } from "../../../../src/gen/gangway/v1/priority_class_service_pb.ts";
import { WithinQueuePreemption } from "../../../../src/gen/gangway/v1/queue_policy_pb.ts";
import { QueueService, QueueStrategy } from "../../../../src/gen/gangway/v1/queue_service_pb.ts";
import { ResourceManager } from "../../../../src/gen/gangway/v1/resource_manager_pb.ts";
import { RuntimeService } from "../../../../src/gen/gangway/v1/runtime_service_pb.ts";
import { systemClock } from "../../../../src/runtime/clock.ts";
import { waitUntil } from "../../../support/bounded.ts";
import { signingKey, TestIssuer } from "../../../support/issuer.ts";
import { Bank } from "../bank.ts";
import { forgetClusters } from "../baseline.ts";
import { treeOf } from "../tree.ts";
import { OUR, THEIRS, type Uids, UNSPOKEN } from "./names.ts";

/** Each caller has this role in the namespace, and may use the queue. */
export const ROLES = ["submitter", "viewer", "operator"] as const;
export type Role = (typeof ROLES)[number];

/** Tokens live for as long as the longest run. */
const TOKEN_SECONDS = 14 * 24 * 3600;

export type Callers = {
  /** What the service needs to know them. */
  readonly env: Readonly<Record<string, string>>;
  readonly admin: string;
  readonly tokens: Readonly<Record<Role, string>>;
};

/** An issuer of tokens, and files that let its callers in: an admin, and one caller with each role. */
export async function startCallers(parts: AsyncDisposableStack): Promise<Callers> {
  const issuer = await TestIssuer.start(await signingKey("one", "ES256"));
  parts.defer(() => issuer.close());
  const folder = mkdtempSync(join(tmpdir(), "gangway-tenants-"));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string, content: object) => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(content));
    return path;
  };
  const issuers = [{ issuer: issuer.url, audiences: ["gangway"], subjectPrefix: "login:" }];
  const sign = (sub: string) => issuer.sign({ sub, exp: Math.floor(Date.now() / 1000) + TOKEN_SECONDS });
  const none = { callsPerSecond: "none", callsInFlight: "none", watches: "none", logStreams: "none" };
  const [admin, ...tokens] = await Promise.all(["admin", ...ROLES].map(sign));
  return {
    env: {
      GANGWAY_AUTHENTICATION_FILE: file("authentication.json", { issuers, robots: true }),
      GANGWAY_ACCESS_FILE: file("access.json", access()),
      GANGWAY_LIMITS_FILE: file("limits.json", { defaults: none }),
    },
    admin: admin ?? "",
    tokens: Object.fromEntries(ROLES.map((role, at) => [role, tokens[at]])) as Record<Role, string>,
  };
}

function access(): object {
  const bindings = ROLES.flatMap((role) => [
    { name: `${role}-space`, subject: subjectOf(role), role, scope: { namespace: OUR.namespace } },
    { name: `${role}-queue`, subject: subjectOf(role), role: "charger", scope: { queue: OUR.queue } },
  ]);
  return {
    roles: [{ name: "charger", permissions: ["queues.get", "queues.use"] }],
    bindings: [{ name: "root", subject: "login:admin", role: "admin" }, ...bindings],
  };
}

export function subjectOf(role: Role): string {
  return `login:${role}`;
}

/** Starts the clusters of both tenants. Returns their kubeconfigs. */
export async function startTenantClusters(parts: AsyncDisposableStack): Promise<ReadonlyMap<string, string>> {
  const [demo] = DEMO_CLUSTERS;
  const names = ["h100-east", `${THEIRS}-cluster`, `${UNSPOKEN}-cluster`];
  const started = names.map(async (name) => {
    const nodes = (demo?.nodes ?? []).map((node) =>
      name === "h100-east" ? node : { ...node, name: `${UNSPOKEN}-${node.name}` },
    );
    const cluster = await startSimCluster({ name, nodes, directory: null, clock: systemClock() });
    parts.defer(() => cluster.close());
    return [name, cluster.kubeconfig()] as const;
  });
  return new Map(await Promise.all(started));
}

const GPU = "nvidia.com/gpu";
const FLAVOR = "gpu/h100";

/** Everything that both tenants have before the first call. */
export async function makeTenants(root: GangwayClient, kubeconfigs: ReadonlyMap<string, string>): Promise<Uids> {
  await makeClusters(root, kubeconfigs);
  await makeQueues(root);
  await makeNamespaces(root);
  await makeRuntimes(root);
  await makePools(root);
  await makeAccess(root);
  return makeJobs(root);
}

async function makeClusters(root: GangwayClient, kubeconfigs: ReadonlyMap<string, string>): Promise<void> {
  await forgetClusters(root);
  for (const [name, text] of kubeconfigs) {
    const isOurs = name === "h100-east";
    const flavors = isOurs
      ? [{ name: FLAVOR, resource: GPU, nodeLabels: { [`${GPU}.product`]: "NVIDIA-H100-80GB-HBM3" } }]
      : [{ name: `${UNSPOKEN}/${name}`, resource: GPU, nodeLabels: { [`${UNSPOKEN}-label`]: "x" } }];
    const labels = isOurs ? { region: "east" } : { [`${UNSPOKEN}-region`]: `${UNSPOKEN}-east` };
    const credentials = { kubeconfig: { case: "text", value: text } } as const;
    await root.call(ClusterService.method.registerCluster, { cluster: { name, labels, flavors }, credentials });
  }
}

/** The queues of both tenants share what they do not use. */
async function makeQueues(root: GangwayClient): Promise<void> {
  const { createQueue, freezeQueue, grantQuota } = QueueService.method;
  const quotas = (nominal: number) => [{ flavor: FLAVOR, resource: GPU, nominal: BigInt(nominal) }];
  await root.call(createQueue, { queue: { name: "common" } });
  const policy = { preemption: { withinQueue: WithinQueuePreemption.LOWER_PRIORITY } };
  await root.call(createQueue, { queue: { name: OUR.queue, parent: "common", quotas: quotas(6), ...policy } });
  const strict = { name: OUR.strictQueue, parent: OUR.queue, strategy: QueueStrategy.STRICT_FIFO };
  await root.call(createQueue, { queue: strict });
  await root.call(createQueue, { queue: { name: `${THEIRS}-queue`, parent: "common", quotas: quotas(8) } });
  await root.call(createQueue, { queue: { name: `${UNSPOKEN}-queue`, parent: "common", quotas: quotas(2) } });
  const frozen = { name: `${THEIRS}-frozen-queue`, parent: `${THEIRS}-queue` };
  await root.call(createQueue, { queue: frozen });
  await root.call(freezeQueue, { name: frozen.name, reason: `${UNSPOKEN} reason` });
  const grant = { flavor: FLAVOR, amount: 1n, end: { case: "duration", value: { seconds: 31_000_000n } } } as const;
  for (const begin of [THEIRS, UNSPOKEN]) {
    await root.call(grantQuota, { queue: `${begin}-queue`, ...grant, reason: `${UNSPOKEN} reason` });
  }
  const priorityClass = { name: "high", value: 100, description: "known to everyone" };
  await root.call(PriorityClassService.method.createPriorityClass, { priorityClass });
}

async function makeRuntimes(root: GangwayClient): Promise<void> {
  const { createRuntime } = RuntimeService.method;
  const spec = (image: string) => {
    const pod = { spec: { containers: [{ name: "node", image }] } };
    return { template: { spec: { replicatedJobs: [{ name: "node", template: { spec: { template: pod } } }] } } };
  };
  await root.call(createRuntime, { runtime: { name: "known-to-everyone", spec: spec("torch") } });
  await root.call(createRuntime, { runtime: { namespace: OUR.namespace, name: "torch", spec: spec("torch") } });
  for (const begin of [THEIRS, UNSPOKEN]) {
    const names = { namespace: `${begin}-space`, name: `${begin}-runtime` };
    await root.call(createRuntime, { runtime: { ...names, spec: spec(`${UNSPOKEN}.example/torch`) } });
  }
}

async function makeNamespaces(root: GangwayClient): Promise<void> {
  const { createNamespace, setTenantLimits } = NamespaceService.method;
  const { namespace: name, project, queue: defaultQueue } = OUR;
  await root.call(createNamespace, { namespace: { name, project, defaultQueue } });
  for (const begin of [THEIRS, UNSPOKEN]) {
    const names = { name: `${begin}-space`, project: `${begin}-project`, defaultQueue: `${begin}-queue` };
    const podPolicy = { images: { values: [`${UNSPOKEN}.example/*`] } };
    await root.call(createNamespace, { namespace: { ...names, podPolicy } });
    const tenants = [
      { case: "namespace", value: `${begin}-space` },
      { case: "project", value: `${begin}-project` },
    ] as const;
    for (const tenant of tenants) await root.call(setTenantLimits, { limits: { tenant, maxPods: 4_242 } });
  }
}

async function makePools(root: GangwayClient): Promise<void> {
  const { registerResourceQuota, allocateResource, freezePool } = ResourceManager.method;
  for (const begin of [THEIRS, UNSPOKEN]) {
    const resourceNamespace = `ex:${begin}-pool`;
    await root.call(registerResourceQuota, { resourceNamespace, quota: 50n });
    for (let at = 0; at < 4; at += 1) {
      const holder = `${at % 2 === 0 ? begin : UNSPOKEN}-holder`;
      await root.call(allocateResource, {
        resourceNamespace,
        allocationToken: `${at < 2 ? begin : UNSPOKEN}-token-${at}`,
        holder,
        project: `${begin}-project`,
        namespace: `${begin}-space`,
        lease: { seconds: 2_000_000n },
      });
    }
  }
  const frozen = `ex:${THEIRS}-frozen-pool`;
  await root.call(registerResourceQuota, { resourceNamespace: frozen, quota: 5n });
  await root.call(freezePool, { name: frozen, reason: `${UNSPOKEN} reason` });
}

async function makeAccess(root: GangwayClient): Promise<void> {
  const { createRobotToken, createRole, createBinding } = AccessService.method;
  for (const begin of [THEIRS, UNSPOKEN]) {
    await root.call(createRole, { role: { name: `${begin}-role`, permissions: ["jobs.get"] } });
    const scope = { of: { case: "namespace", value: `${begin}-space` } } as const;
    await root.call(createRobotToken, { name: `${begin}-robot`, scope });
    const to = { case: "subject", value: `robot:${begin}-robot` } as const;
    await root.call(createBinding, { binding: { name: `${begin}-binding`, to, role: `${begin}-role`, scope } });
    const group = { case: "group", value: `login:${UNSPOKEN}-group` } as const;
    await root.call(createBinding, { binding: { name: `${begin}-group`, to: group, role: "viewer", scope } });
  }
}

type Wanted = {
  readonly name: string;
  readonly queue: string;
  readonly gpus: number;
  readonly suspend?: boolean;
  readonly priorityClassName?: string;
  readonly cpu?: string;
};

/** A job whose contents have this word. */
function jobOf(namespace: string, wanted: Wanted, word: string) {
  const { name, queue, gpus, suspend = false, priorityClassName = "", cpu = "1" } = wanted;
  const container = {
    name: "main",
    image: `${word}.example/image`,
    env: [{ name: "SECRET", value: `${word}-value` }],
    resources: { limits: { cpu, [GPU]: String(gpus) } },
  };
  const template = {
    metadata: { annotations: { "sim.gangway.dev/run": "9999h" }, labels: { [`${word}-pod`]: "x" } },
    spec: { containers: [container] },
  };
  const runPolicy = { suspend, schedulingPolicy: { queue } };
  const metadata = { namespace, name, labels: { [`${word}-label`]: `${word}-label` } };
  const replicaSpecs = { Worker: { replicas: 1, template } };
  return { metadata, spec: { kind: "Job", replicaSpecs, runPolicy, priorityClassName } };
}

/** Jobs that run, wait, are suspended and have ended; some of them in the queue that the callers may use. */
async function makeJobs(root: GangwayClient): Promise<Uids> {
  const uids = { theirs: [] as string[], unspoken: [] as string[] };
  for (const begin of [THEIRS, UNSPOKEN] as const) {
    const queue = `${begin}-queue`;
    const wanted: readonly Wanted[] = [
      { name: `${begin}-running`, queue, gpus: 1 },
      { name: `${begin}-waiting`, queue, gpus: 8 },
      { name: `${begin}-suspended`, queue, gpus: 1, suspend: true },
      { name: `${begin}-ended`, queue, gpus: 1 },
      { name: `${begin}-guest`, queue: OUR.queue, gpus: 1 },
      { name: `${begin}-head`, queue: OUR.strictQueue, gpus: 8 },
      { name: `${UNSPOKEN}-job`, queue, gpus: 1 },
    ];
    for (const one of wanted) {
      const job = jobOf(`${begin}-space`, one, UNSPOKEN);
      const made = await root.call(JobService.method.createJob, { job, requestId: `${begin}-request-${one.name}` });
      uids[one.name.startsWith(THEIRS) ? "theirs" : "unspoken"].push(made.job?.metadata?.uid ?? "");
    }
    await root.call(JobService.method.cancelJob, { namespace: `${begin}-space`, name: `${begin}-ended` });
    await settled(root, begin);
  }
  return uids;
}

/** Jobs of the callers, under names that their calls use. */
export async function makeOurJobs(root: GangwayClient): Promise<void> {
  const { namespace, queue, strictQueue } = OUR;
  const wanted: readonly Wanted[] = [
    { name: "job-0", queue, gpus: 1 },
    { name: "job-1", queue, gpus: 8 },
    { name: "job-2", queue: strictQueue, gpus: 1 },
    { name: "job-3", queue, gpus: 1, suspend: true },
    { name: "job-4", queue, gpus: 4, priorityClassName: "high" },
    { name: "job-5", queue, gpus: 0, cpu: "500" },
  ];
  for (const one of wanted) {
    await root.call(JobService.method.createJob, { job: jobOf(namespace, one, "our") });
  }
}

/** Waits until nothing of the other tenant moves by itself. */
async function settled(root: GangwayClient, begin: string): Promise<void> {
  const phaseOf = async (name: string) => {
    const { job } = await root.call(JobService.method.getJob, { namespace: `${begin}-space`, name });
    return job?.status?.phase;
  };
  await waitUntil(`the jobs of ${begin} have started`, async () => {
    const running = await Promise.all(["running", "guest"].map((name) => phaseOf(`${begin}-${name}`)));
    return running.every((phase) => phase === JobPhase.RUNNING);
  });
}

/** Everything that an admin's calls return of the other tenant, and that the callers use on purpose. */
export async function learnTheirs(root: GangwayClient, uids: Uids): Promise<Bank> {
  const bank = new Bank(400, (value) => !value.includes(UNSPOKEN) && !uids.unspoken.includes(value));
  const ask = async <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ) => bank.learn(method, treeOf(await root.call(method, request)));
  const page = { pageSize: 1 };
  await ask(JobService.method.listJobs, { ...page, filter: { namespace: `${THEIRS}-space` } });
  for (const orderBy of ["create_time", "name", "priority desc"])
    await ask(JobService.method.listJobs, { ...page, orderBy });
  for (const job of ["running", "waiting", "suspended", "ended", "guest", "head"]) {
    const named = { namespace: `${THEIRS}-space`, name: `${THEIRS}-${job}` };
    await ask(JobService.method.getJob, named);
    await ask(JobService.method.listJobEvents, { ...named, pageSize: 1 });
    await ask(JobService.method.listJobPods, { ...named, pageSize: 1 });
  }
  await ask(NamespaceService.method.listNamespaces, {});
  await ask(NamespaceService.method.listTenantLimits, {});
  await ask(QueueService.method.listQueues, {});
  await ask(QueueService.method.listQuotaGrants, {});
  await ask(QueueService.method.listAuditEntries, page);
  await ask(ResourceManager.method.listPools, page);
  await ask(ResourceManager.method.listPools, {});
  await ask(ResourceManager.method.listAllocations, page);
  await ask(ResourceManager.method.listAllocations, {});
  await ask(ClusterService.method.listClusters, {});
  await ask(AccessService.method.listRobotTokens, page);
  await ask(AccessService.method.listRobotTokens, {});
  await ask(AccessService.method.listRoles, page);
  await ask(AccessService.method.listBindings, page);
  await ask(AccessService.method.listBindings, {});
  for (const name of ["running", "waiting"]) bank.add("request_id", `${THEIRS}-request-${THEIRS}-${name}`);
  await learnCursors(root, bank);
  return bank;
}

/** Cursors of an admin's watch of all jobs. */
async function learnCursors(root: GangwayClient, bank: Bank): Promise<void> {
  const stopped = new AbortController();
  for await (const { cursor } of root.stream(JobService.method.watchJobs, {}, stopped.signal)) {
    if (cursor === "") continue;
    bank.add("cursor", cursor);
    break;
  }
  stopped.abort();
}

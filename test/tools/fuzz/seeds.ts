/** Requests that the service accepts, for the RPCs that need more structure than descriptors tell. */
import { readdirSync, readFileSync } from "node:fs";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { parseAllDocuments } from "yaml";
import { JobSchema } from "../../../src/gen/gangway/v1/job_pb.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";
import { isJsonObject, type JsonObject } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { shippedRuntimeOf } from "../../support/shipped-runtimes.ts";
import type { Maker } from "./generate.ts";
import { podTemplate } from "./json.ts";
import { messageNamed } from "./surface.ts";
import { type Tree, treeOf } from "./tree.ts";

/** Few names, so that calls meet each other: about what others made, and about what was deleted. */
const some = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);
const JOBS = some("job", 60);
const QUEUES = ["default", "research", ...some("queue", 8)];
/** Mostly one, so that names that answers returned exist in it. */
const NAMESPACES = [...Array.from({ length: 9 }, () => "default"), ...some("ns", 5)];
const POOLS = ["gpu/h100", "gpu/a100", "ex:warehouse", "ex:cache", "ex:redis", "ex:small"];
const TOKENS = some("token", 80);
const HOLDERS = ["", "", "", "holder-a", "holder-b"];
const CLUSTERS = ["h100-east", "a100-west", "spare-0", "spare-1"];
const FLAVORS = ["gpu/h100", "gpu/a100", "gpu/l4"];
const GPU = "nvidia.com/gpu";

type Seed = (maker: Maker) => Tree;

const DOCUMENTS = documentsOf("../../../examples", "../../../examples/kinds", "../../../examples/walk");
const MANIFESTS = DOCUMENTS.flatMap((document) => {
  const namespace = { name: "default", isExplicit: false };
  const read = readManifest(document, { kinds: OWN_KINDS, namespace, runtimeOf: shippedRuntimeOf });
  return read.kind === "invalid" ? [] : [toBinary(JobSchema, read.job)];
});

function documentsOf(...folders: readonly string[]): readonly JsonObject[] {
  return folders.flatMap((folder) => {
    const path = new URL(`${folder}/`, import.meta.url);
    const files = readdirSync(path).filter((name) => name.endsWith(".yaml"));
    return files.sort().flatMap((name) =>
      parseAllDocuments(readFileSync(new URL(name, path), "utf8"))
        .map((document) => document.toJS({ maxAliasCount: -1 }))
        .filter(isJsonObject),
    );
  });
}

/** A job of the examples, or a small one, under a name that others of the run use too. */
function job({ chance }: Maker): Tree {
  const metadata = { name: chance.pick(JOBS), namespace: chance.pick(NAMESPACES) };
  const runPolicy = chance.is(0.3) ? { schedulingPolicy: { queue: chance.pick(QUEUES) } } : {};
  if (chance.is(0.6)) {
    const replicas = chance.pick([1, 1, 2, 3]);
    const replicaSpecs = { Worker: { replicas, template: podTemplate(chance) } };
    const priority = chance.is(0.2) ? { priorityClassName: chance.pick(CLASSES) } : {};
    const kind = chance.pick(["Job", "PyTorchJob", "JAXJob"]);
    return { metadata, spec: { kind, replicaSpecs, runPolicy, ...priority } };
  }
  const made = treeOf(fromBinary(messageNamed("gangway.v1.Job"), chance.pick(MANIFESTS)));
  return { ...made, metadata: { ...(made["metadata"] as Tree), ...metadata } };
}

const createJob: Seed = (maker) => {
  const { chance } = maker;
  const requestId = chance.is(0.3) ? `request-${chance.int(0, 99)}` : "";
  if (chance.is(0.2)) {
    const namespace = chance.pick(NAMESPACES);
    const metadata = { name: chance.pick(JOBS), ...(chance.is(0.5) ? { namespace } : {}) };
    return { job: { metadata: { namespace } }, manifest: { ...chance.pick(DOCUMENTS), metadata } as Tree, requestId };
  }
  return { job: job(maker), requestId, validateOnly: chance.is(0.2), strict: chance.is(0.2) };
};

const oneJob: Seed = ({ chance }) => ({ namespace: chance.pick(NAMESPACES), name: chance.pick(JOBS) });

/** A job that exists, if answers have named one. */
const knownJob: Seed = (maker) => {
  const { chance, bank, method } = maker;
  const name = bank.find(chance, method, "name");
  return typeof name === "string" ? { namespace: chance.pick(NAMESPACES), name } : oneJob(maker);
};

/** A value that an answer returned, or none. */
function known({ chance, bank, method }: Maker, field: string, share: number): string {
  const value = chance.is(share) ? bank.find(chance, method, field) : undefined;
  return typeof value === "string" ? value : "";
}

const byUid: Seed = (maker) => {
  const uid = known(maker, "uid", 1);
  return uid === "" ? oneJob(maker) : { uid };
};

const filter = ({ chance }: Maker): Tree => ({
  ...(chance.is(0.5) ? { namespace: chance.pick(NAMESPACES) } : {}),
  ...(chance.is(0.3) ? { names: [chance.pick(JOBS), chance.pick(JOBS)] } : {}),
  ...(chance.is(0.2) ? { phases: [chance.int(1, 9)] } : {}),
  ...(chance.is(0.2) ? { labels: { team: "a" } } : {}),
  ...(chance.is(0.1) ? { queueSubtree: chance.pick(QUEUES) } : {}),
  ...(chance.is(0.1) ? { queues: [chance.pick(QUEUES), chance.pick(QUEUES)] } : {}),
  ...(chance.is(0.1) ? { createdBy: ["anonymous"] } : {}),
  ...(chance.is(0.1) ? { reasons: ["NoCapacity", "NotEvaluated"] } : {}),
  ...(chance.is(0.1) ? { namePrefix: chance.pick(["j", "%", "_"]) } : {}),
  ...(chance.is(0.1) ? { flavor: chance.pick(FLAVORS) } : {}),
  ...(chance.is(0.1) ? { endedSince: { seconds: BigInt(chance.int(0, 9)), nanos: 0 } } : {}),
});

const page: Seed = (maker) => ({
  pageSize: maker.chance.pick([0, 1, 2, 10, 1000]),
  pageToken: known(maker, "page_token", 0.5),
});

const updateJob: Seed = (maker) => {
  const { chance } = maker;
  const { namespace, name } = (chance.is(0.5) ? knownJob : oneJob)(maker);
  const resourceVersion = known(maker, "resource_version", 0.3);
  const template = podTemplate(chance);
  return {
    job: {
      metadata: { namespace, name, resourceVersion, labels: { team: "b" } },
      spec: {
        priority: chance.int(-5, 5),
        runPolicy: { suspend: chance.is(0.5) },
        replicaSpecs: { Worker: { replicas: chance.int(0, 4), template } },
      },
    },
    updateMask: {
      paths: [
        chance.pick([
          "spec.priority",
          "spec.run_policy.suspend",
          "metadata.labels",
          "spec.replica_specs.Worker.replicas",
        ]),
      ],
    },
  };
};

const queue: Seed = ({ chance }) => ({
  queue: {
    name: chance.pick(QUEUES),
    strategy: chance.int(0, 2),
    parent: chance.is(0.3) ? chance.pick(QUEUES) : "",
    quotas: FLAVORS.slice(0, chance.int(0, 3)).map((flavor) => ({
      flavor,
      resource: GPU,
      nominal: BigInt(chance.int(0, 20)),
    })),
    ...(chance.is(0.3) ? policy(chance) : {}),
  },
});

/** Mostly allowed. */
const policy = (chance: Maker["chance"]) => ({
  weight: chance.int(0, 9) / 2,
  ...(chance.is(0.3) ? { fairSharing: { strategies: [1, 2].slice(0, chance.int(0, 2)) } } : {}),
  preemption: {
    withinQueue: chance.int(0, 3),
    reclaimWithinTree: chance.int(2, 3),
    borrowWithin: { policy: 2, maxPriority: chance.int(0, 9) },
  },
  flavorFungibility: { whenCanBorrow: 2, whenCanPreempt: 2, preference: chance.int(0, 2) },
  minRuntime: { preempt: { seconds: BigInt(chance.int(0, 99)) } },
});

const CLASSES = ["high", "low", "patient"];

const priorityClass: Seed = ({ chance }) => ({
  priorityClass: {
    name: chance.pick(CLASSES),
    ...(chance.is(0.8) ? { value: chance.int(0, 9) } : {}),
    globalDefault: chance.is(0.3),
    preemptionPolicy: chance.int(0, 2),
  },
});

const RUNTIMES = ["torch-distributed", ...some("runtime", 4)];
const RUNTIME_NAMESPACES = ["", ...NAMESPACES];

const runtime: Seed = ({ chance }) => ({
  runtime: {
    namespace: chance.pick(RUNTIME_NAMESPACES),
    name: chance.pick(RUNTIMES),
    labels: chance.is(0.5) ? { team: "x" } : {},
    spec: {
      mlPolicy: { numNodes: chance.int(0, 2), [chance.pick(["torch", "mpi", "jax", "flux"])]: {} },
      template: { spec: { replicatedJobs: [{ name: "node", template: { spec: { template: podTemplate(chance) } } }] } },
    },
  },
  validateOnly: chance.is(0.2),
});
const oneRuntime: Seed = ({ chance }) => ({
  namespace: chance.pick(RUNTIME_NAMESPACES),
  name: chance.pick(RUNTIMES),
});

const allocate: Seed = ({ chance }) => ({
  resourceNamespace: chance.pick(POOLS),
  allocationToken: chance.pick(TOKENS),
  amount: BigInt(chance.int(1, 3)),
  holder: chance.pick(HOLDERS),
  ...(chance.is(0.3) ? { project: chance.pick(["default", "team"]), namespace: chance.pick(NAMESPACES) } : {}),
  ...(chance.is(0.3) ? { lease: { seconds: BigInt(chance.pick([1, 30, 7200])), nanos: 0 } } : {}),
  ...(chance.is(0.1) ? { queue: chance.pick(QUEUES) } : {}),
});

const line: Seed = ({ chance }) => ({ resourceNamespace: chance.pick(POOLS), allocationToken: chance.pick(TOKENS) });
const lines = (seed: Seed, maker: Maker) =>
  Array.from({ length: maker.chance.pick([1, 2, 5]) }, () => ({ ...seed(maker), holder: "" }));

const pool: Seed = ({ chance }) => {
  const resourceNamespace = chance.pick(POOLS);
  return {
    resourceNamespace,
    quota: BigInt(chance.pick([0, 4, 50, 1000])),
    ...(chance.is(0.2) ? { projectDefault: BigInt(chance.int(0, 50)) } : {}),
    ...(chance.is(0.2) ? { defaultLease: { seconds: 3600n, nanos: 0 } } : {}),
    durability: resourceNamespace === "ex:redis" ? 2 : 0,
  };
};

/** No address in it but a port of this machine on which no server listens. */
const KUBECONFIG = JSON.stringify({
  clusters: [{ name: "c", cluster: { server: "https://[::1]:9" } }],
  users: [{ name: "u", user: {} }],
  contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
  "current-context": "x",
});

const cluster: Seed = ({ chance }) => ({
  cluster: {
    name: chance.pick(CLUSTERS),
    labels: { region: "east" },
    flavors: [{ name: chance.pick(FLAVORS), resource: GPU, nodeLabels: { gpu: "x" } }],
  },
  ...(chance.is(0.5) ? { credentials: { kubeconfig: { case: "text", value: KUBECONFIG } } } : {}),
});
const named =
  (names: readonly string[]): Seed =>
  ({ chance }) => ({ name: chance.pick(names) });

export const SEEDS: Readonly<Record<string, Seed>> = {
  "JobService.CreateJob": createJob,
  "JobService.SimulateJob": (maker) => ({ job: job(maker) }),
  "JobService.BatchCreateJobs": (maker) => ({
    requests: Array.from({ length: maker.chance.pick([1, 2, 4]) }, () => createJob(maker)),
  }),
  "JobService.GetJob": (maker) => (maker.chance.is(0.3) ? byUid(maker) : knownJob(maker)),
  "JobService.ListJobs": (maker) => ({ filter: filter(maker), ...page(maker) }),
  "JobService.CountJobs": (maker) => ({
    filter: filter(maker),
    groupBy: maker.chance.pick([[], [1], [2, 1], [7], [8, 4], [3, 3]]),
  }),
  "JobService.WatchJobs": (maker) => ({ filter: filter(maker), cursor: known(maker, "cursor", 0.4) }),
  "JobService.UpdateJob": updateJob,
  "JobService.CancelJob": oneJob,
  "JobService.DeleteJob": oneJob,
  "JobService.ExplainJob": oneJob,
  "JobService.ListJobEvents": (maker) => ({ ...oneJob(maker), ...page(maker) }),
  "JobService.StreamJobLogs": (maker) => ({ ...oneJob(maker), follow: maker.chance.is(0.3) }),
  "QueueService.CreateQueue": queue,
  "QueueService.UpdateQueue": queue,
  "QueueService.GetQueue": named(QUEUES),
  "QueueService.FreezeQueue": named(QUEUES),
  "QueueService.UnfreezeQueue": named(QUEUES),
  "QueueService.GrantQuota": ({ chance }) => ({
    queue: chance.pick(QUEUES),
    flavor: "gpu/h100",
    amount: chance.pick(["1", "8"]),
    duration: chance.pick(["3600s", "7200s"]),
  }),
  "QueueService.ListQuotaGrants": ({ chance }) => ({ queue: chance.pick(["", ...QUEUES]) }),
  "QueueService.RevokeQuotaGrant": ({ chance }) => ({ queue: chance.pick(QUEUES), flavor: "gpu/h100" }),
  "QueueService.DeleteQueue": named(QUEUES),
  "QueueService.ListAuditEntries": page,
  "PriorityClassService.CreatePriorityClass": priorityClass,
  "PriorityClassService.UpdatePriorityClass": priorityClass,
  "PriorityClassService.GetPriorityClass": named(CLASSES),
  "PriorityClassService.DeletePriorityClass": named(CLASSES),
  "RuntimeService.CreateRuntime": runtime,
  "RuntimeService.UpdateRuntime": runtime,
  "RuntimeService.GetRuntime": oneRuntime,
  "RuntimeService.DeleteRuntime": oneRuntime,
  "RuntimeService.ListRuntimes": (maker) => ({ namespace: maker.chance.pick(RUNTIME_NAMESPACES), ...page(maker) }),
  "NamespaceService.CreateNamespace": ({ chance }) => ({ namespace: { name: chance.pick(NAMESPACES) } }),
  "NamespaceService.UpdateNamespace": ({ chance }) => ({
    namespace: { name: chance.pick(NAMESPACES), defaultQueue: chance.pick(QUEUES) },
  }),
  "NamespaceService.GetNamespace": named(NAMESPACES),
  "NamespaceService.DeleteNamespace": named(NAMESPACES),
  "NamespaceService.SetTenantLimits": ({ chance }) => ({
    limits: {
      tenant: chance.pick([
        { case: "namespace", value: chance.pick(NAMESPACES) },
        { case: "project", value: "default" },
      ]),
      maxWaitingJobs: chance.pick([0, 1, 50]),
      maxRunningJobs: chance.pick([0, 1, 50]),
      maxPods: chance.pick([0, 1, 500]),
      maxRobotTokens: chance.pick([0, 1, 50]),
    },
  }),
  "ResourceManager.RegisterResourceQuota": pool,
  "ResourceManager.AllocateResource": allocate,
  "ResourceManager.WaitForResource": allocate,
  "ResourceManager.ReleaseResource": line,
  "ResourceManager.ForceRelease": (maker) => ({ ...line(maker), reason: "a fuzz releases it" }),
  "ResourceManager.BatchAllocateResources": (maker) => ({ lines: lines(allocate, maker) }),
  "ResourceManager.BatchReleaseResources": (maker) => ({ lines: lines(line, maker) }),
  "ResourceManager.RenewAllocations": (maker) => ({
    lines: Array.from({ length: maker.chance.pick([1, 2, 5]) }, () => line(maker)),
  }),
  "ResourceManager.GetPool": named(POOLS),
  "ResourceManager.FreezePool": named(POOLS),
  "ResourceManager.UnfreezePool": named(POOLS),
  "ResourceManager.DeletePool": named(POOLS),
  "ResourceManager.ReconcileQuota": ({ chance }) => ({ pool: chance.pick(["", ...POOLS]), dryRun: chance.is(0.5) }),
  "ResourceManager.ListPools": page,
  "ResourceManager.ListAllocations": page,
  "ClusterService.RegisterCluster": (maker) => ({ ...cluster(maker), validateOnly: maker.chance.is(0.5) }),
  "ClusterService.UpdateCluster": cluster,
  "ClusterService.GetCluster": named(CLUSTERS),
  "ClusterService.CordonCluster": named(CLUSTERS),
  "ClusterService.UncordonCluster": named(CLUSTERS),
  "ClusterService.GetCapacity": (maker) => ({
    ...named(["", ...CLUSTERS])(maker),
    ...page(maker),
    orderBy: maker.chance.pick(["", "cluster", "name", "held desc", "free desc"]),
    newerThan: known(maker, "version", 0.5),
  }),
  "ClusterService.CheckCluster": named(CLUSTERS),
  "ClusterService.DeleteCluster": named(CLUSTERS),
  "ClusterService.ListCredentialKeys": () => ({}),
  "ClusterService.RotateCredentialKeys": (maker) => ({ to: maker.chance.is(0.5) ? "" : "default" }),
};

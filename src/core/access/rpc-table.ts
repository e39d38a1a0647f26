/** What each RPC needs. An RPC that is not in the table is denied. */
import type { CallPermission } from "./permissions.ts";
import type { ScopeKind } from "./scope.ts";

/** A field of a request or of an item of it: the names of members, joined by dots. */
type FieldPath = string;

/** Where a permission is needed. */
export type NeedAt =
  | { readonly kind: "installation" }
  /** A binding at any scope is enough: the handler shows what the caller may see, or asks again. */
  | { readonly kind: "anywhere" }
  /** At the thing that the field names. `fallback`: the name that an empty field means. */
  | {
      readonly kind: Exclude<ScopeKind, "installation">;
      readonly field: FieldPath;
      readonly fallback?: string;
    }
  /** At the queue above the one that the field names; at the installation for a root. */
  | { readonly kind: "queueAbove"; readonly field: FieldPath }
  /** At the cluster that the field names; at the installation if it names none. */
  | { readonly kind: "clusterIfNamed"; readonly field: FieldPath }
  /** At a share of pools. */
  | { readonly kind: "share"; readonly project: FieldPath; readonly namespace: FieldPath }
  /** At a scope in the request, as of a binding. */
  | { readonly kind: "scope"; readonly field: FieldPath };

/** How a thing is answered that the caller may not see: exactly as if it did not exist. */
export type Missing =
  /** NOT_FOUND. The name consists of these fields, joined by `/`; `default` for an empty namespace. */
  | { readonly kind: "notFound"; readonly type: string; readonly name: readonly FieldPath[] }
  /** INVALID_ARGUMENT for a field that names a queue. */
  | { readonly kind: "badField"; readonly field: string; readonly queue: FieldPath };

export type Need = {
  readonly permission: CallPermission;
  readonly at: NeedAt;
  /** Omitted: always needed. */
  readonly when?: NeedCondition;
  /** Omitted: every caller may know that the thing exists. */
  readonly hidden?: {
    /** Who has this permission at `at` sees the thing. */
    readonly unless: CallPermission;
    /** Where that is asked. Omitted: where the need is. */
    readonly at?: NeedAt;
    readonly as: Missing;
  };
};

export type NeedCondition =
  /** One of the fields is set. */
  | { readonly kind: "set"; readonly fields: readonly FieldPath[] }
  /** The field is not set. */
  | { readonly kind: "unset"; readonly field: FieldPath }
  /** The field of the request, or of the item, names someone other than the caller; or it does not. */
  | { readonly kind: "otherCaller" | "ownName"; readonly field: FieldPath; readonly of: "request" | "item" }
  /** The request changes what the directory knows of the namespace. The default value never counts as a change. */
  | { readonly kind: "changed"; readonly member: "project" | "defaultQueue"; readonly field: FieldPath };

export type RpcEntry =
  /** Every caller that is known may call it. */
  | { readonly kind: "open"; readonly why: string }
  | {
      readonly kind: "guarded";
      /** All of them. */
      readonly needs: readonly Need[];
      /** Each of these items needs it by itself. */
      readonly items?: FieldPath;
      /** Items succeed and fail apart: the handler judges each. */
      readonly apart?: true;
      /** False: goes on while it is not known whether roles and bindings have changed. */
      readonly changes: boolean;
      /**
       * Each call that changes something leaves an entry of the audit log; a batch, one for each item. Tokens that
       * callers take, renew and give back are too many. Of an RPC that changes nothing: each call leaves one, because
       * it tells of credentials.
       */
      readonly audited: boolean;
    };

const NEW_JOB: readonly Need[] = [
  inNamespace("jobs.create", "job.metadata.namespace", "namespaces.get", namespaceIn("job.metadata.namespace")),
];

/** RPCs by `package.Service/Method`. */
export const RPC_TABLE: Readonly<Record<string, RpcEntry>> = {
  "gangway.v1.JobService/CreateJob": audited(NEW_JOB),
  "gangway.v1.JobService/BatchCreateJobs": { ...audited(NEW_JOB), items: "requests", apart: true },
  "gangway.v1.JobService/SimulateJob": reading(NEW_JOB),
  "gangway.v1.JobService/GetJob": reading([
    { ...ofJob("jobs.get"), when: { kind: "unset", field: "uid" } },
    {
      permission: "jobs.get",
      at: { kind: "anywhere" },
      hidden: { unless: "jobs.get", as: { kind: "notFound", type: "job", name: ["uid"] } },
      when: { kind: "set", fields: ["uid"] },
    },
  ]),
  "gangway.v1.JobService/ListJobs": reading([anywhere("jobs.get")]),
  "gangway.v1.JobService/CountJobs": reading([anywhere("jobs.get")]),
  "gangway.v1.JobService/WatchJobs": reading([anywhere("jobs.get")]),
  "gangway.v1.JobService/ExplainJob": reading([ofJob("jobs.get")]),
  "gangway.v1.JobService/ListJobEvents": reading([ofJob("jobs.get")]),
  "gangway.v1.JobService/ListJobPods": reading([ofJob("jobs.get")]),
  "gangway.v1.JobService/StreamJobLogs": reading([ofJob("jobs.logs")]),
  "gangway.v1.JobService/UpdateJob": audited([
    inNamespace("jobs.update", "job.metadata.namespace", "jobs.get", {
      kind: "notFound",
      type: "job",
      name: ["job.metadata.namespace", "job.metadata.name"],
    }),
  ]),
  "gangway.v1.JobService/CancelJob": audited([ofJob("jobs.cancel")]),
  "gangway.v1.JobService/DeleteJob": audited([ofJob("jobs.delete")]),
  "gangway.v1.JobService/ListKinds": reading([anywhere("kinds.get")]),

  "gangway.v1.NamespaceService/CreateNamespace": audited([
    { permission: "namespaces.create", at: { kind: "project", field: "namespace.project", fallback: "default" } },
    ...namespaceSettings(),
  ]),
  "gangway.v1.NamespaceService/GetNamespace": reading([ofNamespace("namespaces.get", "name")]),
  "gangway.v1.NamespaceService/ListNamespaces": reading([anywhere("namespaces.get")]),
  "gangway.v1.NamespaceService/UpdateNamespace": audited([
    ofNamespace("namespaces.update", "namespace.name"),
    {
      permission: "namespaces.update",
      at: { kind: "project", field: "namespace.project", fallback: "default" },
      when: { kind: "changed", member: "project", field: "namespace.project" },
    },
    ...namespaceSettings(),
  ]),
  "gangway.v1.NamespaceService/DeleteNamespace": audited([ofNamespace("namespaces.delete", "name")]),

  "gangway.v1.NamespaceService/SetTenantLimits": audited([
    { permission: "namespaces.limit", at: { kind: "installation" } },
  ]),
  "gangway.v1.NamespaceService/ListTenantLimits": reading([anywhere("namespaces.get")]),

  "gangway.v1.QueueService/CreateQueue": audited([
    { permission: "queues.create", at: { kind: "installation" }, when: { kind: "unset", field: "queue.parent" } },
    belowQueue("queues.create"),
  ]),
  "gangway.v1.QueueService/GetQueue": reading([ofQueue("queues.get", "name")]),
  "gangway.v1.QueueService/ListQueues": reading([anywhere("queues.get")]),
  "gangway.v1.QueueService/UpdateQueue": audited([
    aboveQueue("queues.update", "queue.name"),
    { permission: "queues.update", at: { kind: "installation" }, when: { kind: "unset", field: "queue.parent" } },
    belowQueue("queues.update"),
  ]),
  "gangway.v1.QueueService/FreezeQueue": audited([aboveQueue("queues.update", "name")]),
  "gangway.v1.QueueService/UnfreezeQueue": audited([aboveQueue("queues.update", "name")]),
  "gangway.v1.QueueService/GrantQuota": audited([aboveQueue("queues.update", "queue")]),
  "gangway.v1.QueueService/ListQuotaGrants": reading([anywhere("queues.get")]),
  "gangway.v1.QueueService/RevokeQuotaGrant": audited([aboveQueue("queues.update", "queue")]),
  "gangway.v1.QueueService/DeleteQueue": audited([aboveQueue("queues.delete", "name")]),
  "gangway.v1.QueueService/ListAuditEntries": reading([{ permission: "audit.read", at: { kind: "installation" } }]),

  "gangway.v1.PriorityClassService/CreatePriorityClass": audited([priorities()]),
  "gangway.v1.PriorityClassService/GetPriorityClass": reading([anywhere("priorities.get")]),
  "gangway.v1.PriorityClassService/ListPriorityClasses": reading([anywhere("priorities.get")]),
  "gangway.v1.PriorityClassService/UpdatePriorityClass": audited([priorities()]),
  "gangway.v1.PriorityClassService/DeletePriorityClass": audited([priorities()]),

  "gangway.v1.RuntimeService/CreateRuntime": audited([
    definedRuntimes("runtime.namespace"),
    {
      ...inNamespace("runtimes.define", "runtime.namespace", "namespaces.get", namespaceIn("runtime.namespace")),
      when: { kind: "set", fields: ["runtime.namespace"] },
    },
  ]),
  "gangway.v1.RuntimeService/GetRuntime": reading(ofRuntime("runtimes.get", "")),
  "gangway.v1.RuntimeService/ListRuntimes": reading([
    { ...anywhere("runtimes.get"), when: { kind: "unset", field: "namespace" } },
    { ...ofNamespace("runtimes.get", "namespace"), when: { kind: "set", fields: ["namespace"] } },
  ]),
  "gangway.v1.RuntimeService/UpdateRuntime": audited(ofRuntime("runtimes.define", "runtime.")),
  "gangway.v1.RuntimeService/DeleteRuntime": audited(ofRuntime("runtimes.define", "")),

  "gangway.v1.ResourceManager/RegisterResourceQuota": audited([
    ofPool("pools.update", "resourceNamespace"),
    chargedQueue(),
  ]),
  "gangway.v1.ResourceManager/GetPool": reading([ofPool("pools.get", "name")]),
  "gangway.v1.ResourceManager/ListPools": reading([anywhere("pools.get")]),
  "gangway.v1.ResourceManager/FreezePool": audited([ofPool("pools.update", "name")]),
  "gangway.v1.ResourceManager/UnfreezePool": audited([ofPool("pools.update", "name")]),
  "gangway.v1.ResourceManager/DeletePool": audited([ofPool("pools.delete", "name")]),
  "gangway.v1.ResourceManager/AllocateResource": changing(tokenNeeds("request")),
  "gangway.v1.ResourceManager/WaitForResource": changing(tokenNeeds("request")),
  "gangway.v1.ResourceManager/BatchAllocateResources": { ...changing(tokenNeeds("request")), items: "lines" },
  // Giving back and keeping what was granted takes nothing from others.
  "gangway.v1.ResourceManager/ReleaseResource": reading(heldNeeds("request")),
  "gangway.v1.ResourceManager/BatchReleaseResources": { ...reading(heldNeeds("item")), items: "lines", apart: true },
  "gangway.v1.ResourceManager/RenewAllocations": { ...reading(heldNeeds("request")), items: "lines", apart: true },
  "gangway.v1.ResourceManager/ListAllocations": reading([anywhere("pools.get")]),
  "gangway.v1.ResourceManager/ForceRelease": audited([ofPool("tokens.manage", "resourceNamespace")]),
  "gangway.v1.ResourceManager/ReconcileQuota": audited([
    { permission: "pools.reconcile", at: { kind: "installation" }, when: { kind: "unset", field: "pool" } },
    { ...ofPool("pools.reconcile", "pool"), when: { kind: "set", fields: ["pool"] } },
  ]),

  "gangway.v1.ClusterService/GetCluster": reading([ofCluster("clusters.get", "name")]),
  "gangway.v1.ClusterService/ListClusters": reading([anywhere("clusters.get")]),
  "gangway.v1.ClusterService/GetCapacity": reading([
    { ...ofCluster("clusters.get", "name"), when: { kind: "set", fields: ["name"] } },
    { ...anywhere("clusters.get"), when: { kind: "unset", field: "name" } },
  ]),
  "gangway.v1.ClusterService/CheckCluster": reading([ofCluster("clusters.check", "name")]),
  "gangway.v1.ClusterService/CordonCluster": audited([ofCluster("clusters.drain", "name")]),
  "gangway.v1.ClusterService/UncordonCluster": audited([ofCluster("clusters.drain", "name")]),
  "gangway.v1.ClusterService/DeclareClusterLost": audited([ofCluster("clusters.operate", "name")]),
  "gangway.v1.ClusterService/AdoptCluster": audited([ofCluster("clusters.operate", "name")]),
  "gangway.v1.ClusterService/RegisterCluster": audited([
    { permission: "clusters.register", at: { kind: "installation" } },
    secretSource(),
  ]),
  "gangway.v1.ClusterService/UpdateCluster": audited([ofCluster("clusters.update", "cluster.name"), secretSource()]),
  "gangway.v1.ClusterService/DeleteCluster": audited([ofCluster("clusters.delete", "name")]),
  "gangway.v1.ClusterService/ListCredentialKeys": {
    ...reading([{ permission: "keys.get", at: { kind: "installation" } }]),
    audited: true,
  },
  "gangway.v1.ClusterService/RotateCredentialKeys": audited([
    { permission: "keys.rotate", at: { kind: "installation" } },
  ]),

  "gangway.v1.AccessService/WhoAmI": open("a caller may know itself"),
  "gangway.v1.AccessService/CheckAccess": open("a caller may know what it may do"),
  "gangway.v1.AccessService/CreateRobotToken": audited([
    { permission: "robots.create", at: { kind: "scope", field: "scope" } },
  ]),
  "gangway.v1.AccessService/ListRobotTokens": {
    ...reading([anywhere("robots.get")]),
    audited: true,
  },
  "gangway.v1.AccessService/RevokeRobotToken": audited([oneOf("robot", "robots.revoke", "robots.get")]),
  "gangway.v1.AccessService/CreateRole": audited([{ permission: "access.define", at: { kind: "installation" } }]),
  "gangway.v1.AccessService/GetRole": reading([anywhere("access.get")]),
  "gangway.v1.AccessService/ListRoles": reading([anywhere("access.get")]),
  "gangway.v1.AccessService/DeleteRole": audited([{ permission: "access.define", at: { kind: "installation" } }]),
  "gangway.v1.AccessService/CreateBinding": audited([
    { permission: "access.bind", at: { kind: "scope", field: "binding.scope" } },
  ]),
  "gangway.v1.AccessService/GetBinding": reading([oneOf("binding", "access.get", "access.get")]),
  "gangway.v1.AccessService/ListBindings": reading([anywhere("access.get")]),
  "gangway.v1.AccessService/DeleteBinding": audited([oneOf("binding", "access.bind", "access.get")]),

  "grpc.health.v1.Health/Check": open("a probe may have no role"),
  "grpc.health.v1.Health/List": open("a probe may have no role"),
  "grpc.health.v1.Health/Watch": open("a probe may have no role"),
  "grpc.reflection.v1.ServerReflection/ServerReflectionInfo": reading([anywhere("api.describe")]),
};

function open(why: string): RpcEntry {
  return { kind: "open", why };
}

type Guarded = Extract<RpcEntry, { kind: "guarded" }>;

function reading(needs: readonly Need[]): Guarded {
  return { kind: "guarded", needs, changes: false, audited: false };
}

function changing(needs: readonly Need[]): Guarded {
  return { kind: "guarded", needs, changes: true, audited: false };
}

function audited(needs: readonly Need[]): Guarded {
  return { kind: "guarded", needs, changes: true, audited: true };
}

function anywhere(permission: CallPermission): Need {
  return { permission, at: { kind: "anywhere" } };
}

function priorities(): Need {
  return { permission: "priorities.define", at: { kind: "installation" } };
}

/** Who may define runtimes of the installation gives jobs of all namespaces what they run. */
function definedRuntimes(field: FieldPath): Need {
  return { permission: "runtimes.define", at: { kind: "installation" }, when: { kind: "unset", field } };
}

/** `prefix`: the path of the message with the runtime's names. */
function ofRuntime(permission: "runtimes.get" | "runtimes.define", prefix: string): readonly Need[] {
  const field = `${prefix}namespace`;
  const as: Missing = { kind: "notFound", type: "training runtime", name: [field, `${prefix}name`] };
  return [
    permission === "runtimes.get"
      ? { ...anywhere(permission), when: { kind: "unset", field } }
      : definedRuntimes(field),
    { ...inNamespace(permission, field, "runtimes.get", as), when: { kind: "set", fields: [field] } },
  ];
}

function inNamespace(permission: CallPermission, field: FieldPath, unless: CallPermission, as: Missing): Need {
  return { permission, at: { kind: "namespace", field, fallback: "default" }, hidden: { unless, as } };
}

function namespaceIn(field: FieldPath): Missing {
  return { kind: "notFound", type: "namespace", name: [field] };
}

function ofJob(permission: CallPermission): Need {
  const as: Missing = { kind: "notFound", type: "job", name: ["namespace", "name"] };
  return inNamespace(permission, "namespace", "jobs.get", as);
}

function ofNamespace(permission: CallPermission, field: FieldPath): Need {
  return { permission, at: { kind: "namespace", field }, hidden: { unless: "namespaces.get", as: namespaceIn(field) } };
}

/** A queue that jobs are to run in by default, and a pod policy. */
function namespaceSettings(): readonly Need[] {
  return [
    {
      permission: "queues.use",
      at: { kind: "queue", field: "namespace.defaultQueue", fallback: "default" },
      when: { kind: "changed", member: "defaultQueue", field: "namespace.defaultQueue" },
      hidden: {
        unless: "queues.get",
        as: { kind: "badField", field: "namespace.default_queue", queue: "namespace.defaultQueue" },
      },
    },
    {
      permission: "namespaces.police",
      at: { kind: "installation" },
      when: { kind: "set", fields: ["namespace.podPolicy"] },
    },
  ];
}

function ofQueue(permission: CallPermission, field: FieldPath): Need {
  const as: Missing = { kind: "notFound", type: "queue", name: [field] };
  return { permission, at: { kind: "queue", field }, hidden: { unless: "queues.get", as } };
}

/** Who may change a queue could give itself more of what queues share, so its parent counts. */
function aboveQueue(permission: CallPermission, field: FieldPath): Need {
  const as: Missing = { kind: "notFound", type: "queue", name: [field] };
  return {
    permission,
    at: { kind: "queueAbove", field },
    hidden: { unless: "queues.get", at: { kind: "queue", field }, as },
  };
}

function belowQueue(permission: CallPermission): Need {
  return {
    permission,
    at: { kind: "queue", field: "queue.parent" },
    when: { kind: "set", fields: ["queue.parent"] },
    hidden: { unless: "queues.get", as: { kind: "badField", field: "queue.parent", queue: "queue.parent" } },
  };
}

function ofPool(permission: CallPermission, field: FieldPath): Need {
  const as: Missing = { kind: "notFound", type: "pool", name: [field] };
  return { permission, at: { kind: "pool", field }, hidden: { unless: "pools.get", as } };
}

function ofCluster(permission: CallPermission, field: FieldPath): Need {
  const as: Missing = { kind: "notFound", type: "cluster", name: [field] };
  return { permission, at: { kind: "cluster", field }, hidden: { unless: "clusters.get", as } };
}

/** The cluster whose Secret holds a kubeconfig: the service reads it by what it may do there. */
function secretSource(): Need {
  const field = "credentials.kubeconfig.value.cluster";
  return {
    permission: "clusters.update",
    at: { kind: "clusterIfNamed", field },
    when: { kind: "set", fields: ["credentials.kubeconfig.value.namespace"] },
    hidden: { unless: "clusters.get", as: { kind: "notFound", type: "cluster", name: [field] } },
  };
}

/** A queue that a request names to be charged. */
function chargedQueue(): Need {
  return { ...ofQueue("queues.use", "queue"), when: { kind: "set", fields: ["queue"] } };
}

function tokenNeeds(holderOf: "request" | "item"): readonly Need[] {
  return [
    ...heldNeeds(holderOf),
    chargedQueue(),
    {
      permission: "tokens.charge",
      at: { kind: "share", project: "project", namespace: "namespace" },
      when: { kind: "set", fields: ["project", "namespace"] },
    },
  ];
}

function heldNeeds(holderOf: "request" | "item"): readonly Need[] {
  const pool = "resourceNamespace";
  return [
    { ...ofPool("tokens.allocate", pool), when: { kind: "ownName", field: "holder", of: holderOf } },
    { ...ofPool("tokens.manage", pool), when: { kind: "otherCaller", field: "holder", of: holderOf } },
  ];
}

/** A record whose scope its handler alone knows. */
function oneOf(type: string, permission: CallPermission, unless: CallPermission): Need {
  const as: Missing = { kind: "notFound", type, name: ["name"] };
  return { permission, at: { kind: "anywhere" }, hidden: { unless, as } };
}

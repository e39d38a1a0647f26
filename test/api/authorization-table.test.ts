/**
 * Every RPC × every built-in role × inside and outside the scope × a robot, a user of an issuer, a service account, and
 * a client with a certificate. No handler does anything here: a call that is allowed is answered with REACHED by the
 * first function of the process that it calls.
 */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import {
  create,
  createFileRegistry,
  type DescMethod,
  type DescService,
  fromJson,
  type JsonValue,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Client, type ClientDuplexStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import { readDescriptors } from "../../src/api/reflection/reflection.ts";
import { type CallPermission, PERMISSIONS } from "../../src/core/access/permissions.ts";
import { BUILT_IN_ROLES } from "../../src/core/access/roles.ts";
import { RPC_TABLE } from "../../src/core/access/rpc-table.ts";
import { type BoundScope, INSTALLATION } from "../../src/core/access/scope.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { type KnownCaller, knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { CALLS_OVER_HTTP, type Refusal, readRefusal, startFixture } from "./fixture.ts";

const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...readDescriptors()] }));
const methods = [...registry]
  .filter((one): one is DescService => one.kind === "service")
  .flatMap((service) => service.methods);
const nameOf = (method: DescMethod) => `${method.parent.typeName}/${method.name}`;

test("every RPC of every service has an entry, and every entry is of an RPC", () => {
  assert.ok(methods.length > 50, "methods were found");
  assert.deepEqual(Object.keys(RPC_TABLE).sort(), methods.map(nameOf).sort());
});

test("every permission is asked for by some RPC or handler, and no other", () => {
  const asked = new Set(
    Object.values(RPC_TABLE).flatMap((entry) =>
      entry.kind === "open" ? [] : entry.needs.map((need) => need.permission),
    ),
  );
  // Handlers ask for these: only they know which templates and tokens they show, and how often a job was resumed.
  for (const permission of ["jobs.secrets", "jobs.reinstate", "tokens.get"] as const) asked.add(permission);
  assert.deepEqual([...asked].sort(), Object.keys(PERMISSIONS).sort());
});

/** What a call needs. `sees`: who has this knows that the thing exists; null: everyone does. */
type Expected = {
  readonly request: JsonValue;
  readonly needs: CallPermission;
  readonly at: "anywhere" | BoundScope;
  readonly sees: CallPermission | null;
  readonly missing?: string;
};

const inNlp: BoundScope = { kind: "namespace", name: "nlp" };
const above: BoundScope = { kind: "queue", name: "above" };
const pool: BoundScope = { kind: "pool", name: "ex:team" };
const east: BoundScope = { kind: "cluster", name: "east" };
const job = (needs: CallPermission, more: object = {}): Expected => {
  return {
    request: { namespace: "nlp", name: "x", ...more },
    needs,
    at: inNlp,
    sees: "jobs.get",
    missing: "job nlp/x",
  };
};
const list = (needs: CallPermission): Expected => ({ request: {}, needs, at: "anywhere", sees: null });
const everywhere = (needs: CallPermission, request: JsonValue = {}): Expected => ({
  request,
  needs,
  at: INSTALLATION,
  sees: null,
});
const newJob = { metadata: { namespace: "nlp", name: "x" }, spec: { kind: "PyTorchJob" } };
const submit: Expected = {
  request: { job: newJob },
  needs: "jobs.create",
  at: inNlp,
  sees: "namespaces.get",
  missing: "namespace nlp",
};
const token = { resourceNamespace: "ex:team:adhoc", allocationToken: "t" };
const tokens = (request: JsonValue, needs: CallPermission = "tokens.allocate"): Expected => {
  return { request, needs, at: pool, sees: "pools.get", missing: "pool ex:team:adhoc" };
};
const ofPool = (needs: CallPermission, more: object = {}): Expected =>
  tokens({ name: "ex:team:adhoc", ...more }, needs);
const ofNamespace = (needs: CallPermission, request: JsonValue): Expected => {
  return { request, needs, at: inNlp, sees: "namespaces.get", missing: "namespace nlp" };
};
const ofQueue = (needs: CallPermission, request: JsonValue): Expected => {
  return { request, needs, at: above, sees: "queues.get", missing: "queue below" };
};
const ofCluster = (needs: CallPermission, request: JsonValue = { name: "east" }): Expected => {
  return { request, needs, at: east, sees: "clusters.get", missing: "cluster east" };
};

const runtime = {
  namespace: "nlp",
  name: "x",
  spec: { template: { spec: { replicatedJobs: [{ name: "node" }] } } },
};
const ofRuntime = (needs: CallPermission, request: JsonValue): Expected => {
  return { request, needs, at: inNlp, sees: "runtimes.get", missing: "training runtime nlp/x" };
};

/**
 * By RPC; several if requests need different things. The items of a batch whose items succeed apart are tested by
 * themselves.
 */
const EXPECTED: Readonly<Record<string, Expected | readonly Expected[] | "open" | "apart">> = {
  "JobService/CreateJob": submit,
  "JobService/BatchCreateJobs": "apart",
  "JobService/SimulateJob": submit,
  "JobService/GetJob": job("jobs.get"),
  "JobService/ListJobs": list("jobs.get"),
  "JobService/CountJobs": list("jobs.get"),
  "JobService/WatchJobs": list("jobs.get"),
  "JobService/ExplainJob": job("jobs.get"),
  "JobService/ListJobEvents": job("jobs.get"),
  "JobService/ListJobPods": job("jobs.get"),
  "JobService/StreamJobLogs": job("jobs.logs"),
  "JobService/UpdateJob": { ...job("jobs.update"), request: { job: newJob, updateMask: "spec.priority" } },
  "JobService/CancelJob": job("jobs.cancel"),
  "JobService/DeleteJob": job("jobs.delete"),
  "JobService/ListKinds": list("kinds.get"),
  "NamespaceService/CreateNamespace": {
    request: { namespace: { name: "new", project: "p" } },
    needs: "namespaces.create",
    at: { kind: "project", name: "p" },
    sees: null,
  },
  "NamespaceService/GetNamespace": ofNamespace("namespaces.get", { name: "nlp" }),
  "NamespaceService/ListNamespaces": list("namespaces.get"),
  "NamespaceService/UpdateNamespace": ofNamespace("namespaces.update", { namespace: { name: "nlp", project: "p" } }),
  "NamespaceService/DeleteNamespace": ofNamespace("namespaces.delete", { name: "nlp" }),
  "NamespaceService/SetTenantLimits": {
    request: { limits: { namespace: "nlp", maxPods: 3 } },
    needs: "namespaces.limit",
    at: INSTALLATION,
    sees: null,
  },
  "NamespaceService/ListTenantLimits": list("namespaces.get"),
  "QueueService/CreateQueue": {
    ...ofQueue("queues.create", { queue: { name: "new", parent: "above" } }),
    missing: "queue.parent: queue above does not exist",
  },
  "QueueService/GetQueue": { ...ofQueue("queues.get", { name: "below" }) },
  "QueueService/ListQueues": list("queues.get"),
  "QueueService/UpdateQueue": ofQueue("queues.update", { queue: { name: "below", parent: "above" } }),
  "QueueService/FreezeQueue": ofQueue("queues.update", { name: "below" }),
  "QueueService/UnfreezeQueue": ofQueue("queues.update", { name: "below" }),
  "QueueService/GrantQuota": ofQueue("queues.update", {
    queue: "below",
    flavor: "gpu/h100",
    amount: "1",
    duration: "9s",
  }),
  "QueueService/ListQuotaGrants": list("queues.get"),
  "QueueService/RevokeQuotaGrant": ofQueue("queues.update", { queue: "below", flavor: "gpu/h100" }),
  "QueueService/DeleteQueue": ofQueue("queues.delete", { name: "below" }),
  "QueueService/ListAuditEntries": everywhere("audit.read"),
  "PriorityClassService/CreatePriorityClass": everywhere("priorities.define", {
    priorityClass: { name: "high", value: 9 },
  }),
  "PriorityClassService/GetPriorityClass": { ...list("priorities.get"), request: { name: "high" } },
  "PriorityClassService/ListPriorityClasses": list("priorities.get"),
  "PriorityClassService/UpdatePriorityClass": everywhere("priorities.define", { priorityClass: { name: "high" } }),
  "PriorityClassService/DeletePriorityClass": everywhere("priorities.define", { name: "high" }),
  "RuntimeService/CreateRuntime": [
    everywhere("runtimes.define", { runtime: { ...runtime, namespace: "" } }),
    ofNamespace("runtimes.define", { runtime }),
  ],
  "RuntimeService/GetRuntime": [
    { ...list("runtimes.get"), request: { name: "x" } },
    ofRuntime("runtimes.get", { namespace: "nlp", name: "x" }),
  ],
  "RuntimeService/ListRuntimes": [list("runtimes.get"), ofNamespace("runtimes.get", { namespace: "nlp" })],
  "RuntimeService/UpdateRuntime": [
    everywhere("runtimes.define", { runtime: { ...runtime, namespace: "" } }),
    ofRuntime("runtimes.define", { runtime }),
  ],
  "RuntimeService/DeleteRuntime": [
    everywhere("runtimes.define", { name: "x" }),
    ofRuntime("runtimes.define", { namespace: "nlp", name: "x" }),
  ],
  "ResourceManager/RegisterResourceQuota": tokens({ resourceNamespace: "ex:team:adhoc", quota: "1" }, "pools.update"),
  "ResourceManager/GetPool": ofPool("pools.get"),
  "ResourceManager/ListPools": list("pools.get"),
  "ResourceManager/FreezePool": ofPool("pools.update"),
  "ResourceManager/UnfreezePool": ofPool("pools.update"),
  "ResourceManager/DeletePool": ofPool("pools.delete"),
  "ResourceManager/AllocateResource": tokens(token),
  "ResourceManager/WaitForResource": tokens(token),
  "ResourceManager/BatchAllocateResources": tokens({ lines: [token] }),
  "ResourceManager/ReleaseResource": tokens(token),
  "ResourceManager/BatchReleaseResources": "apart",
  "ResourceManager/RenewAllocations": "apart",
  "ResourceManager/ListAllocations": list("pools.get"),
  "ResourceManager/ForceRelease": tokens({ ...token, reason: "test" }, "tokens.manage"),
  "ResourceManager/ReconcileQuota": tokens({ pool: "ex:team:adhoc" }, "pools.reconcile"),
  "ClusterService/GetCluster": ofCluster("clusters.get"),
  "ClusterService/ListClusters": list("clusters.get"),
  "ClusterService/GetCapacity": [ofCluster("clusters.get"), list("clusters.get")],
  "ClusterService/CheckCluster": ofCluster("clusters.check"),
  "ClusterService/CordonCluster": ofCluster("clusters.drain"),
  "ClusterService/UncordonCluster": ofCluster("clusters.drain"),
  "ClusterService/DeclareClusterLost": ofCluster("clusters.operate", { name: "east", confirm: "east" }),
  "ClusterService/AdoptCluster": ofCluster("clusters.operate"),
  "ClusterService/RegisterCluster": everywhere("clusters.register", {
    cluster: { name: "new" },
    credentials: { text: "kubeconfig" },
  }),
  "ClusterService/UpdateCluster": ofCluster("clusters.update", { cluster: { name: "east" } }),
  "ClusterService/DeleteCluster": ofCluster("clusters.delete"),
  "ClusterService/ListCredentialKeys": everywhere("keys.get"),
  "ClusterService/RotateCredentialKeys": everywhere("keys.rotate"),
  "AccessService/WhoAmI": "open",
  "AccessService/CheckAccess": "open",
  "AccessService/CreateRobotToken": [
    everywhere("robots.create", { name: "new" }),
    { ...everywhere("robots.create", { name: "new", scope: { namespace: "nlp" } }), at: inNlp },
    { ...everywhere("robots.create", { name: "new", scope: { project: "p" } }), at: { kind: "project", name: "p" } },
  ],
  "AccessService/ListRobotTokens": list("robots.get"),
  "AccessService/RevokeRobotToken": {
    ...list("robots.revoke"),
    request: { name: "new" },
    sees: "robots.get",
    missing: "robot new",
  },
  "AccessService/CreateRole": everywhere("access.define", { role: { name: "new", permissions: ["jobs.get"] } }),
  "AccessService/GetRole": { ...list("access.get"), request: { name: "viewer" } },
  "AccessService/ListRoles": list("access.get"),
  "AccessService/DeleteRole": everywhere("access.define", { name: "new" }),
  "AccessService/CreateBinding": {
    request: { binding: { name: "b", subject: "ann", role: "viewer", scope: { namespace: "nlp" } } },
    needs: "access.bind",
    at: inNlp,
    sees: null,
  },
  "AccessService/GetBinding": {
    ...list("access.get"),
    request: { name: "b" },
    sees: "access.get",
    missing: "binding b",
  },
  "AccessService/ListBindings": list("access.get"),
  "AccessService/DeleteBinding": {
    ...list("access.bind"),
    request: { name: "b" },
    sees: "access.get",
    missing: "binding b",
  },
  "Health/Check": "open",
  "Health/List": "open",
  "Health/Watch": "open",
  "ServerReflection/ServerReflectionInfo": list("api.describe"),
};

const directory = {
  namespaces: new Map([
    ["nlp", { project: "p", defaultQueue: "below" }],
    ["other", { project: "q", defaultQueue: "default" }],
  ]),
  parents: new Map([
    ["above", null],
    ["below", "above"],
    ["elsewhere", null],
  ]),
};

/** Scopes that contain the place, and those that do not, of every kind. */
const INSIDE: Readonly<Record<string, readonly BoundScope[]>> = {
  anywhere: [{ kind: "cluster", name: "west" }],
  installation: [INSTALLATION],
  project: [INSTALLATION, { kind: "project", name: "p" }],
  namespace: [INSTALLATION, { kind: "project", name: "p" }, inNlp],
  queue: [INSTALLATION, above],
  pool: [INSTALLATION, { kind: "pool", name: "ex" }, pool],
  cluster: [INSTALLATION, east],
};
const OUTSIDE: readonly BoundScope[] = [
  { kind: "project", name: "q" },
  { kind: "namespace", name: "other" },
  { kind: "queue", name: "elsewhere" },
  { kind: "pool", name: "ex:tea" },
  { kind: "cluster", name: "west" },
];

type TableCaller = KnownCaller & { readonly client: Client };

class Reached extends UnavailableError {
  override readonly reason = "REACHED";
}

/** Everything that handlers can call. Nothing does anything. */
function stage(): never {
  const call = () => {
    throw new Reached("reached");
  };
  return new Proxy({}, { get: (_, member) => (member === "then" ? undefined : call) }) as never;
}

describe("the table in force", () => {
  let served: Served;
  const ends: (() => unknown)[] = [];
  before(async () => {
    served = await serve({ after: (end) => void ends.push(end as () => unknown) });
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  /** A caller with each role, bound inside and outside the scope. */
  async function checkRoles(method: DescMethod, expected: Expected, caller: TableCaller): Promise<void> {
    const kind = expected.at === "anywhere" ? "anywhere" : expected.at.kind;
    for (const { name: role, permissions } of BUILT_IN_ROLES) {
      const may = permissions.includes(expected.needs);
      const sees = expected.sees === null || permissions.includes(expected.sees);
      for (const scope of INSIDE[kind] ?? []) {
        const answer = await served.answerWith(method, expected.request, caller, { role, scope });
        assert.equal(verdictOf(answer), may ? "allowed" : sees ? "denied" : "missing", `${role} at ${scope.kind}`);
        if (!may && sees) assert.equal(answer.metadata["permission"], expected.needs);
      }
      for (const scope of kind === "anywhere" ? [] : OUTSIDE) {
        const answer = await served.answerWith(method, expected.request, caller, { role, scope });
        assert.equal(verdictOf(answer), expected.sees === null ? "denied" : "missing", `${role} at ${scope.name}`);
        if (expected.missing !== undefined) assert.match(answer.message, missingWords(expected.missing));
      }
    }
  }

  /** Over HTTP one is enough: rules are the same for all callers, and each credential has tests of its own there. */
  const callersOf = () => (CALLS_OVER_HTTP ? served.callers.slice(0, 1) : served.callers);

  for (const method of methods) {
    const name = `${method.parent.name}/${method.name}`;
    test(`${name} is allowed and refused as the table says`, async () => {
      const expected = EXPECTED[name];
      assert.ok(expected !== undefined, `${name} has an expectation`);
      for (const caller of callersOf()) {
        if (expected === "open" || expected === "apart") {
          const { code, reason } = await served.answer(method, expected === "open" ? requestOf(name) : {}, caller);
          assert.ok(code === "OK" || code === "INVALID_ARGUMENT" || reason === "REACHED", `${code} ${reason}`);
          continue;
        }
        for (const one of [expected].flat()) {
          await checkRoles(method, one, caller);
          const nobody = await served.answer(method, one.request, caller);
          assert.equal(verdictOf(nobody), one.sees === null ? "denied" : "missing", "without a binding");
        }
      }
    });
  }

  test("refused calls have called nothing, and each was told to the audit log", () => {
    assert.ok(served.denied() > 1_000);
    assert.equal(served.reachedWhileDenied(), 0);
  });
});

function missingWords(missing: string): RegExp {
  return missing.includes("does not exist") ? new RegExp(`^${missing}$`) : new RegExp(`^${missing} does not exist$`);
}

function requestOf(name: string): JsonValue {
  return name === "AccessService/CheckAccess" ? { permission: "jobs.get" } : {};
}

function verdictOf({ code, reason }: Pick<Refusal, "code" | "reason">): string {
  if (code === "OK" || reason === "REACHED") return "allowed";
  if (code === "PERMISSION_DENIED") return reason === "PERMISSION_DENIED" ? "denied" : reason;
  if (code === "NOT_FOUND" || (code === "INVALID_ARGUMENT" && reason === "INVALID_FIELDS")) return "missing";
  return `${code} ${reason}`;
}

type Answer = Pick<Refusal, "code" | "reason" | "message" | "metadata">;

type Served = {
  readonly answer: (method: DescMethod, request: JsonValue, caller: TableCaller) => Promise<Answer>;
  /** With one binding, which is gone afterwards. */
  readonly answerWith: (
    method: DescMethod,
    request: JsonValue,
    caller: TableCaller,
    given: { readonly role: string; readonly scope: BoundScope },
  ) => Promise<Answer>;
  readonly callers: readonly TableCaller[];
  readonly denied: () => number;
  readonly reachedWhileDenied: () => number;
};

async function serve(t: Pick<TestContext, "after">): Promise<Served> {
  const known = await knownCallers(t);
  const access = memoryAccess({ enforces: true });
  access.of.directory = directory;
  await access.followed.refresh();
  let wrong = 0;
  const onInternalError = (_reference: string, cause: unknown) => assert.fail(String(cause));
  const stages = Object.fromEntries(
    [
      "intake",
      "reads",
      "watch",
      "logs",
      "pods",
      "admin",
      "priorityClasses",
      "runtimes",
      "clusters",
      "resources",
      "access",
      "robots",
    ].map((port) => [port, stage()]),
  );
  const simulate = () => Promise.reject(new Reached("reached"));
  const ports = {
    ...(stages as object),
    simulate,
    authenticate: known.authenticate,
    authorization: access.authorization,
    onInternalError,
  };
  const { client } = await startFixture(t, ports);
  const callerWith = async (method: "robot" | "oidc" | "kubernetes", name: string) => {
    return { ...(await known.caller(method, name)), client };
  };
  const callers: TableCaller[] = [
    await callerWith("robot", "ci"),
    await callerWith("oidc", "ann"),
    await callerWith("kubernetes", "builder"),
  ];
  if (hasOpenssl()) callers.push(await withCertificate(t, ports));
  const answer = (method: DescMethod, json: JsonValue, { token: secret, client }: TableCaller): Promise<Answer> => {
    const header = new Metadata();
    if (secret !== "") header.set("authorization", `Bearer ${secret}`);
    const path = `/${nameOf(method)}`;
    const bytes = Buffer.from(toBinary(method.input, fromJson(method.input, json)));
    const asIs = (sent: Buffer) => sent;
    const denials = access.of.denied.length;
    return new Promise((resolve) => {
      const ended = (error: ServiceError | null) => {
        const read = error === null ? { code: "OK", reason: "", message: "", metadata: {} } : readRefusal(error);
        if (access.of.denied.length > denials && read.reason === "REACHED") wrong += 1;
        resolve(read);
      };
      if (method.methodKind === "unary") {
        client.makeUnaryRequest(path, asIs, asIs, bytes, header, (error) => ended(error));
        return;
      }
      const stream =
        method.methodKind === "server_streaming"
          ? client.makeServerStreamRequest(path, asIs, asIs, bytes, header)
          : client.makeBidiStreamRequest(path, asIs, asIs, header);
      if (method.methodKind === "bidi_streaming") (stream as ClientDuplexStream<Buffer, Buffer>).end();
      let isOver = false;
      const over = (error: ServiceError | null) => {
        if (!isOver) ended(error);
        isOver = true;
      };
      stream
        .on("data", () => {
          over(null);
          stream.cancel();
        })
        .on("error", over)
        .on("end", () => over(null));
    });
  };
  return {
    answer,
    answerWith: async (method, json, caller, { role, scope }) => {
      const unbind = await access.bind({ to: { kind: "subject", name: caller.subject }, role, scope });
      const given = await answer(method, json, caller);
      await unbind();
      return given;
    },
    callers,
    denied: () => access.of.denied.length,
    reachedWhileDenied: () => wrong,
  };
}

/** A client with a certificate of an authority that the same service trusts, on a listener of its own. */
async function withCertificate(t: Pick<TestContext, "after">, ports: Parameters<typeof startFixture>[1]) {
  const certificates = new Certificates();
  t.after(() => certificates.remove());
  const { api } = await startFixture(t, ports, CONNECTION_BOUNDS, certificates.serverTls("server", "required"));
  const { certFile, keyFile } = certificates.sign("me", "DNS:me.example");
  const [ca, cert, key] = [certificates.caFile, certFile, keyFile].map((file) => Buffer.from(certificates.read(file)));
  const client = new Client(api.address, credentials.createSsl(ca, key, cert));
  t.after(() => client.close());
  return { subject: "dns:me.example", token: "", client };
}

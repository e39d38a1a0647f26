/** The audit log of a whole service: every RPC of the table leaves the entries that the table says, and no others. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  create,
  createFileRegistry,
  type DescMethod,
  type DescService,
  fromJson,
  type JsonValue,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Client, type ClientDuplexStream, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { openPglite } from "../../src/adapters/store/db/pglite.ts";
import { readDescriptors } from "../../src/api/reflection/reflection.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { RPC_TABLE } from "../../src/core/access/rpc-table.ts";
import { AUDIT_ACTIONS } from "../../src/core/admin/audit.ts";
import { ClusterService } from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { type AuditEntry, QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { addDatabase } from "../support/data-folder.ts";
import { signingKey, TestIssuer } from "../support/issuer.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...readDescriptors()] }));
const methods = [...registry]
  .filter((one): one is DescService => one.kind === "service")
  .flatMap((service) => service.methods);
const nameOf = (method: DescMethod) => `${method.parent.typeName}/${method.name}`;

const SECRET = "hunter2-of-the-team";
const kubeconfig = JSON.stringify({
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
  users: [{ name: "u", user: { token: SECRET } }],
  contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
  "current-context": "x",
});
const container = { name: "main", image: "busybox", command: ["true"], env: [{ name: "PASSWORD", value: SECRET }] };
const job = (name: string) => ({
  metadata: { namespace: "nlp", name },
  spec: {
    kind: "Job",
    runPolicy: { suspend: true },
    replicaSpecs: { Worker: { replicas: 1, template: { spec: { containers: [container] } } } },
  },
});
const runtime = (name: string, labels = {}) => {
  const replicatedJobs = [{ name: "node", template: { spec: { template: { spec: { containers: [container] } } } } }];
  return { namespace: "nlp", name, labels, spec: { template: { spec: { replicatedJobs } } } };
};
const token = { resourceNamespace: "ex:team", allocationToken: "t" };
const held = { ...token, allocationToken: "held", holder: "login:someone" };
const OWN_QUOTA = { flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: "1" };

/** Calls in their order, each of which succeeds, with the subjects of the entries that it leaves. */
const CALLS: readonly (readonly [rpc: string, request: JsonValue, ...subjects: readonly string[]])[] = [
  ["NamespaceService/CreateNamespace", { namespace: { name: "nlp" } }, "nlp"],
  ["NamespaceService/GetNamespace", { name: "nlp" }],
  ["NamespaceService/ListNamespaces", {}],
  ["NamespaceService/UpdateNamespace", { namespace: { name: "nlp", project: "p" } }, "nlp"],
  ["NamespaceService/SetTenantLimits", { limits: { namespace: "nlp", maxPods: 1000 } }, "namespace nlp"],
  ["NamespaceService/ListTenantLimits", {}],
  ["QueueService/CreateQueue", { queue: { name: "own" } }, "own"],
  ["QueueService/GetQueue", { name: "own" }],
  ["QueueService/ListQueues", {}],
  ["QueueService/UpdateQueue", { queue: { name: "own", maxRunningJobs: 3, quotas: [OWN_QUOTA] } }, "own"],
  ["QueueService/FreezeQueue", { name: "own", reason: "a trial" }, "own"],
  ["QueueService/FreezeQueue", { name: "own" }],
  ["QueueService/UnfreezeQueue", { name: "own" }, "own"],
  ["QueueService/GrantQuota", { queue: "own", flavor: "gpu/h100", amount: "1", duration: "3600s" }, "own"],
  ["QueueService/ListQuotaGrants", {}],
  ["QueueService/RevokeQuotaGrant", { queue: "own", flavor: "gpu/h100" }, "own"],
  ["QueueService/DeleteQueue", { name: "own" }, "own"],
  ["PriorityClassService/CreatePriorityClass", { priorityClass: { name: "high", value: 9 } }, "high"],
  ["PriorityClassService/GetPriorityClass", { name: "high" }],
  ["PriorityClassService/ListPriorityClasses", {}],
  ["PriorityClassService/UpdatePriorityClass", { priorityClass: { name: "high", value: 9, description: "!" } }, "high"],
  ["PriorityClassService/DeletePriorityClass", { name: "high" }, "high"],
  ["RuntimeService/CreateRuntime", { runtime: runtime("torch"), validateOnly: true }],
  ["RuntimeService/CreateRuntime", { runtime: runtime("torch") }, "nlp/torch"],
  ["RuntimeService/GetRuntime", { namespace: "nlp", name: "torch" }],
  ["RuntimeService/ListRuntimes", { allNamespaces: true }],
  ["RuntimeService/UpdateRuntime", { runtime: runtime("torch", { team: "nlp" }) }, "nlp/torch"],
  ["RuntimeService/UpdateRuntime", { runtime: runtime("torch", { team: "nlp" }) }],
  ["RuntimeService/DeleteRuntime", { namespace: "nlp", name: "torch" }, "nlp/torch"],
  ["RuntimeService/CreateRuntime", { runtime: { ...runtime("torch"), namespace: "" } }, "torch"],
  ["RuntimeService/DeleteRuntime", { name: "torch" }, "torch"],
  ["JobService/SimulateJob", { job: job("a") }],
  ["JobService/CreateJob", { job: job("a"), validateOnly: true }],
  ["JobService/CreateJob", { job: job("a") }, "nlp/a"],
  // The same job again changes nothing.
  ["JobService/CreateJob", { job: job("a") }],
  [
    "JobService/BatchCreateJobs",
    { requests: [{ job: job("b") }, { job: job("a") }, { job: job("c") }] },
    "nlp/b",
    "nlp/c",
  ],
  ["JobService/GetJob", { namespace: "nlp", name: "a" }],
  ["JobService/ListJobs", {}],
  ["JobService/CountJobs", {}],
  ["JobService/WatchJobs", {}],
  ["JobService/ExplainJob", { namespace: "nlp", name: "a" }],
  ["JobService/ListJobEvents", { namespace: "nlp", name: "a" }],
  ["JobService/ListJobPods", { namespace: "nlp", name: "a" }],
  ["JobService/StreamJobLogs", { namespace: "nlp", name: "a" }],
  [
    "JobService/UpdateJob",
    { job: { metadata: { namespace: "nlp", name: "a" }, spec: { priority: 3 } }, updateMask: "spec.priority" },
    "nlp/a",
  ],
  ["JobService/CancelJob", { namespace: "nlp", name: "a", reason: "a trial" }, "nlp/a"],
  ["JobService/CancelJob", { namespace: "nlp", name: "a" }],
  ["JobService/DeleteJob", { namespace: "nlp", name: "a" }, "nlp/a"],
  ["JobService/ListKinds", {}],
  ["ResourceManager/RegisterResourceQuota", { resourceNamespace: "ex:team", quota: "9" }, "ex:team"],
  ["ResourceManager/FreezePool", { name: "ex:team" }, "ex:team"],
  ["ResourceManager/UnfreezePool", { name: "ex:team" }, "ex:team"],
  ["ResourceManager/GetPool", { name: "ex:team" }],
  ["ResourceManager/ListPools", {}],
  ["ResourceManager/AllocateResource", token],
  ["ResourceManager/WaitForResource", { ...token, allocationToken: "waited" }],
  ["ResourceManager/BatchAllocateResources", { lines: [{ ...token, allocationToken: "batch" }] }],
  ["ResourceManager/RenewAllocations", { lines: [token] }],
  ["ResourceManager/ListAllocations", {}],
  ["ResourceManager/ReleaseResource", token],
  ["ResourceManager/BatchReleaseResources", { lines: [{ ...token, allocationToken: "batch" }] }],
  ["ResourceManager/AllocateResource", held],
  ["ResourceManager/ForceRelease", { ...token, allocationToken: "held", reason: "it was lost" }, "ex:team/held"],
  ["ResourceManager/ForceRelease", { ...token, allocationToken: "waited", reason: "it was lost" }, "ex:team/waited"],
  ["ResourceManager/ReconcileQuota", { pool: "ex:team", dryRun: true }],
  ["ResourceManager/ReconcileQuota", { pool: "ex:team" }, "ex:team"],
  ["ResourceManager/DeletePool", { name: "ex:team" }, "ex:team"],
  ["ClusterService/AdoptCluster", { name: "held", dryRun: false }, "held"],
  ["ClusterService/AdoptCluster", { name: "held" }],
  ["ClusterService/RegisterCluster", { cluster: { name: "real" }, credentials: { text: kubeconfig } }, "real"],
  ["ClusterService/UpdateCluster", { cluster: { name: "real" }, credentials: { text: kubeconfig } }, "real"],
  ["ClusterService/GetCluster", { name: "real" }],
  ["ClusterService/ListClusters", {}],
  ["ClusterService/GetCapacity", { name: "real" }],
  ["ClusterService/CheckCluster", { name: "real" }],
  ["ClusterService/CordonCluster", { name: "real" }, "real"],
  ["ClusterService/CordonCluster", { name: "real" }],
  ["ClusterService/UncordonCluster", { name: "real" }, "real"],
  ["ClusterService/DeclareClusterLost", { name: "real", confirm: "real" }, "real"],
  ["ClusterService/DeclareClusterLost", { name: "real", confirm: "real" }],
  ["ClusterService/ListCredentialKeys", {}, ""],
  ["ClusterService/RotateCredentialKeys", {}, "real"],
  ["ClusterService/RotateCredentialKeys", { to: "next" }],
  ["ClusterService/DeleteCluster", { name: "real" }, "real"],
  ["AccessService/WhoAmI", {}],
  ["AccessService/CheckAccess", { permission: "jobs.get" }],
  ["AccessService/CreateRobotToken", { name: "ci" }, "ci"],
  ["AccessService/ListRobotTokens", {}, ""],
  ["AccessService/RevokeRobotToken", { name: "ci" }, "ci"],
  ["AccessService/RevokeRobotToken", { name: "ci" }],
  ["AccessService/CreateRole", { role: { name: "reader", permissions: ["jobs.get"] } }, "reader"],
  ["AccessService/GetRole", { name: "reader" }],
  ["AccessService/ListRoles", {}],
  ["AccessService/CreateBinding", { binding: { name: "b", group: "login:g", role: "reader" } }, "b"],
  ["AccessService/GetBinding", { name: "b" }],
  ["AccessService/ListBindings", {}],
  ["AccessService/DeleteBinding", { name: "b" }, "b"],
  ["AccessService/DeleteRole", { name: "reader" }, "reader"],
  ["QueueService/ListAuditEntries", {}],
  ["NamespaceService/DeleteNamespace", { name: "empty" }, "empty"],
  ["Health/Check", {}],
  ["Health/List", {}],
  ["Health/Watch", {}],
  ["ServerReflection/ServerReflectionInfo", {}],
];

/** A database that was restored, with a cluster that nobody has adopted yet. */
async function holdCluster(folder: string): Promise<void> {
  const db = await openPglite(folder);
  const columns = "name, labels, flavors, simulated, create_ms, unadopted_ms";
  await db.query(`insert into clusters (${columns}) values ('held', '{}', '[]', false, 1, 1)`);
  await db.close();
}

/** A service with authentication, its first admin, and a caller without a role. */
async function serve(t: TestContext) {
  const issuer = await TestIssuer.start(await signingKey("one", "ES256"));
  t.after(() => issuer.close());
  const folder = mkdtempSync(join(tmpdir(), "gangway-audit-"));
  addDatabase(join(folder, "data"));
  await holdCluster(join(folder, "data", "db"));
  const authentication = join(folder, "authentication.yaml");
  const settings = { issuer: issuer.url, audiences: ["gangway"], subjectPrefix: "login:" };
  writeFileSync(authentication, JSON.stringify({ issuers: [settings], robots: true }));
  const access = join(folder, "access.yaml");
  writeFileSync(access, 'bindings: [{name: root, subject: "login:root", role: admin}]');
  const keys = join(folder, "keys.yaml");
  const encryptWith = (current: string) => {
    const key = (name: string, byte: number) => ({ name, key: Buffer.alloc(32, byte).toString("base64") });
    writeFileSync(keys, JSON.stringify({ current, keys: [key("first", 7), key("next", 8)] }));
  };
  encryptWith("first");
  const config = readConfig(folder, {
    GANGWAY_AUTHENTICATION_FILE: authentication,
    GANGWAY_ACCESS_FILE: access,
    GANGWAY_CLUSTER_HOSTS: "127.0.0.0/8",
    GANGWAY_CREDENTIALS_KEYS_FILE: keys,
  });
  const options = { listen: "127.0.0.1:0", insecure: false, data: join(folder, "data"), simulate: false };
  const service = await startEmbedded({ ...options, examples: false } as never, config, OWN_KINDS);
  t.after(async () => {
    await service.close();
    rmSync(folder, { recursive: true });
  });
  const bearer = async (sub: string) => issuer.sign({ sub });
  const log = () => readFileSync(join(folder, "data", "gangway.log"), "utf8");
  return { address: service.address, bearer, log, encryptWith, sign: issuer.sign.bind(issuer) };
}

type Answer = { readonly code: number; readonly message: string; readonly requestId: string };

/** Makes one call, and ends a stream after its first message. */
function caller(t: TestContext, address: string, secret: string) {
  const client = new Client(address, credentials.createInsecure());
  t.after(() => client.close());
  const asIs = (sent: Buffer) => sent;
  return (method: DescMethod, json: JsonValue, headers: Readonly<Record<string, string>> = {}): Promise<Answer> => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries({ authorization: `Bearer ${secret}`, ...headers })) {
      metadata.set(name, value);
    }
    const path = `/${nameOf(method)}`;
    const bytes = Buffer.from(toBinary(method.input, fromJson(method.input, json)));
    return new Promise((resolve) => {
      let requestId = "";
      const end = (error: ServiceError | null) =>
        resolve({ code: error?.code ?? 0, message: error?.message ?? "", requestId });
      if (method.methodKind === "unary") {
        client
          .makeUnaryRequest(path, asIs, asIs, bytes, metadata, end)
          .on("metadata", (received) => (requestId = String(received.get("x-request-id")[0] ?? "")));
        return;
      }
      const stream =
        method.methodKind === "server_streaming"
          ? client.makeServerStreamRequest(path, asIs, asIs, bytes, metadata)
          : client.makeBidiStreamRequest(path, asIs, asIs, metadata);
      if (method.methodKind === "bidi_streaming") (stream as ClientDuplexStream<Buffer, Buffer>).end();
      stream
        .on("data", () => {
          end(null);
          stream.cancel();
        })
        .on("error", (error) => end(error as ServiceError))
        .on("end", () => end(null));
    });
  };
}

const methodOf = (short: string) => {
  const found = methods.find((method) => `${method.parent.name}/${method.name}` === short);
  assert.ok(found !== undefined, short);
  return found;
};
const actionOf = (rpc: string) => (rpc.endsWith("BatchCreateJobs") ? "CreateJob" : rpc.replace(/.*\//, ""));

test("the audited RPCs of the table are the actions of the audit log, and every RPC is called here", () => {
  const audited = Object.entries(RPC_TABLE).filter(([, entry]) => entry.kind === "guarded" && entry.audited);
  const actions = new Set([
    ...audited.map(([rpc]) => actionOf(rpc)),
    "EndQuotaGrant",
    "LoseCluster",
    "PermissionDenied",
    "ReadSettings",
  ]);
  assert.deepEqual([...actions].sort(), [...AUDIT_ACTIONS].sort());
  for (const [rpc, entry] of Object.entries(RPC_TABLE)) {
    const called = CALLS.filter(([short]) => rpc.endsWith(`.${short}`));
    assert.ok(called.length > 0, `${rpc} is called`);
    const leaves = called.some(([, , ...subjects]) => subjects.length > 0);
    assert.equal(leaves, entry.kind === "guarded" && entry.audited, rpc);
  }
});

test("each call leaves the entries of its changes, refused calls leave one, and no secret is in them", async (t) => {
  const { address, bearer, log, encryptWith } = await serve(t);
  const call = caller(t, address, await bearer("root"));
  const stop = new AbortController();
  const secret = await bearer("root");
  const client = connect(address, stop.signal, { tls: null, token: async () => secret });
  t.after(() => client.close());
  const listAll = async (filter: object = {}, pageSize = 1_000): Promise<readonly AuditEntry[]> => {
    const entries: AuditEntry[] = [];
    for (let pageToken = ""; ; ) {
      const page = await client.call(QueueService.method.listAuditEntries, { filter, pageToken, pageSize });
      entries.push(...page.entries);
      pageToken = page.nextPageToken;
      if (pageToken === "") return entries;
    }
  };
  await call(methodOf("NamespaceService/CreateNamespace"), { namespace: { name: "empty" } });
  let known = await listAll();
  for (const [at, [short, request, ...subjects]] of CALLS.entries()) {
    const method = methodOf(short);
    if (short === "ClusterService/ListCredentialKeys") {
      encryptWith("next");
      const current = async () => {
        const { keys } = await client.call(ClusterService.method.listCredentialKeys, {});
        return keys.find((key) => key.current)?.name;
      };
      await waitUntil("the file of keys is read again", async () => (await current()) === "next");
      known = await listAll();
    }
    const sentId = at % 2 === 0 ? { "x-request-id": `call-${at}` } : undefined;
    const { code, message, requestId } = await call(method, request, sentId);
    const mayFail = short === "JobService/StreamJobLogs";
    if (!mayFail) assert.equal(code, 0, `${short}: ${message}`);
    const entries = await listAll();
    const added = entries.slice(0, entries.length - known.length).toReversed();
    known = entries;
    const told = added.map((entry) => [
      entry.action,
      entry.subject,
      entry.rpc,
      entry.actor,
      entry.method,
      entry.outcome,
    ]);
    const expected = subjects.map((one) => [actionOf(short), one, nameOf(method), "login:root", "oidc", "OK"]);
    assert.deepEqual(told, expected, short);
    for (const entry of added) {
      assert.equal(entry.requestId, requestId);
      assert.match(entry.requestId, sentId === undefined ? /^[0-9a-f-]{36}$/ : new RegExp(`^call-${at}$`));
      assert.match(entry.peer, /^127\.0\.0\.1:\d+$/);
    }
  }
  const [cancelled] = await listAll({ action: "CancelJob" });
  assert.equal(cancelled?.reason, "a trial");
  const updated = await listAll({ action: "UpdateJob", subject: "nlp/a", actor: "login:root" });
  const [{ before, after }] = updated.map(
    ({ details }) => details as unknown as Record<string, { priority: number }>,
  ) as [Record<string, { priority: number }>];
  assert.deepEqual([before?.priority, after?.priority], [0, 3]);

  const nobody = caller(t, address, await bearer("nobody"));
  const asked = new Map(CALLS.map(([short, request]) => [short, request]));
  const refused = [...asked].filter(([short]) => RPC_TABLE[nameOf(methodOf(short))]?.kind === "guarded");
  for (const [short, request] of refused) {
    const { code } = await nobody(methodOf(short), request);
    const entries = async () => (await listAll({ rpc: nameOf(methodOf(short)), action: "PermissionDenied" })).length;
    await waitUntil(`${short} is in the log (${code})`, async () => (await entries()) > 0);
    assert.equal(await entries(), 1, short);
  }
  const denied = await listAll({ actor: "login:nobody" });
  assert.ok(denied.every((entry) => entry.action === "PermissionDenied" && entry.outcome !== "OK"));
  assert.equal(denied.length, refused.length);

  const called = AUDIT_ACTIONS.filter((action) => action !== "EndQuotaGrant" && action !== "LoseCluster");
  for (const action of called) assert.ok((await listAll({ action })).length > 0, action);
  const all = await listAll();
  assert.equal(all.length, known.length + denied.length);
  assert.deepEqual(await listAll({}, 7), all);
  const middle = all[Math.floor(all.length / 2)];
  assert.ok(middle?.time !== undefined);
  const atMs = timestampMs(middle.time);
  const older = await listAll({ until: timestampFromMs(atMs) });
  const newer = await listAll({ since: timestampFromMs(atMs) });
  assert.equal(older.length + newer.length, all.length);
  assert.ok(older.length > 0 && newer.length > 0);
  const lines = () =>
    log()
      .split("\n")
      .filter((line) => line.includes('"msg":"audited"'));
  await waitUntil("the log has every entry", () => lines().length >= all.length);
  const logged = lines().map((line) => JSON.parse(line).audit as { action: string; requestId: string });
  const sorted = (entries: readonly { action: string; requestId: string }[]) =>
    entries.map(({ action, requestId }) => `${action} ${requestId}`).sort();
  assert.deepEqual(sorted(logged), sorted(all));
  const text = JSON.stringify(all, (_, value) => (typeof value === "bigint" ? String(value) : value));
  for (const place of [text, log()])
    assert.ok(!place.includes(SECRET) && !place.includes("gwt_") && !place.includes(secret));
});

test("a credential that does not count is UNAUTHENTICATED, leaves no entry, and no log line shows it", async (t) => {
  const { address, bearer, sign, log } = await serve(t);
  const foreign = await signingKey("one", "ES256");
  const good = await bearer("root");
  const [header = "", payload = "", signature = ""] = good.split(".");
  const none = Buffer.from(JSON.stringify({ alg: "none", kid: "one" })).toString("base64url");
  const now = Math.floor(Date.now() / 1000);
  const bad: Readonly<Record<string, string>> = {
    "another issuer": await sign({ iss: "https://evil.example" }),
    "another audience": await sign({ aud: "elsewhere" }),
    "a foreign key": await sign({ sub: "root" }, { key: foreign }),
    "another algorithm": await sign({ sub: "root" }, { key: await signingKey("one", "PS256") }),
    "expired long ago": await sign({ exp: now - 600 }),
    "not valid yet": await sign({ nbf: now + 600 }),
    "no algorithm": `${none}.${payload}.`,
    "no algorithm and a signature": `${none}.${payload}.${signature}`,
    "a token in a token": `${header}.${Buffer.from(good).toString("base64url")}.${signature}`,
    "more than a header may have": `${header}.${payload}.${"A".repeat(20_000)}`,
    "a robot that nobody made": `gwt_${"s3cret".repeat(7)}x`,
  };
  for (const [name, token] of Object.entries(bad)) {
    for (const short of ["JobService/ListJobs", "AccessService/CreateRole", "Health/Check"]) {
      const { code, message } = await caller(t, address, token)(methodOf(short), {});
      assert.equal(code, status.UNAUTHENTICATED, `${name}: ${message}`);
      for (const part of token.split(".")) assert.ok(part.length < 16 || !message.includes(part), name);
    }
  }
  const secret = await bearer("root");
  const client = connect(address, new AbortController().signal, { tls: null, token: async () => secret });
  t.after(() => client.close());
  const { entries } = await client.call(QueueService.method.listAuditEntries, {});
  assert.deepEqual(
    entries.filter(({ method }) => method !== ""),
    [],
  );
  const text = log();
  for (const token of [...Object.values(bad), good, secret]) {
    for (const part of token.split(".").filter((one) => one.length >= 16 && one !== header)) {
      assert.ok(!text.includes(part), "the log shows a token");
    }
  }
});

test("jobs that share a transaction have the entries of their own calls", async (t) => {
  const { address, bearer } = await serve(t);
  const root = caller(t, address, await bearer("root"));
  const bind = { binding: { name: "ann", subject: "login:ann", role: "admin" } };
  assert.equal((await root(methodOf("AccessService/CreateBinding"), bind)).code, 0);
  const ann = caller(t, address, await bearer("ann"));
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  await root(methodOf("NamespaceService/CreateNamespace"), { namespace: { name: "nlp" } });
  const answers = await Promise.all(
    names.map((name, at) => {
      const call = at % 2 === 0 ? root : ann;
      return call(methodOf("JobService/CreateJob"), { job: job(name) }, { "x-request-id": `call-${name}` });
    }),
  );
  assert.ok(answers.every(({ code }) => code === 0));
  const secret = await bearer("root");
  const client = connect(address, new AbortController().signal, { tls: null, token: async () => secret });
  t.after(() => client.close());
  const { entries } = await client.call(QueueService.method.listAuditEntries, { filter: { action: "CreateJob" } });
  const told = entries.map(({ subject, actor, requestId, rpc, method }) => [subject, actor, requestId, rpc, method]);
  const rpc = "gangway.v1.JobService/CreateJob";
  const expected = names.map((name, at) => {
    return [`nlp/${name}`, at % 2 === 0 ? "login:root" : "login:ann", `call-${name}`, rpc, "oidc"];
  });
  assert.deepEqual(told.sort(), expected);
});

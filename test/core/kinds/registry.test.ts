import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { schemaErrors } from "../../../src/core/kinds/check-schema.ts";
import { checkSent } from "../../../src/core/kinds/check-sent.ts";
import { fromManifest } from "../../../src/core/kinds/manifest/from-manifest.ts";
import { logLink, type PluginEntry, podKind, serviceKind } from "../../../src/core/kinds/plugin.ts";
import { createRegistry, KINDS, OWN_ENTRY, servedName } from "../../../src/core/kinds/registry.ts";
import { schemaFault } from "../../../src/core/kinds/schema-words.ts";
import { reconcile, reconcileGuarded } from "../../../src/core/reconcile/reconcile.ts";
import type { Json, JsonObject } from "../../../src/runtime/json.ts";
import { kindsWith } from "../../support/kinds.ts";
import { plan } from "../../support/plan.ts";
import { planGang, queue, snapshot } from "../plan/plan-world.ts";
import { admit, CONFIG, jobOf, recorded, START_MS, TinyCluster, template } from "../reconcile/world.ts";
import { etlEntry } from "./plugin-world.ts";

const entry = (id: string, names: readonly string[], more: Partial<PluginEntry> = {}): PluginEntry => ({
  id,
  kinds: names.map((name) => podKind({ name, description: "a test's" })),
  ...more,
});

const refused: Record<string, { readonly entries: readonly unknown[]; readonly says: RegExp }> = {
  "two plugins with the same id": {
    entries: [entry("a", ["A"]), entry("a", ["B"])],
    says: /two plugins have the id a/,
  },
  "a kind that two plugins serve": {
    entries: [entry("a", ["A"]), entry("b", ["A"])],
    says: /kind A is registered twice/,
  },
  "a kind of Gangway": { entries: [entry("a", ["PyTorchJob"])], says: /kind PyTorchJob is registered twice/ },
  "two defaults": {
    entries: [entry("a", ["A"], { isDefault: true }), entry("b", ["B"], { isDefault: true })],
    says: /only one plugin can be the default, but these are: a, b/,
  },
  "a plugin that is not an object": { entries: ["a"], says: /a plugin must be an object/ },
  "a plugin without an id": { entries: [{ kinds: [] }], says: /a plugin's id must be/ },
  "a plugin without kinds": {
    entries: [{ id: "a", kinds: [] }],
    says: /plugin a: kinds must be a list of at least one kind/,
  },
  "a kind that lacks a function": {
    entries: [{ id: "a", kinds: [{ ...podKind({ name: "A", description: "" }), verdict: 1 }] }],
    says: /plugin a: A.verdict must be a function/,
  },
  "a kind that two plugins serve in different case": {
    entries: [entry("a", ["AJob"]), entry("b", ["aJob"])],
    says: /kind aJob is registered twice: by plugin a as AJob and by plugin b/,
  },
  "a plugin with an unknown member": {
    entries: [{ ...entry("a", ["A"]), loader: () => 1 }],
    says: /plugin a: loader is not a member of a plugin; members are: id, kinds, isDefault, load/,
  },
  "a kind without pods and without a plugin": {
    entries: [{ id: "a", kinds: [serviceKind({ name: "A", description: "" })] }],
    says: /plugin a: load is required, because A runs a service/,
  },
};
for (const [name, { entries, says }] of Object.entries(refused)) {
  test(`refused: ${name}`, () => assert.throws(() => createRegistry([OWN_ENTRY, ...(entries as PluginEntry[])]), says));
}

const odd: Record<string, { readonly members: object; readonly says: RegExp }> = {
  "no name": { members: { name: undefined }, says: /plugin a: a kind's name must be a letter/ },
  "a misspelt member": {
    members: { verdit: () => null },
    says: /A\.verdit is not a member of a kind; members are: .*verdict/,
  },
  "an API version without a group": { members: { apiVersion: "v1" }, says: /A\.apiVersion must be text such as acme/ },
  "an operator name that is not a label's value": {
    members: { operatorName: "My operator" },
    says: /A\.operatorName must be a label/,
  },
  "replica types that are texts": { members: { roles: ["W"] }, says: /A\.roles\[0\] must be an object with name, min/ },
  "a replica type whose name cannot be part of a pod's name": {
    members: { roles: [{ name: "My worker", min: 0, max: null }] },
    says: /A\.roles\[0\]\.name must be a letter/,
  },
  "a replica type with min above max": {
    members: { roles: [{ name: "W", min: 2, max: 1 }] },
    says: /A\.roles\[0\]\.max must be null, or a whole number of at least 1 and at least min/,
  },
  "a replica type twice": {
    members: { roles: ["W", "w"].map((name) => ({ name, min: 0, max: null })) },
    says: /A\.roles must not name w twice/,
  },
  "no replica types at all": { members: { roles: [] }, says: /A\.roles must name at least one role/ },
  "a roleName that changes a name of roles": {
    members: { roles: [{ name: "W", min: 0, max: null }], roleName: () => "w" },
    says: /A\.roleName must return W unchanged, as roles spells it/,
  },
  "a default container with an invalid name": {
    members: { defaultContainer: 7 },
    says: /A\.defaultContainer must be null or a container/,
  },
  "a required container without a name": {
    members: { containerRequired: true },
    says: /A\.containerRequired needs a defaultContainer/,
  },
  "a port whose name no API server takes": {
    members: { defaultPort: { name: "a--b", number: 80 } },
    says: /A\.defaultPort\.name must be up to 15 lower-case letters, digits and dashes, and no dash beside another/,
  },
  "a port without a name": { members: { defaultPort: 80 }, says: /A\.defaultPort must be null or \{ name, number \}/ },
  "a port number above 65535": {
    members: { defaultPort: { name: "http", number: 99_999 } },
    says: /A\.defaultPort\.number must be a whole number of 1 to 65535/,
  },
  "empty defaults": { members: { defaults: {} }, says: /A\.defaults\.restartPolicy must be one of Always/ },
  "an example that is not JSON": {
    members: { example: { n: 1n } },
    says: /A\.example must be a manifest: an object of JSON/,
  },
  "members with types in the place of schemas": {
    members: { kindSpec: { size: "integer" } },
    says: /A\.kindSpecSchema\.properties\.size must be an object, the JSON Schema/,
  },
  "an unknown type": {
    members: { kindSpec: { size: { type: "int" } } },
    says: /properties\.size\.type must be one or several of array, object, integer/,
  },
  "an unsupported keyword": {
    members: { kindSpec: { size: { type: "string", maxLength: 3 } } },
    says: /properties\.size has the keyword maxLength, which is not supported; supported are type, enum/,
  },
  "an invalid pattern": {
    members: { kindSpec: { size: { type: "array", items: { type: "string", pattern: "(" } } } },
    says: /properties\.size\.items\.pattern must be a regular expression/,
  },
  "a required member that is not a property": {
    members: { kindSpec: { size: { type: "string" } }, required: ["sise"] },
    says: /A\.kindSpecSchema\.required names sise, which is not one of its properties/,
  },
};
for (const [name, { members, says }] of Object.entries(odd)) {
  test(`refused: a kind with ${name}`, () => {
    const kind = podKind({ name: "A", description: "", ...members });
    assert.throws(() => createRegistry([{ id: "a", kinds: [kind] }]), says);
  });
}

test("a kind that names its replica types takes them in any case, and its example can be submitted", () => {
  const roles = [
    { name: "Scheduler", min: 1, max: 1 },
    { name: "Worker", min: 2, max: null },
  ];
  const dask = podKind({ name: "DaskJob", description: "", defaultContainer: "dask", containerRequired: true, roles });
  const kinds = kindsWith({ id: "dask", kinds: [dask] });
  const read = fromManifest(dask.example, kinds);
  assert.ok(read.kind === "read");
  assert.deepEqual(checkSent(dask, read.manifest.spec), []);
  const one = { template: template("dask") };
  const sent = { kind: "DaskJob", replicaSpecs: { scheduler: one, WORKER: { ...one, replicas: 2 } } };
  assert.deepEqual(checkSent(dask, sent), []);
  assert.deepEqual(Object.keys(jobOf(sent, {}, kinds).spec.replicaSpecs).sort(), ["Scheduler", "Worker"]);
});

test("required members of a kind spec are also required if a job has no kind spec", () => {
  const kind = serviceKind({
    name: "A",
    description: "",
    kindSpec: { query: { type: "string" } },
    required: ["query"],
  });
  const missed = [{ path: "spec.kindSpec.query", message: "is required" }];
  for (const kindSpec of [undefined, {}, { query: null }]) {
    const sent = { kind: "A", replicaSpecs: {}, ...(kindSpec === undefined ? {} : { kindSpec }) };
    assert.deepEqual(checkSent(kind, sent), missed);
  }
});

test("numbers that are not integers have no implicit bounds, and errors name the minimum length", () => {
  assert.deepEqual(schemaErrors({ type: "number" }, 1e12, "k"), []);
  assert.equal(schemaErrors({ type: "integer" }, 1e12, "k").length, 1);
  const [short] = schemaErrors({ type: "string", minLength: 3 }, "ab", "k");
  assert.equal(short?.message, 'must have at least 3 characters, not "ab"');
});

test("an accepted schema can check any value without an exception", () => {
  const mostly = <T>(good: fc.Arbitrary<T>, bad: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 9, arbitrary: good as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: bad });
  const pattern = mostly(fc.constantFrom("^a", "[a-c]", "\\p{L}+", "x{2}"), fc.constantFrom("(", "[a-", "{", "\\p"));
  const inner = fc.record({ type: fc.constantFrom("string", "integer"), pattern }, { requiredKeys: [] });
  const schemas = fc.record(
    {
      type: mostly(fc.constantFrom("string", "integer", "array", "object", "number"), fc.constantFrom("int", 1, [])),
      pattern,
      enum: mostly(fc.array(fc.string(), { minLength: 1 }), fc.string()),
      minLength: mostly(fc.nat(), fc.double()),
      minimum: mostly(fc.integer(), fc.string()),
      required: mostly(fc.constant(["a"]), fc.constantFrom("a", [1])),
      properties: mostly(fc.record({ a: inner, b: inner }), fc.constantFrom("a", { a: "string" })),
      items: mostly(inner, fc.boolean()),
      additionalProperties: mostly(fc.boolean(), fc.object()),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(schemas, fc.jsonValue(), (schema, value) => {
      fc.pre(schemaFault(schema, "s") === null);
      assert.ok(Array.isArray(schemaErrors(schema as JsonObject, value as Json, "k")));
    }),
  );
});

const answers: Record<string, { readonly members: object; readonly says: RegExp }> = {
  "no cluster spec": { members: { clusterSpec: () => undefined }, says: /clusterSpec must return an object with env/ },
  "a promise of a cluster spec": {
    members: { clusterSpec: async () => ({ env: {}, initContainers: [] }) },
    says: /clusterSpec must return an object with env and initContainers, not a promise/,
  },
  "a variable whose value is not text": {
    members: { clusterSpec: () => ({ env: { main: [{ name: "N", value: 5 }] }, initContainers: [] }) },
    says: /clusterSpec's env\.main has N, whose value must be text/,
  },
  "env that is a list instead of lists by container": {
    members: { clusterSpec: () => ({ env: [{ name: "N", value: "5" }], initContainers: [] }) },
    says: /clusterSpec must return env as lists by container/,
  },
  "a cluster spec without init containers": {
    members: { clusterSpec: () => ({ env: {} }) },
    says: /clusterSpec's initContainers must be a list of objects/,
  },
  "an object of a kind that is not allowed": {
    members: { objects: () => [{ apiVersion: "v1", kind: "Secret", metadata: { name: "s" } }] },
    says: /objects returned a Secret at 0; it may return ConfigMap, ServiceAccount, Role, RoleBinding/,
  },
  "an object without a name": {
    members: { objects: () => [{ apiVersion: "v1", kind: "ConfigMap", data: {} }] },
    says: /objects returned a ConfigMap without metadata\.name at 0/,
  },
  "a cluster spec that no pod has room for": {
    members: {
      clusterSpec: () => ({ env: { main: [{ name: "N", value: "x".repeat(3 * 1024 * 1024) }] }, initContainers: [] }),
    },
    says: /clusterSpec returned more than 3145728 bytes of JSON, which is not allowed/,
  },
  "objects that are too large together": {
    members: {
      objects: () =>
        Array.from({ length: 20 }, (_, at) => ({
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: `m-${at}` },
          data: { text: "x".repeat(1_000_000) },
        })),
    },
    says: /objects returned more than 16777216 bytes of JSON, which is not allowed/,
  },
  "too many objects": {
    members: {
      objects: () =>
        Array.from({ length: 1_001 }, (_, at) => ({ apiVersion: "v1", kind: "Role", metadata: { name: `r-${at}` } })),
    },
    says: /objects returned 1001 objects; at most 1000 are allowed/,
  },
  "a service without a name": {
    members: { service: () => ({ selector: {}, publishNotReadyAddresses: true }) as never },
    says: /service's name must be a letter/,
  },
  "an unknown verdict": {
    members: { verdict: () => "done" },
    says: /verdict returned done; it must return running/,
  },
};
for (const [name, { members, says }] of Object.entries(answers)) {
  test(`a kind of pods that returns ${name} fails its job with a message`, () => {
    const kinds = kindsWith({ id: "a", kinds: [podKind({ name: "AJob", description: "", ...members })] });
    const cluster = new TinyCluster("c1");
    const sent = { kind: "AJob", replicaSpecs: { Worker: { template: template("main") } } };
    let job = admit(jobOf({ ...sent, runPolicy: { systemBackoffLimit: 1 } }, {}, kinds), {
      cluster: "c1",
      nowMs: START_MS,
      number: 1,
    });
    for (let round = 0; round < 4; round++) {
      const nowMs = START_MS + round * 30_000;
      const decision = reconcileGuarded(job, [cluster.observe({ nowMs, lagMs: 0 })], nowMs, { ...CONFIG, kinds });
      job = recorded(job, decision);
      for (const action of decision.actions) cluster.act(action, nowMs);
    }
    assert.equal(job.status.phase, "FAILED");
    assert.match(job.status.failure?.message ?? "", says);
  });
}

test("a kind of a plugin names the nodes that may take its pods, and a service of the whole gang", () => {
  const kind = podKind({
    name: "AJob",
    description: "",
    clusterSpec: () => ({ env: {}, initContainers: [], placing: { nodeSelector: { pool: "a" } } }),
    service: ({ jobName }) => ({ name: `${jobName}-all`, selector: {}, publishNotReadyAddresses: true }),
  });
  const kinds = kindsWith({ id: "a", kinds: [kind] });
  const cluster = new TinyCluster("c1");
  const sent = { kind: "AJob", replicaSpecs: { Worker: { template: template("main") } } };
  let job = admit(jobOf(sent, {}, kinds), { cluster: "c1", nowMs: START_MS, number: 1 });
  const made: JsonObject[] = [];
  for (let round = 0; round < 4; round++) {
    const nowMs = START_MS + round * 30_000;
    const decision = reconcileGuarded(job, [cluster.observe({ nowMs, lagMs: 0 })], nowMs, { ...CONFIG, kinds });
    job = recorded(job, decision);
    for (const action of decision.actions) {
      cluster.act(action, nowMs);
      if (action.kind === "createPod" || action.kind === "createService") made.push(action.manifest);
    }
  }
  const nameOf = (manifest: JsonObject) => (manifest["metadata"] as JsonObject)["name"];
  assert.deepEqual(made.filter(({ kind }) => kind === "Service").map(nameOf), [`${job.name}-all`]);
  const pod = made.find(({ kind }) => kind === "Pod")?.["spec"] as JsonObject;
  assert.deepEqual((pod["nodeSelector"] as JsonObject)["pool"], "a");
});

test("if validate of a kind does not return a list, the job is refused with the reason", () => {
  const kind = podKind({ name: "AJob", description: "", validate: () => undefined as never });
  const kinds = kindsWith({ id: "a", kinds: [kind] });
  const sent = { kind: "AJob", replicaSpecs: { Worker: { template: template("main") } } };
  const [error] = checkSent(kinds.kindOf("AJob") ?? assert.fail("it is served"), sent);
  assert.match(error?.message ?? "", /the kind failed: the result of validate must be a list of objects/);
});

test("the default serves the kinds that no other plugin serves, except those that are known as not served", () => {
  const registry = createRegistry([
    OWN_ENTRY,
    entry("a", ["Anything", "Else"], { isDefault: true }),
    entry("b", ["B"]),
  ]);
  assert.equal(registry.kindOf("SomethingElse")?.name, "Anything");
  assert.equal(registry.entryOf("SomethingElse")?.id, "a");
  assert.equal(registry.defaultKind?.name, "Anything");
  assert.equal(servedName(registry, { spec: { kind: "SomethingElse" } }), "Anything");
  assert.equal(registry.kindOf("B")?.name, "B");
  assert.equal(registry.entryOf("B")?.id, "b");
  assert.equal(registry.kindOf("PyTorchJob")?.name, "PyTorchJob");
  assert.equal(registry.kindOf("MXJob"), undefined);
  assert.equal(registry.kindOf("no kind at all"), undefined);
  const own = createRegistry([OWN_ENTRY]);
  assert.equal(own.kindOf("SomethingElse"), undefined);
  assert.equal(own.entryOf("SomethingElse"), undefined);
  assert.equal(own.defaultKind, undefined);
  assert.equal(servedName(own, { spec: { kind: "SomethingElse" } }), "SomethingElse");
});

test("a job without pods needs no replica specs, and may have none", () => {
  const kinds = kindsWith(etlEntry);
  assert.deepEqual(
    kinds.all.map(({ name }) => name),
    [...KINDS.map(({ name }) => name), "EtlJob"],
  );
  const document = {
    apiVersion: "gangway.dev/v1",
    kind: "EtlJob",
    metadata: { name: "j" },
    spec: { kindSpec: { query: "q" } },
  };
  const read = fromManifest(document, kinds);
  assert.equal(read.kind, "read");
  const kind = kinds.all.at(-1)!;
  assert.deepEqual(checkSent(kind, { kind: "EtlJob", replicaSpecs: {}, kindSpec: { query: "q" } }), []);
  const wrong = checkSent(kind, {
    kind: "EtlJob",
    replicaSpecs: { Worker: { template: template("main") } },
    kindSpec: { other: 1 },
  });
  assert.deepEqual(
    wrong.map(({ path }) => path),
    ["spec.replicaSpecs.Worker", "spec.kindSpec.other"],
  );
});

test("a job without pods is admitted in its queue's order, without a cluster, and after its backoff", () => {
  const kinds = kindsWith(etlEntry);
  const job = jobOf({ kind: "EtlJob", replicaSpecs: {} }, {}, kinds);
  const suspended = {
    ...jobOf({ kind: "EtlJob", replicaSpecs: {}, runPolicy: { suspend: true } }, {}, kinds),
    uid: "other",
  };
  const queues = [queue("default", {}, { strategy: "STRICT_FIFO" })];
  const decided = plan(
    snapshot({ waiting: [planGang(job, { kinds, lastAdmission: 4 }), suspended], queues, clusters: [] }),
    { nowMs: START_MS },
  );
  assert.deepEqual(
    decided.admissions.map(({ kind, jobUid, cluster, admission, allocations }) => ({
      kind,
      jobUid,
      cluster,
      admission,
      allocations,
    })),
    [{ kind: "admit", jobUid: job.uid, cluster: null, admission: 5, allocations: [] }],
  );
  assert.deepEqual(
    decided.refusals.map(({ jobUid, reason }) => [jobUid, reason]),
    [["other", "Suspended"]],
  );
});

test("a kind of pods that throws fails its job by the system budget, and its pods are deleted without it", () => {
  const broken = podKind({
    name: "BrokenJob",
    description: "throws once its pods run",
    verdict: () => {
      throw new Error("out of words");
    },
  });
  const kinds = kindsWith({ id: "broken", kinds: [broken] });
  const cluster = new TinyCluster("c1");
  const sent = {
    kind: "BrokenJob",
    replicaSpecs: { Worker: { template: template("main") } },
    runPolicy: { systemBackoffLimit: 3, cleanPodPolicy: "All" as const },
  };
  let job = admit(jobOf(sent, {}, kinds), { cluster: "c1", nowMs: START_MS, number: 1 });
  let nowMs = START_MS;
  assert.throws(
    () => reconcile(job, [cluster.observe({ nowMs, lagMs: 0 })], nowMs, { ...CONFIG, kinds }),
    /out of words/,
  );
  for (let round = 0; round < 12; round++) {
    const decision = reconcileGuarded(job, [cluster.observe({ nowMs, lagMs: 0 })], nowMs, { ...CONFIG, kinds });
    job = recorded(job, decision);
    for (const action of decision.actions) cluster.act(action, nowMs);
    cluster.collect();
    nowMs += 30_000;
  }
  assert.equal(job.status.phase, "FAILED");
  assert.deepEqual([job.status.failure?.code, job.status.failure?.kind], ["PluginFailed", "SYSTEM"]);
  assert.match(job.status.failure?.message ?? "", /failed 3 times .*out of words/);
  assert.notEqual(job.admissions.at(-1)?.tokensReleasedMs, null);
});

test("variables in log links are filled in and escaped; unknown ones stay", () => {
  assert.deepEqual(
    logLink("logs", "https://logs/{{ .namespace }}/{{.id}}?q={{ .other }}", { namespace: "a b", id: "7" }),
    {
      name: "logs",
      uri: "https://logs/a%20b/7?q={{ .other }}",
    },
  );
});

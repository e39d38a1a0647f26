import assert from "node:assert/strict";
import { test } from "node:test";
import { checkSent } from "../../src/core/kinds/check-sent.ts";
import { fromManifest } from "../../src/core/kinds/from-manifest.ts";
import { logLink, type PluginEntry, podKind, serviceKind } from "../../src/core/kinds/plugin.ts";
import { createRegistry, KINDS, OWN_ENTRY, servedKinds, serveKinds } from "../../src/core/kinds/registry.ts";
import { plan } from "../../src/core/plan/plan.ts";
import { reconcile, reconcileGuarded } from "../../src/core/reconcile/reconcile.ts";
import { queue, snapshot } from "./plan-world.ts";
import { etlEntry } from "./service-world.ts";
import { admit, CONFIG, jobOf, recorded, START_MS, TinyCluster, template } from "./world.ts";

const entry = (id: string, names: readonly string[], more: Partial<PluginEntry> = {}): PluginEntry => ({
  id,
  kinds: names.map((name) => podKind({ name, description: "a test's" })),
  ...more,
});

const refused: Record<string, { readonly entries: readonly unknown[]; readonly says: RegExp }> = {
  "two plugins of one id": { entries: [entry("a", ["A"]), entry("a", ["B"])], says: /two plugins have the id a/ },
  "a kind that two plugins serve": {
    entries: [entry("a", ["A"]), entry("b", ["A"])],
    says: /kind A is registered twice/,
  },
  "a kind that is ours": { entries: [entry("a", ["PyTorchJob"])], says: /kind PyTorchJob is registered twice/ },
  "two defaults": {
    entries: [entry("a", ["A"], { isDefault: true }), entry("b", ["B"], { isDefault: true })],
    says: /there can be one default, and these are: a, b/,
  },
  "a plugin that is no object": { entries: ["a"], says: /a plugin must be an object/ },
  "a plugin without an id": { entries: [{ kinds: [] }], says: /a plugin's id must be/ },
  "a plugin without kinds": { entries: [{ id: "a", kinds: [] }], says: /plugin a: kinds must be a list of one kind/ },
  "a kind that lacks a function": {
    entries: [{ id: "a", kinds: [{ ...podKind({ name: "A", description: "" }), verdict: 1 }] }],
    says: /plugin a: A.verdict must be a function/,
  },
  "a kind without pods and without a plugin": {
    entries: [{ id: "a", kinds: [serviceKind({ name: "A", description: "" })] }],
    says: /plugin a: load is needed, because A runs a service/,
  },
};
for (const [name, { entries, says }] of Object.entries(refused)) {
  test(`refused: ${name}`, () => assert.throws(() => createRegistry([OWN_ENTRY, ...(entries as PluginEntry[])]), says));
}

test("the default serves kinds that nobody else does, unless it is known that they are not served", () => {
  const registry = createRegistry([OWN_ENTRY, entry("a", ["Anything"], { isDefault: true }), entry("b", ["B"])]);
  assert.equal(registry.kindOf("SomethingElse")?.name, "Anything");
  assert.equal(registry.entryOf("SomethingElse")?.id, "a");
  assert.equal(registry.kindOf("B")?.name, "B");
  assert.equal(registry.kindOf("PyTorchJob")?.name, "PyTorchJob");
  assert.equal(registry.kindOf("MXJob"), undefined);
  assert.equal(registry.kindOf("no kind at all"), undefined);
  assert.equal(createRegistry([OWN_ENTRY]).kindOf("SomethingElse"), undefined);
});

test("a job without pods needs no replica specs, and may have none", () => {
  serveKinds([etlEntry]);
  assert.deepEqual(
    servedKinds().map(({ name }) => name),
    [...KINDS.map(({ name }) => name), "EtlJob"],
  );
  const document = {
    apiVersion: "gangway.dev/v1",
    kind: "EtlJob",
    metadata: { name: "j" },
    spec: { kindSpec: { query: "q" } },
  };
  const read = fromManifest(document);
  assert.equal(read.kind, "read");
  const kind = servedKinds().at(-1)!;
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

test("a job without pods boards in its queue's order, in no cluster, and waits out its backoff like any other", () => {
  serveKinds([etlEntry]);
  const job = jobOf({ kind: "EtlJob", replicaSpecs: {} });
  const suspended = { ...jobOf({ kind: "EtlJob", replicaSpecs: {}, runPolicy: { suspend: true } }), uid: "other" };
  const queues = [queue("default", {}, { strategy: "STRICT_FIFO" })];
  const decided = plan(
    snapshot({ waiting: [job, suspended], lastAdmissions: { [job.uid]: 4 }, queues, clusters: [] }),
    START_MS,
  );
  assert.deepEqual(
    decided.admissions.map(({ jobUid, cluster, admission, lines }) => ({ jobUid, cluster, admission, lines })),
    [{ jobUid: job.uid, cluster: "", admission: 5, lines: [] }],
  );
  assert.deepEqual(
    decided.refusals.map(({ jobUid, reason }) => [jobUid, reason]),
    [["other", "Suspended"]],
  );
});

test("a kind of pods that throws fails its job with the system's budget, and its pods go without it", () => {
  const broken = podKind({
    name: "BrokenJob",
    description: "throws once its pods run",
    verdict: () => {
      throw new Error("out of words");
    },
  });
  serveKinds([{ id: "broken", kinds: [broken] }]);
  const cluster = new TinyCluster("c1");
  const sent = {
    kind: "BrokenJob",
    replicaSpecs: { Worker: { template: template("main") } },
    runPolicy: { systemBackoffLimit: 3, cleanPodPolicy: "All" as const },
  };
  let job = admit(jobOf(sent), { cluster: "c1", nowMs: START_MS, number: 1 });
  let nowMs = START_MS;
  assert.throws(() => reconcile(job, [cluster.observe({ nowMs, lagMs: 0 })], nowMs, CONFIG), /out of words/);
  for (let round = 0; round < 12; round++) {
    const decision = reconcileGuarded(job, [cluster.observe({ nowMs, lagMs: 0 })], nowMs, CONFIG);
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

test("log links are filled from their templates and escaped; what is unknown stays", () => {
  assert.deepEqual(
    logLink("logs", "https://logs/{{ .namespace }}/{{.id}}?q={{ .other }}", { namespace: "a b", id: "7" }),
    {
      name: "logs",
      uri: "https://logs/a%20b/7?q={{ .other }}",
    },
  );
});

/**
 * The example of a plugin that uses everything, run by a real worker and the host of plugins. Its objects are on a real
 * server of S3's protocol where there is one, and in files everywhere.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { objectStores } from "../../src/adapters/objects/object-stores.ts";
import { createPluginHost } from "../../src/adapters/plugins/plugin-host.ts";
import { readObjectPlaces } from "../../src/core/admin/object-places.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { DataStore, PluginEntry } from "../../src/core/kinds/plugin.ts";
import { platformFacts } from "../../src/core/kinds/plugin-services.ts";
import { PLAIN_POD_CONFIG } from "../../src/core/pods/pod-config.ts";
import type { TaskHolder } from "../../src/core/quota/calls.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import type { WorkerClusters } from "../../src/worker/ports.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { clock } from "../cluster/harness.ts";
import { CONFIG, jobOf } from "../core/reconcile/world.ts";
import { waitUntil } from "../support/bounded.ts";
import { kindsWith } from "../support/kinds.ts";
import { MemoryStore } from "../worker/memory-store.ts";
import { objectServerBuilt } from "./build.ts";
import { startObjectServer } from "./object-server.ts";

const contract = new URL("../../src/core/kinds/plugin.ts", import.meta.url).href;
// The example imports the package by its name, as an author does. Here that is the source.
registerHooks({
  resolve: (name, context, next) =>
    name === "gangway/plugin" ? { url: contract, shortCircuit: true } : next(name, context),
});
const example = new URL("../../examples/plugins/score-job.js", import.meta.url).href;
const { plugins } = (await import(example)) as { readonly plugins: readonly PluginEntry[] };
const KINDS = kindsWith(...plugins);

const directory = mkdtempSync(join(tmpdir(), "gangway-example-"));
after(() => rmSync(directory, { recursive: true, force: true }));
writeFileSync(join(directory, "score-signature"), "signed\n");
for (const [name, value] of Object.entries({ id: "access", key: "hidden" }))
  writeFileSync(join(directory, name), value);

const noCluster = () => assert.fail("a job without pods is in no cluster");
const clusters: WorkerClusters = {
  observe: noCluster,
  listJob: noCluster,
  act: noCluster,
  claim: noCluster,
  anchorLives: async () => false,
  seenJobs: () => [],
  namespaceOf: () => null,
};

/** A worker with the example, on one place of objects. */
function scoring(store: JsonObject) {
  const outcome = readObjectPlaces({ stores: [store] });
  assert.ok(outcome.kind === "read", JSON.stringify(outcome));
  const jobs = new MemoryStore(clock);
  const seen = { held: new Set<string>(), pools: [] as string[], measured: [] as string[], woken: [] as string[] };
  const podConfig = { ...PLAIN_POD_CONFIG, serviceAccount: "trainer", defaultEnvVars: { REGION: "eu" } };
  const host = createPluginHost<TaskHolder>({
    kinds: KINDS,
    secretsDirectory: directory,
    wakeJob: (uid) => void seen.woken.push(uid),
    openStores: (secrets) => objectStores(outcome.value, { secrets, nowMs: Date.now }),
    platformOf: (namespace) => platformFacts(podConfig, namespace),
    pluginCounted: ({ plugin, name, label }) => void seen.measured.push(`${plugin} ${name} ${label}`),
    pluginTimed: ({ plugin, name }) => void seen.measured.push(`${plugin} ${name}`),
    tokens: {
      poolExists: async () => false,
      registerPool: async (pool, quota) => {
        seen.pools.push(`${pool}=${quota}`);
        return "done";
      },
      allocate: async ({ taskName }) => {
        seen.held.add(taskName);
        return { status: "GRANTED" };
      },
      release: async ({ taskName }) => void seen.held.delete(taskName),
    },
  });
  const term = { name: "worker", signal: new AbortController().signal };
  const worker = createWorker(
    {
      clock,
      store: jobs.port(),
      clusters,
      member: { term: () => term },
      wakePlanner: () => undefined,
      plugins: host,
    },
    { config: { ...CONFIG, kinds: KINDS }, onError: (error) => assert.fail(String(error)) },
  );
  const run = async (uid: string, inputs: JsonObject, more: JsonObject = {}): Promise<Job> => {
    const sent = { kind: "ScoreJob", replicaSpecs: {}, inputs, runPolicy: { backoffLimit: 2 }, ...more };
    jobs.add(jobOf(sent, { uid, name: uid }, KINDS));
    jobs.admit(uid, null);
    await waitUntil("the plugin has finalized the job", async () => {
      if (jobs.job(uid)?.status.plugin?.stage === "done") return true;
      await worker.runOnce();
      return false;
    });
    return jobs.job(uid) ?? assert.fail("the job is gone");
  };
  const objects: DataStore = host.storeOf("default", new AbortController().signal);
  return { run, seen, objects, events: jobs.events };
}

async function scores(store: JsonObject, root: string): Promise<void> {
  const { run, seen, objects, events } = scoring(store);
  await objects.write(`${root}scores.txt`, "1\n2\n3\n");
  const places = { scores: `${root}scores.txt`, report: `${root}report.json` };

  const done = await run("good", places);
  assert.equal(done.status.phase, "SUCCEEDED", JSON.stringify(done.status.failure));
  assert.deepEqual(done.status.outputs, { mean: 2, report: places.report });
  const report = JSON.parse(Buffer.from((await objects.read(places.report)) ?? []).toString("utf8"));
  assert.deepEqual(report, { mean: 2, signature: "signed", by: "trainer@eu" });
  assert.equal(await objects.head(`${places.report}.gw-good-1-1x0000000`), null, "finalize has removed it");
  assert.ok(events.some(({ message }) => message === "ScoreJob good has recorded outputs: mean, report."));
  assert.deepEqual([seen.pools, [...seen.held]], [["ex:scores=4"], []]);
  assert.deepEqual(seen.measured, ["score reports ns", "score handle"]);
  assert.ok(seen.woken.includes("good"), "finalize has asked for another look at its owner");

  const low = await run("low", places, { kindSpec: { lowest: 5 } });
  assert.equal(low.status.failure?.code, "LowScore");
  assert.deepEqual(low.status.outputs, { mean: 2, report: places.report }, "a job that failed shows its outputs too");

  const lost = await run("lost", { ...places, scores: `${root}none.txt` });
  assert.equal(lost.status.failure?.code, "BackoffLimitExceeded");
  assert.equal(lost.status.outputs, undefined);
  const missing = events.filter(({ jobUid, reason }) => jobUid === "lost" && reason === "ScoresMissing");
  assert.deepEqual(
    missing.map(({ type, message }) => `${type} ${message}`),
    [1, 2].map((attempt) => {
      return `Warning ${root}none.txt does not exist: attempt ${attempt} of 2, not interruptible`;
    }),
  );
  assert.deepEqual([...seen.held], []);
}

test("the example reads, writes and reports objects that are files", async () => {
  const folder = join(directory, "objects");
  mkdirSync(folder);
  await scores({ url: `file://${folder}/` }, `file://${folder}/`);
});

test("the example does the same on a real server of S3's protocol", {
  skip: !objectServerBuilt() && "npm run objects:build",
}, async () => {
  await using server = await startObjectServer("team-bucket");
  const keys = { accessKeySecret: "id", secretKeySecret: "key" };
  await scores({ url: "s3://team-bucket/", endpoint: server.endpoint, ...keys }, "s3://team-bucket/");
});

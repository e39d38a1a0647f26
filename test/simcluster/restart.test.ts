import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { V1Pod } from "@kubernetes/client-node";
import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
import { Journal } from "../../src/adapters/simcluster/objects/journal.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { waitUntil } from "../support/bounded.ts";
import { create, destroy, fastClock, newModel, podManifest } from "./support.ts";

const nodes = [{ name: "n1", labels: {}, allocatable: { cpu: "64", "nvidia.com/gpu": "8" } }];

async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "simcluster-"));
  try {
    await body(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function client(cluster: SimCluster): CoreV1Api {
  const config = new KubeConfig();
  config.loadFromString(cluster.kubeconfig());
  return config.makeApiClient(CoreV1Api);
}

async function phaseOf(cluster: SimCluster, name: string): Promise<string | undefined> {
  return (await client(cluster).readNamespacedPod({ namespace: "default", name })).status?.phase;
}

const until = (condition: () => Promise<boolean>) => waitUntil("the cluster is as expected", condition, { pollMs: 1 });

test("a restarted cluster continues: same uids, later versions, no time has passed", () =>
  withDirectory(async (directory) => {
    const options = { name: "one", nodes, directory, clock: fastClock(1) };
    const first = await startSimCluster(options);
    const body = podManifest("p", { gpus: 8, sim: { pull: "0s", start: "0s", run: "1h" } }) as V1Pod;
    const made = await client(first).createNamespacedPod({ namespace: "default", body });
    await until(async () => (await phaseOf(first, "p")) === "Running");
    const { version, nowMs } = { version: first.model.store.version, nowMs: first.model.nowMs };
    await first.close();

    const second = await startSimCluster({ ...options, nodes: [], clock: fastClock(10_000) });
    const again = await client(second).readNamespacedPod({ namespace: "default", name: "p" });
    assert.equal(again.metadata?.uid, made.metadata?.uid);
    assert.equal(again.status?.phase, "Running");
    assert.ok(second.model.store.version >= version);
    assert.ok(second.model.nowMs >= nowMs && second.model.nowMs < nowMs + 3_600_000);
    await until(async () => (await phaseOf(second, "p")) === "Succeeded");
    await second.close();
  }));

test("a change is in the file before its answer, and an incomplete last line is dropped", () =>
  withDirectory(async (directory) => {
    const file = join(directory, "cluster.journal");
    const options = { name: "one", nodes, directory, clock: fastClock(1) };
    const first = await startSimCluster(options);
    const api = client(first);
    for (const name of ["a", "b", "c"]) {
      await api.createNamespacedConfigMap({ namespace: "default", body: { metadata: { name } } });
      assert.ok(
        readFileSync(file, "utf8").includes(`"name":"${name}"`),
        `${name} was acknowledged and is not in the file`,
      );
    }
    const asKilled = readFileSync(file, "utf8");
    await first.close();
    writeFileSync(file, `${asKilled}{"nowMs":12,"version":99,"chan`);

    const second = await startSimCluster(options);
    const { items } = await client(second).listNamespacedConfigMap({ namespace: "default" });
    assert.deepEqual(
      items.map(({ metadata }) => metadata?.name),
      ["a", "b", "c", "kube-root-ca.crt"],
    );
    await second.close();
  }));

/** Serves the directory from a separate process, and kills it in any case. */
async function served(directory: string, use: (api: CoreV1Api, kill: () => void) => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "served.ts"), directory]);
  const exit = once(child, "exit");
  try {
    const [text] = (await once(child.stdout, "data")) as [Buffer];
    const config = new KubeConfig();
    config.loadFromString(text.toString());
    await use(config.makeApiClient(CoreV1Api), () => child.kill("SIGKILL"));
  } finally {
    child.kill("SIGKILL");
    await exit;
  }
}

test("a killed process loses nothing that it acknowledged", () =>
  withDirectory(async (directory) => {
    const acknowledged: string[] = [];
    let version = 0;
    for (let round = 0; round < 3; round += 1) {
      await served(directory, async (api, kill) => {
        const { items, metadata } = await api.listNamespacedPod({ namespace: "default" });
        const present = items.map((pod) => pod.metadata?.name);
        assert.deepEqual(
          acknowledged.filter((name) => !present.includes(name)),
          [],
        );
        assert.ok(Number(metadata?.resourceVersion) >= version);
        for (let index = 0; index < 15; index += 1) {
          const body = podManifest(`p${round}-${index}`, { gpus: 1, sim: { run: "50ms", pull: "0s" } }) as V1Pod;
          const call = api.createNamespacedPod({ namespace: "default", body });
          if (index === 14) kill();
          const made = await call.catch(() => null);
          if (made?.metadata?.name === undefined) continue;
          acknowledged.push(made.metadata.name);
          version = Number(made.metadata.resourceVersion);
        }
      });
    }
    assert.ok(acknowledged.length >= 3 * 14, `${acknowledged.length} acknowledged`);
  }));

test("a file that has grown is rewritten without deleted objects", () =>
  withDirectory(async (directory) => {
    const model = newModel(1);
    model.takeChanges();
    const journal = new Journal(directory);
    journal.rewrite(model.snapshot());
    for (let round = 0; round < 12; round += 1) {
      create(model, "configmaps", "default", {
        metadata: { name: `big-${round}` },
        data: { text: "x".repeat(1024 * 1024) },
      });
      if (round > 0) destroy(model, "configmaps", "default", `big-${round - 1}`);
      journal.append(model.nowMs, model.takeChanges(), () => model.snapshot());
    }
    journal.close();
    const bytes = readFileSync(join(directory, "cluster.journal")).length;
    assert.ok(bytes < 12 * 1024 * 1024, `${bytes} bytes after 23 MiB of changes`);
    const saved = journal.load();
    assert.ok(saved !== null);
    const names = saved.entries
      .filter(({ resource }) => resource === "configmaps")
      .map(({ object }) => object.metadata.name);
    assert.deepEqual(names, ["kube-root-ca.crt", "big-11"]);
    assert.equal(saved.version, model.store.version);
  }));

test("a file damaged before its last line is refused", () =>
  withDirectory(async (directory) => {
    writeFileSync(join(directory, "cluster.journal"), "{\n{}\n");
    await assert.rejects(startSimCluster({ name: "one", nodes, directory, clock: fastClock(1) }), SyntaxError);
  }));

test("a client without the token is refused", async () => {
  const cluster = await startSimCluster({ name: "one", nodes, directory: null, clock: fastClock(1), token: "secret" });
  assert.equal((await fetch(`${cluster.url}/api/v1/nodes`)).status, 401);
  assert.equal((await client(cluster).listNode()).items.length, 1);
  await cluster.close();
});

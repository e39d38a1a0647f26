import assert from "node:assert/strict";
import { test } from "node:test";
import { connectCluster } from "../../src/adapters/cluster/cluster.ts";
import { createClusters } from "../../src/adapters/cluster/clusters.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { clock, create, INSTALLATION, seededRandom, until } from "./harness.ts";
import { ownSim } from "./own-sim.ts";

const { sim, direct } = await ownSim();

const signal = new AbortController().signal;

/** A process that is connected to the cluster; it watches it only after `start`. */
function connected() {
  return connectCluster({
    name: "sim",
    kubeconfig: sim.kubeconfig(),
    installation: INSTALLATION,
    clock,
    random: seededRandom(5),
    createNamespaces: false,
    onJobChanged: () => undefined,
    onCapacity: async () => null,
    onError: () => undefined,
  });
}

async function createPod(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
  const spec = { containers: [{ name: "main", image: "busybox" }] };
  const made = await create(direct, "pods", { apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec });
  assert.equal(made.kind, "ok");
}

test("the pods of a job: from the watch, listed without one, and none if the cluster is away", async (t) => {
  const own = { [LABEL.installation]: INSTALLATION, [LABEL.jobUid]: "job-1" };
  await createPod("ours", own);
  await createPod("other-job", { ...own, [LABEL.jobUid]: "job-2" });
  await createPod("other-installation", { ...own, [LABEL.installation]: "other" });
  const cluster = connected();
  t.after(() => cluster.close());
  const clusters = createClusters([cluster]);
  const of = { cluster: "sim", namespace: "default", jobUid: "job-1" };
  const names = async (wanted = of) => (await clusters.pods.ofJob(wanted, signal))?.map(({ name }) => name) ?? null;
  assert.deepEqual(await names(), ["ours"], "listed");
  cluster.start();
  await until(() => cluster.synced(), "the watch has begun");
  assert.deepEqual(await names(), ["ours"], "watched");
  assert.equal(await names({ ...of, cluster: "no-such" }), null);
  await sim.close();
  await until(async () => (await names()) === null, "the cluster is away, and the watch is no longer up to date");
});

/** An MPIJob that is scaled while it runs, by a real worker on the simulated cluster. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { KubeClient } from "../../src/adapters/cluster/client.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { changeJob } from "../../src/core/kinds/change-job.ts";
import { mpiJob } from "../../src/core/kinds/kubeflow/mpi-job.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../src/runtime/json.ts";
import { clientOf, clock, gpuNodes, startSim, until } from "../cluster/harness.ts";
import { jobOf } from "../core/reconcile/world.ts";
import { leftOf, type Running, runWorker } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

const NAME = "horovod";
const UID = `uid-of-${NAME}`;
let sim: SimCluster;
let direct: KubeClient;
let running: Running;
const store = new MemoryStore(clock);

before(async () => {
  sim = await startSim(gpuNodes(4));
  direct = clientOf(sim.kubeconfig());
  running = runWorker(sim, store);
});

after(async () => {
  await running.stop();
  await direct.close();
  await sim.close();
});

function submitted(workers: number): void {
  const annotations = {
    "sim.gangway.dev/pull": "1ms",
    "sim.gangway.dev/start": "1ms",
    "sim.gangway.dev/run": "forever",
  };
  const stops = { "sim.gangway.dev/termination-grace": "1ms" };
  const spec = { containers: [{ name: "mpi", image: "busybox" }] };
  const template = { metadata: { annotations: { ...annotations, ...stops } }, spec };
  const replicaSpecs = { Launcher: { template }, Worker: { replicas: workers, template } };
  store.add(jobOf({ kind: "MPIJob", replicaSpecs }, { uid: UID, name: NAME, namespace: "default" }));
  store.admit(UID, "sim");
  running.worker.wake(UID);
}

/** Scales the job as a caller does, and adds members as the planner does. */
function scale(workers: number): void {
  store.change(UID, (job) => {
    const changed = changeJob(job, mpiJob, { version: null, replicas: { Worker: workers } }, clock.nowMs());
    assert.ok(changed.kind === "changed");
    const admissions = changed.job.admissions.map((one) => ({
      ...one,
      members: { ...one.members, Worker: Math.max(workers, one.members["Worker"] ?? 0) },
    }));
    return { ...changed.job, admissions };
  });
  running.worker.wake(UID);
}

async function get(path: string): Promise<JsonObject> {
  const got = await direct.request({ method: "GET", path });
  return got.kind === "ok" ? got.object : {};
}

async function gang(): Promise<{ pods: number; hosts: readonly string[]; allowed: readonly unknown[] }> {
  const map = await get(`/api/v1/namespaces/default/configmaps/${NAME}-config`);
  const role = await get(`/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/${NAME}-launcher`);
  const lines = (stringAt(objectAt(map, "data"), "hostfile") ?? "").split("\n").filter(Boolean);
  return {
    pods: (await leftOf(direct, UID)).pods.length,
    hosts: lines.map((line) => line.split(" ")[0] ?? ""),
    allowed: arrayAt(arrayAt(role, "rules")[1], "resourceNames"),
  };
}

test("hosts file and role follow the workers, without writes at rest, and are gone at the end", async () => {
  submitted(2);
  const follows = async (count: number) => {
    const workers = Array.from({ length: count }, (_, index) => `${NAME}-worker-${index}`);
    const wanted = { pods: count + 1, hosts: workers, allowed: workers };
    await until(async () => isDeepStrictEqual(await gang(), wanted), `${count} workers`);
    await until(() => store.job(UID)?.status.phase === "RUNNING", "it runs on");
  };
  await follows(2);
  scale(4);
  await follows(4);
  scale(5);
  await follows(5);
  scale(1);
  await follows(1);
  const path = `/api/v1/namespaces/default/configmaps/${NAME}-config`;
  const versionOf = async () => stringAt(objectAt(await get(path), "metadata"), "resourceVersion");
  const rested = await versionOf();
  running.worker.wake(UID);
  await running.worker.runOnce();
  assert.equal(await versionOf(), rested);
  const reasons = store.events.map(({ reason }) => reason);
  for (const reason of ["SuccessfulUpdateConfigMap", "SuccessfulUpdateRole"])
    assert.ok(reasons.includes(reason), reason);
  assert.ok(!reasons.includes("SuccessfulUpdateServiceAccount"), "an unchanged part is not written");
  store.change(UID, (job) => ({ ...job, deleteTimeMs: clock.nowMs() }));
  running.worker.wake(UID);
  await until(() => store.job(UID) === null, "it is forgotten");
  assert.deepEqual(running.errors, []);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { LABEL } from "../../../src/core/job/labels.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import type { BookedReport } from "../../cluster/capacity-book.ts";
import { gang } from "../../cluster/gang.ts";
import { create, until } from "../../cluster/harness.ts";
import { nodeManifest } from "../subject.ts";
import { done, ok, type Scene, signal } from "./scene.ts";

const gpusFree = (report: BookedReport | undefined) =>
  (report?.capacity?.nodes ?? []).reduce((sum, { free }) => sum + (free["nvidia.com/gpu"] ?? 0) / 1000, 0);

function gpuPod(name: string, labels: Readonly<Record<string, string>>, gpus: number): JsonObject {
  const resources = { limits: { "nvidia.com/gpu": String(gpus) } };
  return {
    metadata: { name, labels, annotations: { "sim.gangway.dev/run": "forever" } },
    spec: { containers: [{ name: "main", image: "busybox:1.36", resources }], terminationGracePeriodSeconds: 1 },
  };
}

/** Tests the reported capacity, and the objects that the watches show. */
export function capacity(of: Scene): void {
  const remove = async (path: string) => ok(await of.admin.request({ method: "DELETE", path }));

  test("capacity follows nodes, cordons, our pods and foreign pods", async () => {
    const { cluster, changed, reports } = of.connect();
    cluster.start();
    const free = (gpus: number) => until(() => gpusFree(reports.at(-1)) === gpus, `${gpus} free`);
    await free(16);
    const labels = { ...gang().labels, [LABEL.replicaType]: "worker", [LABEL.replicaIndex]: "0" };
    const jobUid = labels[LABEL.jobUid] ?? "";
    ok(await create(of.admin, "pods", gpuPod("capacity-ours", labels, 3)));
    ok(await create(of.admin, "pods", gpuPod("capacity-strange", {}, 2)));
    await free(11);
    await until(() => cluster.observe(jobUid).pods[0]?.ready === true, "ready is seen");
    assert.deepEqual(
      reports.at(-1)?.capacity?.seen.filter((seen) => seen.jobUid === jobUid),
      [{ jobUid, admission: 1, role: "worker", index: 0 }],
    );
    assert.ok(changed.includes(jobUid));
    await remove("/api/v1/namespaces/default/pods/capacity-ours");
    await remove("/api/v1/namespaces/default/pods/capacity-strange");
    await free(16);
    const body = nodeManifest({
      name: "node-new",
      labels: {},
      allocatable: { cpu: "8", pods: "10", "nvidia.com/gpu": "4" },
    });
    ok(await of.admin.request({ method: "POST", path: "/api/v1/nodes", body }));
    await free(20);
    ok(
      await of.admin.request({
        method: "PATCH",
        path: "/api/v1/nodes/node-new",
        body: { spec: { unschedulable: true } },
      }),
    );
    const cordoned = () => reports.at(-1)?.capacity?.nodes.find(({ name }) => name === "node-new")?.unschedulable;
    await until(() => cordoned() === true, "the cordon is seen");
    const newNode = reports.at(-1)?.capacity?.nodes.find(({ name }) => name === "node-new");
    assert.equal(newNode?.trouble?.cordoned, true);
    await remove("/api/v1/nodes/node-new");
    await free(16);
    await cluster.close();
  });

  test("a job's listed objects are the same as those that the watches show", async () => {
    const { cluster } = of.connect();
    cluster.start();
    const { createAnchor, createPod, createService, uid } = gang();
    for (const action of [createAnchor, createPod(), createPod(1), createService]) {
      assert.deepEqual(await of.actions().act(action, signal), done);
    }
    const looked = await cluster.listJob(uid, signal);
    assert.deepEqual([looked?.pods.length, looked?.services.length, looked?.configMaps.length], [2, 1, 1]);
    await until(() => cluster.observe(uid).pods.length === 2, "heard of the pods");
    await cluster.close();
  });
}

/** Pods come to the nodes that the plan has chosen, by a real kube-scheduler. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { LABEL } from "../../src/core/job/labels.ts";
import { placesIn } from "../../src/core/job/placement/placement.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { type PodView, podView } from "../../src/core/pods/read/pod-view.ts";
import { arrayAt, isJsonObject } from "../../src/runtime/json.ts";
import { clock } from "../cluster/harness.ts";
import { controlPlaneBuilt } from "./build.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { GPU, type Service, startService } from "./service.ts";
import { RUNS, TRAINING_STAGES } from "./stages.ts";
import { addNodes } from "./subject.ts";

const PRODUCT = "nvidia.com/gpu.product";
const NODE_GPUS = 8;
const WAIT_MS_MAX = 180_000;
const NAMESPACE = "training";

/** A gang of pods that run until they are deleted. */
function gang(name: string, of: { readonly pods: number; readonly gpus: number }): SentJob {
  const container = { name: "main", image: "train:1", resources: { limits: { [GPU]: String(of.gpus) } } };
  const template = { metadata: { annotations: { [RUNS]: "yes" } }, spec: { containers: [container] } };
  const replicaSpecs = { Worker: { replicas: of.pods, template } };
  const about = { namespace: NAMESPACE, name, generateName: "", labels: {}, annotations: {} };
  return { ...about, spec: { kind: "Job", replicaSpecs } };
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}-${String(at).padStart(3, "0")}`);
}

suite("on a real control plane", { skip: !controlPlaneBuilt() && "npm run kube:build" }, () => {
  let plane: ControlPlane;
  let service: Service;

  before(async () => {
    plane = await startControlPlane({ stages: TRAINING_STAGES });
    await createNodes("n", 16);
    const flavors = [{ name: "gpu/h100", resource: GPU, nodeLabels: { [PRODUCT]: "h100" } }];
    const queue = { name: "default", quotas: { "gpu/h100": 10_000 } };
    service = await startService([{ name: "east", kubeconfig: plane.kubeconfig(), flavors }], [queue]);
  });
  after(async () => {
    await service?.close();
    await plane?.stop();
  });

  function createNodes(prefix: string, count: number): Promise<void> {
    const allocatable = { cpu: "64", memory: "256Gi", pods: "110", [GPU]: String(NODE_GPUS) };
    const made = names(prefix, count).map((name) => ({ name, labels: { [PRODUCT]: "h100" }, allocatable }));
    return addNodes(plane, made);
  }

  /** The pods of jobs, once so many of them run. */
  async function whenRunning(jobs: readonly string[], count: number): Promise<readonly PodView[]> {
    const endMs = clock.monotonicMs() + WAIT_MS_MAX;
    for (;;) {
      const answer = await plane.client.request({ method: "GET", path: `/api/v1/namespaces/${NAMESPACE}/pods` });
      const items = answer.kind === "ok" ? arrayAt(answer.object, "items").filter(isJsonObject) : [];
      const pods = items.map(podView).filter(({ labels }) => jobs.includes(labels[LABEL.jobName] ?? ""));
      const running = pods.filter(({ phase }) => phase === "Running");
      if (running.length === count) return running;
      const said = `${running.length} of ${count} pods run, ${pods.length} exist`;
      assert.ok(clock.monotonicMs() < endMs, `${said}; ${service.errors.map(String).join(", ")}`);
      await clock.sleep(200);
    }
  }

  test("eight gangs of small pods leave whole nodes for eight pods that need one each", async () => {
    const small = names("small", 8);
    for (const name of small) await service.submit(gang(name, { pods: 8, gpus: 1 }));
    const packed = await whenRunning(small, 64);
    assert.equal(new Set(packed.map(({ nodeName }) => nodeName)).size, 8);
    const large = names("large", 8);
    for (const name of large) await service.submit(gang(name, { pods: 1, gpus: NODE_GPUS }));
    await whenRunning(large, 8);
  });

  test("a gang behind one Service lands on one node", async () => {
    await createNodes("more", 4);
    const spec = { clusterIP: "None", selector: { [LABEL.jobName]: "ring" }, ports: [{ port: 1234 }] };
    const service_ = { apiVersion: "v1", kind: "Service", metadata: { name: "ring" }, spec };
    const path = `/api/v1/namespaces/${NAMESPACE}/services`;
    assert.equal((await plane.client.request({ method: "POST", path, body: service_ })).kind, "ok");
    await service.submit(gang("ring", { pods: 8, gpus: 1 }));
    const pods = await whenRunning(["ring"], 8);
    assert.equal(new Set(pods.map(({ nodeName }) => nodeName)).size, 1);
  });

  test("of 400 nodes, 60 pods get those that are planned", async () => {
    await createNodes("many", 380);
    await service.submit(gang("sixty", { pods: 60, gpus: 3 }));
    const pods = await whenRunning(["sixty"], 60);
    const [job] = await service.jobs(["sixty"]);
    const places = placesIn(job === undefined ? null : await service.placementOf(job));
    const offPlan = pods.filter(({ index, nodeName }) => places("Worker", index ?? -1)?.node !== nodeName);
    assert.deepEqual(
      offPlan.map(({ name, nodeName }) => `${name} on ${nodeName}`),
      [],
    );
  });
});

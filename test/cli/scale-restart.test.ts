/** Commands that restart a job with another size, and that run a job of an earlier operator, on a whole service. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { until } from "../cluster/harness.ts";
import { startLab } from "./lab-service.ts";

const FLAVOR = "gpu/h100=nvidia.com/gpu:gpu=h100";
const NODES = [
  { name: "n", labels: { gpu: "h100" }, allocatable: { cpu: "64", memory: "256Gi", "nvidia.com/gpu": "8" } },
];
const annotations = { "sim.gangway.dev/run": "forever", "sim.gangway.dev/termination-grace": "1ms" };

function template(container: string) {
  return { metadata: { annotations }, spec: { containers: [{ name: container, image: "busybox" }] } };
}

function pytorch(name: string): string {
  const spec = {
    pytorchReplicaSpecs: { Master: { template: template("pytorch") }, Worker: { template: template("pytorch") } },
  };
  return JSON.stringify({ apiVersion: "kubeflow.org/v1", kind: "PyTorchJob", metadata: { name }, spec });
}

/** As the Caffe2 operator's own examples write it. */
const CAFFE2 = {
  apiVersion: "kubeflow.org/v1alpha1",
  kind: "Caffe2Job",
  metadata: { name: "example-job" },
  spec: {
    backendSpecs: { backendType: "redis", redisHost: "redis-service", redisPort: 6379 },
    replicaSpecs: { replicas: 2, template: template("caffe2") },
  },
};

suite("on a whole service", () => {
  const files: Record<string, string> = {};
  let lab: Awaited<ReturnType<typeof startLab>>;

  before(async () => {
    lab = await startLab(NODES, files);
    await lab.ok(`cluster add lab --kubeconfig lab.kubeconfig --flavor ${FLAVOR}`);
  });
  after(() => lab.close());

  const shown = async (name: string, path: string) =>
    (await lab.gangway(["get", name, "-o", `jsonpath=${path}`])).stdout;
  const runs = (name: string) =>
    until(async () => (await shown(name, "{.status.phase}")) === "JOB_PHASE_RUNNING", `${name} runs`);
  const workers = (name: string) => shown(name, "{.spec.replicaSpecs.Worker.replicas}");

  test("scale --restart suspends a job of a fixed size, scales it and resumes it", async () => {
    files["fixed.json"] = pytorch("fixed");
    await lab.ok("submit fixed.json");
    await runs("fixed");
    const refused = await lab.gangway(["scale", "fixed", "Worker=2"]);
    assert.match(refused.stderr, /while it is admitted: suspend it first/);
    const wrong = await lab.gangway(["scale", "fixed", "Master=2", "--restart"]);
    assert.equal(wrong.exitCode, 3);
    assert.match(wrong.stderr, /Master/);
    assert.equal(await shown("fixed", "{.status.phase}"), "JOB_PHASE_RUNNING", "a wrong number suspends nothing");
    const said = await lab.ok("scale fixed Worker=2 --restart");
    assert.equal(said, "pytorchjob/fixed suspended\npytorchjob/fixed scaled and resumed\n");
    assert.equal(await workers("fixed"), "2");
    await runs("fixed");
    assert.equal(await shown("fixed", "{.status.admission.members.Worker}"), "2");
  });

  test("scale --restart scales a job that waits or is suspended as it is", async () => {
    files["waits.json"] = pytorch("waits");
    await lab.ok("submit waits.json --suspended");
    assert.equal(await lab.ok("scale waits Worker=3 --restart"), "pytorchjob/waits scaled\n");
    assert.equal(await shown("waits", "{.spec.runPolicy.suspend}"), "true", "who suspended it resumes it");
  });

  test("if the new number is refused, the job is resumed as it was", async () => {
    files["limited.json"] = pytorch("limited");
    await lab.ok("submit limited.json");
    await runs("limited");
    await lab.ok("limits set namespace/default --max-pods 100");
    const refused = await lab.gangway(["scale", "limited", "Worker=1000", "--restart"]);
    assert.equal(refused.exitCode, 3, refused.stderr);
    assert.match(refused.stdout, /suspended\npytorchjob\/limited resumed as it was\n$/);
    assert.equal(await workers("limited"), "1");
    await lab.ok("limits set namespace/default --max-pods 0");
    await runs("limited");
  });

  test("a manifest of the Caffe2 operator is accepted as it is, and runs", async () => {
    files["caffe2.json"] = JSON.stringify(CAFFE2);
    await lab.ok("submit caffe2.json");
    await runs("example-job");
    assert.equal(await workers("example-job"), "2");
    const wrong = { ...CAFFE2.spec.replicaSpecs, replicas: "two" };
    files["wrong.json"] = JSON.stringify({ ...CAFFE2, spec: { ...CAFFE2.spec, replicaSpecs: wrong } });
    const refused = await lab.gangway(["submit", "wrong.json"]);
    assert.match(refused.stderr, /spec\.replicaSpecs\.replicas: must be a whole number/);
    files["none.json"] = JSON.stringify({ ...CAFFE2, spec: { backendSpecs: {} } });
    assert.match((await lab.gangway(["submit", "none.json"])).stderr, /spec\.replicaSpecs: is required/);
  });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { pathSpeller } from "../../src/manifest/spell-paths.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, run } from "./harness.ts";

const kubeflow = pathSpeller({ replicaSpecsField: "pytorchReplicaSpecs", liftsKindSpec: true, sources: new Map() });
const own = pathSpeller({ replicaSpecsField: "replicaSpecs", liftsKindSpec: false, sources: new Map() });
const cases: Record<string, readonly [kubeflow: string, own: string]> = {
  "job.spec.replica_specs[Master].template.spec.containers[0].image": [
    "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].image",
    "spec.replicaSpecs.Master.template.spec.containers[0].image",
  ],
  "job.spec.replica_specs[Worker].restart_policy: x": [
    "spec.pytorchReplicaSpecs.Worker.restartPolicy: x",
    "spec.replicaSpecs.Worker.restartPolicy: x",
  ],
  "job.spec.run_policy.scheduling_policy.min_available": [
    "spec.runPolicy.schedulingPolicy.minAvailable",
    "spec.runPolicy.schedulingPolicy.minAvailable",
  ],
  "job.spec.kind_spec.nprocPerNode": ["spec.nprocPerNode", "spec.kindSpec.nprocPerNode"],
  "job.metadata.labels[a_b/c_d]": ["metadata.labels[a_b/c_d]", "metadata.labels[a_b/c_d]"],
  "job default/mnist exists and differs: job.spec.replica_specs is 1": [
    "job default/mnist exists and differs: spec.pytorchReplicaSpecs is 1",
    "job default/mnist exists and differs: spec.replicaSpecs is 1",
  ],
};
for (const [text, expected] of Object.entries(cases)) {
  test(`${text} is spelled as in the manifest`, () => assert.deepEqual([kubeflow(text), own(text)], expected));
}

test("errors and warnings of the service name the manifest's members, and a warning is called one", async (t) => {
  const { api } = await startFixture(t);
  const submit = (text: string, more: readonly string[] = []) =>
    run(["submit", "-", ...more], { address: api.address, stdin: text });
  const typo = pytorchManifest("a").replace("image:", "imagePullPolcy: Always, image:");
  const field = "spec\\.pytorchReplicaSpecs\\.Master\\.template\\.spec\\.containers\\[0\\]\\.imagePullPolcy";
  assert.match((await submit(typo, ["--dry-run"])).stderr, new RegExp(`^warning: stdin, document 1: ${field}: `));
  const refused = await submit(`${typo}  runPolicy: {schedulingPolicy: {queue: nowhere}}`);
  assert.equal(refused.exitCode, 3);
  assert.match(refused.stderr, /\n {2}spec\.runPolicy\.schedulingPolicy\.queue: /);
  assert.match(refused.stderr, new RegExp(`\n {2}warning: ${field}: `));
  assert.doesNotMatch(refused.stderr, new RegExp(`\n {2}${field}`));
  const strict = await submit(typo, ["--strict"]);
  assert.match(strict.stderr, new RegExp(`\n {2}${field}: `));
});

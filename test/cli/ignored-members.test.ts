/** Members of a manifest that nothing reads: a warning, and with --strict an error, that says where they belong. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, run } from "./harness.ts";

const OWN = `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: a}
spec: {replicaSpecs: {Worker: {replicas: 1, template: {spec: {containers: [{name: main, image: i}]}}}}}
`;
const kubeflow = pytorchManifest("a");
const template = (more: string) => kubeflow.replace("spec: {containers:", `spec: {${more}, containers:`);

const cases: Readonly<Record<string, { text: string; says: string }>> = {
  "a run policy beside the spec": {
    text: `${OWN}runPolicy: {backoffLimit: 1}\n`,
    says: "runPolicy: is ignored: it belongs below spec",
  },
  "a member of the run policy beside the spec": {
    text: `${OWN}backoffLimit: 1\n`,
    says: "backoffLimit: is ignored: it belongs below spec.runPolicy",
  },
  "labels beside the metadata": {
    text: `${kubeflow}labels: {team: nlp}\n`,
    says: "labels: is ignored: it belongs below metadata",
  },
  "a misspelt member of the metadata": {
    text: OWN.replace("{name: a}", "{name: a, lables: {team: nlp}}"),
    says: "metadata.lables: is ignored: did you mean labels?",
  },
  "replica specs in the metadata": {
    text: kubeflow.replace("{name: a}", "{name: a, pytorchReplicaSpecs: {}}"),
    says: "metadata.pytorchReplicaSpecs: is ignored: it belongs below spec",
  },
  "a member of the kind beside the spec": {
    text: `${kubeflow}nprocPerNode: 2\n`,
    says: "nprocPerNode: is ignored: it belongs below spec",
  },
  "a member of the kind beside the spec of Gangway's own form": {
    text: `${OWN.replace("kind: Job", "kind: PyTorchJob").replace("name: main", "name: pytorch")}nprocPerNode: 2\n`,
    says: "nprocPerNode: is ignored: it belongs below spec.kindSpec",
  },
  "a member that nothing has": { text: `${OWN}whatever: 1\n`, says: "whatever: is ignored" },
  "what a cluster wrote": { text: `${kubeflow}status: {}\n`, says: "status: is ignored" },
};

test("every ignored member is a warning with its place, and an error with --strict", async (t) => {
  const { api, store } = await startFixture(t);
  for (const [name, { text, says }] of Object.entries(cases)) {
    const world = { address: api.address, files: { "a.yaml": text } };
    const plain = await run(["submit", "a.yaml", "--dry-run"], world);
    assert.deepEqual([plain.exitCode, plain.stderr], [0, `warning: a.yaml, document 1: ${says}\n`], name);
    const strict = await run(["submit", "a.yaml", "--strict"], world);
    assert.deepEqual([strict.exitCode, strict.stderr.split("\n")[0]], [3, `error: a.yaml, document 1: ${says}`], name);
  }
  assert.equal(store.jobs.size, 0);
});

test("what the service itself returns, and null, are no members that are ignored", async (t) => {
  const { api } = await startFixture(t);
  const world = { address: api.address, files: { "a.yaml": `${OWN}status: {}\nextra: null\n` } };
  assert.deepEqual(await run(["submit", "a.yaml", "--strict"], world), {
    exitCode: 0,
    stdout: "job/a created\n",
    stderr: "",
  });
});

test("the restart policy of a template is ignored, unless it is that of its replica type", async (t) => {
  const { api } = await startFixture(t);
  const submitted = async (text: string) => {
    return (await run(["submit", "a.yaml", "--dry-run"], { address: api.address, files: { "a.yaml": text } })).stderr;
  };
  assert.match(
    await submitted(template("restartPolicy: Always")),
    /spec\.restartPolicy: is ignored: the restart policy of the replica type counts, OnFailure/,
  );
  assert.equal(await submitted(template("restartPolicy: OnFailure")), "");
});

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { NamespaceService } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, run, type World } from "./harness.ts";

const manifest = (kind: string, metadata: string, numNodes = 2) => `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ${kind}
metadata: ${metadata}
spec:
  mlPolicy: {numNodes: ${numNodes}, torch: {numProcPerNode: auto}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec: {template: {spec: {containers: [{name: node, image: "pytorch/pytorch:2.13.0"}]}}}
`;
const OWN = manifest("TrainingRuntime", "{name: own, labels: {trainer.kubeflow.org/framework: torch}}");
const ALL = manifest("ClusterTrainingRuntime", "{name: all, annotations: {a: b}, uid: x}");

const FILES = {
  "own.yaml": OWN,
  "changed.yaml": OWN.replace("numNodes: 2", "numNodes: 3"),
  "mixed.yaml": [OWN, pytorchManifest("mnist"), ALL].join("---\n"),
  "job.yaml": pytorchManifest("mnist"),
  "twice.yaml": `${OWN}---\n${OWN}`,
  "wrong.yaml": [OWN.replace("numNodes", "numNode"), ALL.replace("{name: all", "{namespace: nlp, name: all")].join(
    "---",
  ),
  "version.yaml": OWN.replace("v1alpha1", "v2"),
  "capitals.yaml": OWN.replace("name: own", "name: Own"),
  "shipped.yaml": ALL.replace("name: all", "name: torch-distributed"),
  "elsewhere.yaml": OWN.replace("name: own", "name: own, namespace: elsewhere"),
};

async function served(t: TestContext) {
  const fixture = await startFixture(t);
  for (const name of ["default", "nlp"]) {
    await fixture.call(NamespaceService.method.createNamespace, { namespace: { name } });
  }
  const world: World = { address: fixture.api.address, files: FILES };
  return (line: string, more: World = {}) => run(line.split(" "), { ...world, ...more });
}

type Step = { readonly run: string; readonly exit: number; readonly out?: RegExp; readonly err?: RegExp };

const STORIES: Readonly<Record<string, readonly Step[]>> = {
  "a runtime of a namespace is applied, listed, shown and deleted": [
    { run: "runtime apply -f own.yaml", exit: 0, out: /^runtime\/default\/own created\n$/, err: /^$/ },
    { run: "runtime apply own.yaml", exit: 0, out: /^runtime\/default\/own unchanged\n$/ },
    { run: "runtime apply changed.yaml --dry-run", exit: 0, out: /^runtime\/default\/own updated \(dry run\)\n$/ },
    { run: "runtime apply changed.yaml", exit: 0, out: /^runtime\/default\/own updated\n$/ },
    { run: "runtime create own.yaml", exit: 3, err: /own.yaml, document 1:\nerror: already exists: .*default\/own/ },
    { run: "runtime apply own.yaml -n nlp", exit: 0, out: /^runtime\/nlp\/own created\n$/ },
    {
      run: "runtime list",
      exit: 0,
      out: /^NAMESPACE +NAME +FRAMEWORK +SHIPPED +AGE\n- +deepspeed-distributed +deepspeed +yes/,
    },
    { run: "runtime list", exit: 0, out: /\ndefault +own +torch +- +\S+\n$/ },
    { run: "runtime list -A -o name", exit: 0, out: /\nruntime\/default\/own\nruntime\/nlp\/own\n$/ },
    { run: "runtime list --installation -o name", exit: 0, out: /runtime\/xgboost-distributed\n$/ },
    { run: "runtime list -A --installation", exit: 2, err: /cannot be combined/ },
    { run: "get runtimes", exit: 0, out: /default +own/ },
    { run: "runtime get own", exit: 0, out: /default +own +torch +- / },
    { run: "runtime get torch-distributed", exit: 0, out: /- +torch-distributed +torch +yes +-\n$/ },
    { run: "runtime get own --installation", exit: 3, err: /training runtime own does not exist/ },
    { run: "runtime get absent", exit: 3, err: /training runtime default\/absent does not exist/ },
    { run: "runtime delete own", exit: 0, out: /^runtime\/default\/own deleted\n$/ },
    {
      run: "runtime delete own",
      exit: 3,
      err: /does not exist\n {2}A runtime of the whole installation is deleted with/,
    },
  ],
  "a file with other documents is applied, and they are named": [
    {
      run: "runtime apply mixed.yaml",
      exit: 0,
      out: /^runtime\/default\/own created\nruntime\/all created\n$/,
      err: /^skipped mixed.yaml, document 2: PyTorchJob mnist\n$/,
    },
    { run: "runtime delete all", exit: 3, err: /--installation/ },
    { run: "runtime delete all --installation", exit: 0, out: /deleted/ },
    { run: "runtime delete torch-distributed --installation", exit: 3, err: /is shipped with Gangway/ },
  ],
  "a dry run creates nothing": [
    { run: "runtime create own.yaml --dry-run", exit: 0, out: /^runtime\/default\/own created \(dry run\)\n$/ },
    { run: "runtime get own", exit: 3, err: /does not exist/ },
  ],
  "what is wrong is refused with the field of the manifest, before anything is applied": [
    {
      run: "runtime apply own.yaml wrong.yaml",
      exit: 3,
      err: /document 1: spec.mlPolicy.numNode: is not a known field: did you mean numNodes\?\nerror: wrong.yaml/,
    },
    {
      run: "runtime apply wrong.yaml",
      exit: 3,
      err: /\nerror: wrong.yaml, document 2: metadata.namespace: must be omitted.*\nnothing was applied\n/,
    },
    { run: "runtime get own", exit: 3, err: /does not exist/ },
    { run: "runtime apply twice.yaml", exit: 3, err: /own is also the name of twice.yaml, document 1/ },
    { run: "runtime apply version.yaml", exit: 3, err: /apiVersion: must be trainer.kubeflow.org\/v1alpha1/ },
    {
      run: "runtime apply capitals.yaml",
      exit: 3,
      err: /capitals.yaml, document 1:\n.*\n {2}metadata.name: must be a DNS name/,
    },
    { run: "runtime apply shipped.yaml", exit: 3, err: /torch-distributed is shipped with Gangway/ },
    { run: "runtime apply elsewhere.yaml", exit: 3, err: /namespace elsewhere does not exist/ },
    { run: "runtime apply elsewhere.yaml -n nlp", exit: 3, err: /is elsewhere, but --namespace is nlp/ },
    {
      run: "runtime apply job.yaml",
      exit: 2,
      err: /there is no TrainingRuntime or ClusterTrainingRuntime in job.yaml/,
    },
    { run: "runtime apply", exit: 2, err: /give the manifests/ },
  ],
  "a runtime among jobs is refused with the command that takes it": [
    {
      run: "submit mixed.yaml",
      exit: 3,
      err: /a ClusterTrainingRuntime is no job; apply it first with "gangway runtime apply -f FILE"/,
    },
    {
      run: "submit mixed.yaml --ignore-foreign --dry-run",
      exit: 0,
      err: /skipped mixed.yaml, document 1: TrainingRuntime own/,
    },
  ],
};

for (const [name, steps] of Object.entries(STORIES)) {
  test(name, async (t) => {
    const gangway = await served(t);
    for (const { run: line, exit, out, err } of steps) {
      const { exitCode, stdout, stderr } = await gangway(line);
      assert.equal(exitCode, exit, `${line}: ${stderr}`);
      if (out !== undefined) assert.match(stdout, out, line);
      if (err !== undefined) assert.match(stderr, err, line);
    }
  });
}

test("a runtime can be applied again as get prints it, and a shipped one under another name", async (t) => {
  const gangway = await served(t);
  await gangway("runtime apply own.yaml");
  const { stdout: own } = await gangway("runtime get own -o yaml");
  const again = await gangway("runtime apply -", { stdin: own });
  assert.equal(again.stdout, "runtime/default/own unchanged\n");
  const { stdout: shipped } = await gangway("runtime get torchtune-llama3.2-1b -o yaml");
  assert.match(
    shipped,
    /^apiVersion: trainer.kubeflow.org\/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata:\n {2}name:/,
  );
  assert.equal(
    (await gangway("runtime apply -", { stdin: shipped })).stdout,
    "runtime/torchtune-llama3.2-1b unchanged\n",
  );
  const copy = shipped.replace("name: torchtune-llama3.2-1b", "name: ours");
  assert.equal((await gangway("runtime apply -", { stdin: copy })).stdout, "runtime/ours created\n");
});

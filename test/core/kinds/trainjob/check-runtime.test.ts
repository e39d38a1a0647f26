import assert from "node:assert/strict";
import { test } from "node:test";
import { runtimeErrors } from "../../../../src/core/kinds/trainjob/check-runtime.ts";
import { SHIPPED_RUNTIMES, shippedRuntime } from "../../../../src/core/kinds/trainjob/shipped-runtimes.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";

const STEP = "trainer.kubeflow.org/trainjob-ancestor-step";

/** A group of pods with these containers. `step`: the part of a TrainJob that it has. */
function group(
  name: string,
  of: { readonly step?: string; readonly containers?: readonly object[]; readonly replicas?: number } = {},
): JsonObject {
  const { step = "", containers = [{ name: "node" }], ...more } = of;
  const metadata = step === "" ? {} : { metadata: { labels: { [STEP]: step } } };
  return { name, template: { ...metadata, spec: { template: { spec: { containers } } } }, ...more } as JsonObject;
}

const withGroups = (...replicatedJobs: JsonObject[]): JsonObject => ({ template: { spec: { replicatedJobs } } });
const withPolicy = (mlPolicy: JsonObject): JsonObject => ({ mlPolicy, ...withGroups(group("node")) });

const GROUPS = "spec.template.spec.replicatedJobs";
const CONTAINERS = `${GROUPS}[0].template.spec.template.spec.containers`;
const data = "dataset-initializer";

const ACCEPTED: Readonly<Record<string, JsonObject>> = {
  "a group without a policy": withGroups(group("node")),
  "a policy for pod groups": { podGroupPolicy: { coscheduling: {} }, ...withGroups(group("node")) },
  "processes as a word": withPolicy({ numNodes: 2, torch: { numProcPerNode: "gpu" } }),
  "processes as a number": withPolicy({ torch: { numProcPerNode: 8 } }),
  "a policy that is null beside another": withPolicy({ torch: null, flux: null, jax: {} }),
  "every member of mpi": withPolicy({
    mpi: { numProcPerNode: 2, mpiImplementation: "Intel", runLauncherAsNode: false, sshAuthMountPath: "/root/.ssh" },
  }),
  "a trainer beside a group without a step": withGroups(group("node", { step: "trainer" }), group("other")),
  "a group without a step and with many replicas": withGroups(group("node", { replicas: 7, containers: [] })),
};

for (const [name, spec] of Object.entries(ACCEPTED)) {
  test(`a runtime may have ${name}`, () => assert.deepEqual(runtimeErrors(spec), []));
}

const deep = (levels: number): JsonObject => (levels === 0 ? {} : { a: deep(levels - 1) });

const REFUSED: Readonly<Record<string, { readonly spec: JsonObject; readonly path: string; readonly says: RegExp }>> = {
  "an unknown member": {
    spec: { mlPolice: {}, ...withGroups(group("node")) },
    path: "spec.mlPolice",
    says: /is not a known field: did you mean mlPolicy\?/,
  },
  "no template": { spec: {}, path: "spec.template", says: /is required/ },
  "a template that is a text": { spec: { template: "x" }, path: "spec.template", says: /must be an object, not "x"/ },
  "an unknown member of the template": {
    spec: { template: { ...(withGroups(group("node"))["template"] as JsonObject), kind: "JobSet" } },
    path: "spec.template.kind",
    says: /is not a known field/,
  },
  "a template without groups": {
    spec: { template: { spec: {} } },
    path: GROUPS,
    says: /must have 1 to 100 items, not 0/,
  },
  "a template without a spec": { spec: { template: {} }, path: GROUPS, says: /must have 1 to 100 items, not 0/ },
  "no group": { spec: withGroups(), path: GROUPS, says: /must have 1 to 100 items, not 0/ },
  "101 groups": {
    spec: withGroups(...Array.from({ length: 101 }, (_, at) => group(`g${at}`))),
    path: GROUPS,
    says: /1 to 100 items, not 101/,
  },
  "a group without a name": { spec: withGroups({}), path: `${GROUPS}[0].name`, says: /must be a DNS label/ },
  "a group that is a number": {
    spec: { template: { spec: { replicatedJobs: [1] } } },
    path: `${GROUPS}[0]`,
    says: /1/,
  },
  "two groups of one name": {
    spec: withGroups(group("node"), group("node")),
    path: `${GROUPS}[1].name`,
    says: /is node, which an earlier item has/,
  },
  "an unknown policy": { spec: withPolicy({ tensorflow: {} }), path: "spec.mlPolicy.tensorflow", says: /not a known/ },
  "no node": { spec: withPolicy({ numNodes: 0 }), path: "spec.mlPolicy.numNodes", says: /from 1 on, not 0/ },
  "half a node": { spec: withPolicy({ numNodes: 1.5 }), path: "spec.mlPolicy.numNodes", says: /whole number/ },
  "two policies": {
    spec: withPolicy({ torch: {}, mpi: {} }),
    path: "spec.mlPolicy.mpi",
    says: /must be omitted beside torch/,
  },
  flux: { spec: withPolicy({ flux: {} }), path: "spec.mlPolicy.flux", says: /is not served by Gangway/ },
  "an elastic policy": {
    spec: withPolicy({ torch: { elasticPolicy: {} } }),
    path: "spec.mlPolicy.torch.elasticPolicy",
    says: /is not served by Gangway/,
  },
  "an unknown word for processes": {
    spec: withPolicy({ torch: { numProcPerNode: "4" } }),
    path: "spec.mlPolicy.torch.numProcPerNode",
    says: /must be auto, cpu, gpu or a whole number from 1 on, not "4"/,
  },
  "a member of jax": { spec: withPolicy({ jax: { a: 1 } }), path: "spec.mlPolicy.jax.a", says: /not a known field/ },
  "no process of mpi": {
    spec: withPolicy({ mpi: { numProcPerNode: 0 } }),
    path: "spec.mlPolicy.mpi.numProcPerNode",
    says: /from 1 on, not 0/,
  },
  "another mpi": {
    spec: withPolicy({ mpi: { mpiImplementation: "MVAPICH" } }),
    path: "spec.mlPolicy.mpi.mpiImplementation",
    says: /must be one of OpenMPI, Intel, MPICH, not "MVAPICH"/,
  },
  "a relative path of mpi": {
    spec: withPolicy({ mpi: { sshAuthMountPath: "root/.ssh" } }),
    path: "spec.mlPolicy.mpi.sshAuthMountPath",
    says: /must be an absolute path/,
  },
  "a launcher that is a text": {
    spec: withPolicy({ mpi: { runLauncherAsNode: "yes" } }),
    path: "spec.mlPolicy.mpi.runLauncherAsNode",
    says: /must be true or false/,
  },
  "an unknown step": {
    spec: withGroups(group("node", { step: "launcher" })),
    path: `${GROUPS}[0].template.metadata.labels[${JSON.stringify(STEP)}]`,
    says: /must be one of trainer, dataset-initializer, model-initializer, not "launcher"/,
  },
  "two replicas of a trainer": {
    spec: withGroups(group("node", { step: "trainer", replicas: 2 })),
    path: `${GROUPS}[0].replicas`,
    says: /must be 1 or omitted.*not 2/,
  },
  "a trainer without its container": {
    spec: withGroups(group("node", { step: "trainer", containers: [{ name: "main" }] })),
    path: CONTAINERS,
    says: /must have a container node: the job has the step trainer/,
  },
  "an initializer without its container": {
    spec: withGroups(group("data", { step: data })),
    path: CONTAINERS,
    says: /must have a container dataset-initializer/,
  },
  "an initializer without its volume": {
    spec: withGroups(group("data", { step: data, containers: [{ name: data, volumeMounts: [{ name: "other" }] }] })),
    path: `${CONTAINERS}[0].volumeMounts`,
    says: /must mount the volume initializer/,
  },
  "a spec beyond 256 KiB": {
    spec: withGroups(group("node", { containers: [{ name: "node", image: "x".repeat(2 ** 18) }] })),
    path: "spec",
    says: /must have at most 256 KiB as JSON, not 257 KiB/,
  },
  "65 objects within each other": { spec: deep(65), path: "spec", says: /at most 64 lists and objects/ },
};

for (const [name, { spec, path, says }] of Object.entries(REFUSED)) {
  test(`a runtime may not have ${name}`, () => {
    const errors = runtimeErrors(spec);
    assert.deepEqual(
      errors.map((error) => error.path),
      [path],
    );
    assert.match(errors[0]?.message ?? "", says);
  });
}

test("all errors of a runtime are told at once, a hundred at most", () => {
  const several = runtimeErrors({ a: 1, mlPolicy: { numNodes: 0 }, template: { spec: { replicatedJobs: [] } } });
  assert.deepEqual(
    several.map(({ path }) => path),
    ["spec.a", "spec.mlPolicy.numNodes", GROUPS],
  );
  const many = runtimeErrors(Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`x${at}`, 1])));
  assert.deepEqual([many.length, many.at(-1)?.message], [101, "and 51 more"]);
});

test("every shipped runtime is a runtime, and they are in the order of their names", () => {
  assert.equal(SHIPPED_RUNTIMES.length, 8);
  for (const runtime of SHIPPED_RUNTIMES) {
    assert.deepEqual(runtimeErrors(runtime.spec), [], runtime.name);
    assert.equal(shippedRuntime(runtime), runtime);
  }
  const names = SHIPPED_RUNTIMES.map(({ name }) => name);
  assert.deepEqual(names, [...names].sort());
  assert.equal(shippedRuntime({ namespace: "team", name: "torch-distributed" }), null);
});

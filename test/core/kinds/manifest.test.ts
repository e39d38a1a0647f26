import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { defaultSpec } from "../../../src/core/job/request/defaults.ts";
import { checkSent } from "../../../src/core/kinds/check-sent.ts";
import { fromManifest } from "../../../src/core/kinds/manifest/from-manifest.ts";
import { KINDS } from "../../../src/core/kinds/registry.ts";
import { checkTemplate } from "../../../src/core/pods/judge/validate-template.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { shippedRuntimeOf } from "../../support/shipped-runtimes.ts";

const template = { spec: { containers: [{ name: "pytorch", image: "img" }] } };
const pytorch = (spec: JsonObject, replicas: JsonObject = { Worker: { replicas: 2, template } }): JsonObject => ({
  apiVersion: "kubeflow.org/v1",
  kind: "PyTorchJob",
  metadata: { name: "j" },
  spec: { pytorchReplicaSpecs: replicas, ...spec },
});

function errorsOf(doc: JsonObject): readonly string[] {
  const outcome = fromManifest(doc, OWN_KINDS, { runtimeOf: shippedRuntimeOf });
  if (outcome.kind === "refused") return outcome.errors.map(({ path }) => path);
  const { spec } = outcome.manifest;
  return checkSent(OWN_KINDS.kindOf(spec.kind)!, spec).map(({ path }) => path);
}

test("any JSON is read or refused with paths, never with an exception", () => {
  const kinds = fc.constantFrom(...KINDS.map(({ name }) => name), "MXJob", "X");
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 5 }),
      kinds,
      fc.constantFrom("kubeflow.org/v1", "gangway.dev/v1"),
      (spec, kind, apiVersion) => {
        const inner = {
          pytorchReplicaSpecs: spec,
          replicaSpecs: spec,
          runPolicy: spec,
          kindSpec: { elasticPolicy: spec, slotsPerWorker: spec },
          elasticPolicy: spec,
          schedulingPolicy: spec,
        } as JsonObject;
        for (const doc of [
          { apiVersion, kind, metadata: spec, spec },
          { apiVersion, kind, spec: inner },
        ]) {
          const outcome = fromManifest(doc as JsonObject, OWN_KINDS);
          if (outcome.kind === "read") checkSent(OWN_KINDS.kindOf(outcome.manifest.spec.kind)!, outcome.manifest.spec);
          else assert.ok(outcome.errors.every(({ path }) => path !== ""));
        }
      },
    ),
  );
});

for (const kind of KINDS) {
  test(`the example of ${kind.name} is accepted as it is`, () => {
    assert.deepEqual(errorsOf(kind.example), []);
    const outcome = fromManifest(kind.example, OWN_KINDS, { runtimeOf: shippedRuntimeOf });
    assert.ok(outcome.kind === "read");
    for (const { template: pod = {} } of Object.values(outcome.manifest.spec.replicaSpecs)) {
      assert.deepEqual(checkTemplate(pod), { errors: [], warnings: [] });
    }
  });
}

const refused = {
  "a known kind that is not served": [{ ...pytorch({}), kind: "MXJob" }, ["kind"]],
  "an unknown kind": [{ ...pytorch({}), kind: "NoJob" }, ["kind"]],
  "an API version that is not the kind's": [{ ...pytorch({}), apiVersion: "kubeflow.org/v2beta1" }, ["apiVersion"]],
  "an old version of a kind with other fields": [
    { apiVersion: "kubeflow.org/v1alpha1", kind: "MPIJob", spec: { gpus: 16, template: {} } },
    ["apiVersion"],
  ],
  "no spec": [{ apiVersion: "kubeflow.org/v1", kind: "TFJob" }, ["spec", "spec.tfReplicaSpecs"]],
  "several wrong fields, all at once": [
    pytorch({ runPolicy: { backoffLimit: "x", cleanPodPolicy: "Some", typo: 1 } }, { Worker: { replicas: 1.5 } }),
    [
      "spec.pytorchReplicaSpecs.Worker.replicas",
      "spec.runPolicy.typo",
      "spec.runPolicy.cleanPodPolicy",
      "spec.runPolicy.backoffLimit",
    ],
  ],
  "a run policy with another value at its old place": [
    pytorch({ backoffLimit: 3, cleanPodPolicy: "All", runPolicy: { backoffLimit: 4, cleanPodPolicy: "All" } }),
    ["spec.backoffLimit"],
  ],
  "a wrong run policy at its old place": [pytorch({ cleanPodPolicy: "Some" }), ["spec.runPolicy.cleanPodPolicy"]],
  "a member of the spec that the kind does not know": [pytorch({ nprocPerNod: 1 }), ["spec.kindSpec.nprocPerNod"]],
  "no processes per node": [pytorch({ nprocPerNode: "0" }), ["spec.kindSpec.nprocPerNode"]],
  "a replica type of another kind": [pytorch({}, { PS: { template } }), ["spec.replicaSpecs.PS"]],
  "a job with another manager": [
    pytorch({ runPolicy: { managedBy: "example.com/other" } }),
    ["spec.runPolicy.managedBy"],
  ],
  "two masters": [pytorch({}, { Master: { replicas: 2, template } }), ["spec.replicaSpecs.Master.replicas"]],
  "negative replicas": [
    pytorch({}, { Master: { template }, Worker: { replicas: -1, template } }),
    ["spec.replicaSpecs.Worker.replicas"],
  ],
  "no replicas at all": [pytorch({}, { Worker: { replicas: 0, template } }), ["spec.replicaSpecs"]],
  "one replica type in two spellings": [
    pytorch({}, { Worker: { template }, worker: { template } }),
    ["spec.replicaSpecs.worker"],
  ],
  "a minimum above the replicas": [
    pytorch({ runPolicy: { schedulingPolicy: { minAvailable: 3 } } }),
    ["spec.runPolicy.schedulingPolicy.minAvailable"],
  ],
  "a template without the kind's container": [
    pytorch({}, { Worker: { template: { spec: { containers: [{ name: "main", image: "i" }] } } } }),
    ["spec.replicaSpecs.Worker.template.spec.containers"],
  ],
} as const;
for (const [name, [doc, paths]] of Object.entries(refused)) {
  test(`${name}: refused at its path`, () => assert.deepEqual(errorsOf(doc), paths));
}

test("run policies are read from their old places and from the new one together", () => {
  const spec = { cleanPodPolicy: "Running", ttlSecondsAfterFinished: 60, runPolicy: { backoffLimit: 2 } };
  const outcome = fromManifest(pytorch({ ...spec, schedulingPolicy: { minAvailable: 2 } }), OWN_KINDS);
  assert.ok(outcome.kind === "read");
  assert.deepEqual(outcome.manifest.spec.runPolicy, {
    cleanPodPolicy: "Running",
    ttlSecondsAfterFinished: 60,
    backoffLimit: 2,
    schedulingPolicy: { minAvailable: 2 },
  });
  assert.equal(outcome.manifest.spec.kindSpec, undefined);
});

test("a manifest may name Kubeflow's controller as the manager", () => {
  const outcome = fromManifest(
    pytorch({ runPolicy: { managedBy: "kubeflow.org/training-operator", backoffLimit: 2 } }),
    OWN_KINDS,
  );
  assert.ok(outcome.kind === "read");
  assert.deepEqual(outcome.manifest.spec.runPolicy, { backoffLimit: 2 });
});

test("manifests of gangway.dev/v1 accept every field by its JSON name, and enums with or without prefix", () => {
  const outcome = fromManifest(
    {
      apiVersion: "gangway.dev/v1",
      kind: "Job",
      metadata: { name: "j", namespace: "n", labels: { a: "b" } },
      spec: {
        replicaSpecs: { Worker: { replicas: 2, restartPolicy: "RESTART_POLICY_ON_FAILURE", template } },
        runPolicy: {
          cleanPodPolicy: "CLEAN_POD_POLICY_ALL",
          restartScope: "RESTART_SCOPE_REPLICA",
          activeDeadlineSeconds: "60",
        },
        priority: 5,
        placement: { gpuModels: ["h100"] },
      },
    },
    OWN_KINDS,
  );
  assert.deepEqual(outcome, {
    kind: "read",
    manifest: {
      metadata: { name: "j", namespace: "n", labels: { a: "b" } },
      spec: {
        kind: "Job",
        replicaSpecs: { Worker: { replicas: 2, restartPolicy: "OnFailure", template } },
        runPolicy: { cleanPodPolicy: "All", restartScope: "REPLICA", activeDeadlineSeconds: 60 },
        priority: 5,
        placement: { gpuModels: ["h100"] },
      },
      sources: new Map(),
      notes: [],
      warnings: [],
    },
  });
});

test("the kind sets omitted members of a job, and spells its replica types", () => {
  const context = {
    labels: { "kueue.x-k8s.io/queue-name": "team" },
    namespaceQueue: "ns-queue",
    priorityClass: { name: "high", value: 7, preemptionPolicy: "LOWER_PRIORITY" as const },
  };
  const sent = { kind: "TFJob", replicaSpecs: { ps: { template }, WORKER: { replicas: 3, template } } };
  const spec = defaultSpec(sent, { ...context, kind: OWN_KINDS.kindOf("TFJob")! });
  assert.deepEqual(Object.keys(spec.replicaSpecs), ["PS", "Worker"]);
  assert.equal(spec.replicaSpecs["PS"]?.restartPolicy, "Never");
  assert.equal(spec.priority, 7);
  assert.deepEqual(spec.runPolicy, {
    cleanPodPolicy: "None",
    cleanPodPolicyAtLimit: "Running",
    ttlSecondsAfterFinished: null,
    activeDeadlineSeconds: null,
    backoffLimit: null,
    suspend: false,
    systemBackoffLimit: 20,
    startBackoffLimit: 3,
    restartScope: "REPLICA",
    schedulingPolicy: { minAvailable: 4, queue: "team", scheduleTimeoutSeconds: 600, isTimeoutDefault: true },
  });
});

test("a TFJob with dynamic workers beside a chief or master is warned of", () => {
  const { warn } = OWN_KINDS.kindOf("TFJob")!;
  const warned = (roles: readonly string[], enableDynamicWorker: boolean) =>
    warn?.({
      kind: "TFJob",
      replicaSpecs: Object.fromEntries(roles.map((role) => [role, { template }])),
      kindSpec: { enableDynamicWorker },
    }).map(({ path }) => path);
  assert.deepEqual(warned(["chief", "Worker"], true), ["spec.kindSpec.enableDynamicWorker"]);
  assert.deepEqual(warned(["Master", "PS", "Worker"], true), ["spec.kindSpec.enableDynamicWorker"]);
  assert.deepEqual(warned(["PS", "Worker"], true), []);
  assert.deepEqual(warned(["Chief", "Worker"], false), []);
});

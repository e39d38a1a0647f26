/** The JobSet that a TrainJob makes of its runtime. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Replica } from "../../../../src/core/kinds/kind.ts";
import { SentReader } from "../../../../src/core/kinds/manifest/sent-reader.ts";
import { policyEnv } from "../../../../src/core/kinds/trainjob/ml-policies.ts";
import { resolveRuntime } from "../../../../src/core/kinds/trainjob/resolve-runtime.ts";
import { containerOf, groupsOf, nameOf } from "../../../../src/core/kinds/trainjob/runtime-template.ts";
import { SHIPPED_RUNTIMES } from "../../../../src/core/kinds/trainjob/shipped-runtimes.ts";
import { readTrainJobSpec } from "../../../../src/core/kinds/trainjob/train-job-spec.ts";
import { arrayAt, type JsonObject, numberAt, objectAt, stringAt } from "../../../../src/runtime/json.ts";

function shipped(name: string): JsonObject {
  const found = SHIPPED_RUNTIMES.find((one) => one.name === name);
  assert.ok(found, name);
  return found.spec;
}

/** Resolves a TrainJob named `j`. Returns the JobSet, and the fields that are wrong. */
function resolved(spec: JsonObject, runtime?: JsonObject) {
  const reader = new SentReader();
  const name = stringAt(objectAt(spec, "runtimeRef"), "name") ?? "torch-distributed";
  const trainJob = readTrainJobSpec(reader, { runtimeRef: { name }, ...spec });
  return {
    ...resolveRuntime(reader, { trainJob, runtime: runtime ?? shipped(name) }),
    wrong: reader.errors.map(({ path }) => path),
  };
}

function containerIn(jobSet: JsonObject, group: string, container = "node"): JsonObject {
  const found = groupsOf(jobSet).find((one) => nameOf(one) === group);
  return (found && containerOf(found, container)) ?? {};
}

/** What the policy tells the first node of a job named `j`. */
function envOf({ fields }: { readonly fields: JsonObject }): Readonly<Record<string, string | undefined>> {
  const replica = { jobName: "j", role: "node", spec: { kindSpec: fields } } as unknown as Replica;
  return Object.fromEntries((policyEnv(replica)["node"] ?? []).map(({ name, value }) => [name, value]));
}

function countsOf(jobSet: JsonObject): readonly (readonly [string, number | undefined])[] {
  return groupsOf(jobSet).map((group) => {
    return [nameOf(group), numberAt(objectAt(objectAt(group, "template"), "spec"), "parallelism")] as const;
  });
}

/** A runtime for torch whose node has these resources and this policy. */
function torch(policy: JsonObject, resources: JsonObject = {}): JsonObject {
  const labels = { "trainer.kubeflow.org/trainjob-ancestor-step": "trainer" };
  const container = { name: "node", image: "i", resources };
  const job = { metadata: { labels }, spec: { template: { spec: { containers: [container] } } } };
  return {
    mlPolicy: { numNodes: 2, torch: policy },
    template: { spec: { replicatedJobs: [{ name: "node", template: job }] } },
  };
}

describe("the processes of a node", () => {
  const gpus = (count: number) => ({ limits: { "nvidia.com/gpu": count } });
  const cases: readonly [string, JsonObject, JsonObject, JsonObject, string][] = [
    ["what the TrainJob says", { numProcPerNode: 4 }, { numProcPerNode: "2" }, gpus(8), "4"],
    ["what the runtime says", {}, { numProcPerNode: 3 }, gpus(8), "3"],
    ["what the runtime says as text", {}, { numProcPerNode: "3" }, gpus(8), "3"],
    ["auto with GPUs of the TrainJob", { resourcesPerNode: gpus(2) }, {}, {}, "auto"],
    ["auto with GPUs of the runtime alone", {}, {}, gpus(8), "auto"],
    ["cpu, although there are GPUs", {}, { numProcPerNode: "cpu" }, { requests: { cpu: 4 }, ...gpus(1) }, "4"],
    ["one for each CPU, rounded up", {}, {}, { requests: { cpu: "2500m" } }, "3"],
    ["CPUs of the limits where none are requested", {}, {}, { limits: { cpu: "4" } }, "4"],
    ["at least one", {}, { numProcPerNode: "auto" }, {}, "1"],
  ];
  for (const [name, trainer, policy, resources, expected] of cases) {
    test(name, () => {
      const found = resolved({ trainer }, torch(policy, resources));
      assert.deepEqual(found.wrong, []);
      assert.equal(envOf(found)["PET_NPROC_PER_NODE"], expected);
    });
  }
});

describe("the number of nodes", () => {
  const cases: readonly [string, string, JsonObject, readonly (readonly [string, number])[]][] = [
    ["of the TrainJob", "torch-distributed", { trainer: { numNodes: 5 } }, [["node", 5]]],
    ["of the runtime", "torch-distributed", {}, [["node", 1]]],
    [
      "the launcher is one of them",
      "deepspeed-distributed",
      { trainer: { numNodes: 3 } },
      [
        ["node", 2],
        ["launcher", 1],
      ],
    ],
    [
      "one beside the launcher at least",
      "deepspeed-distributed",
      { trainer: { numNodes: 1 } },
      [
        ["node", 1],
        ["launcher", 1],
      ],
    ],
  ];
  for (const [name, runtime, spec, expected] of cases) {
    test(name, () => assert.deepEqual(countsOf(resolved({ ...spec, runtimeRef: { name: runtime } }).spec), expected));
  }
});

test("resources of the TrainJob replace those of the same name, and the others stay", () => {
  const own = { limits: { cpu: "4", memory: "8Gi" }, requests: { cpu: "2" } };
  const asked = { limits: { cpu: "8", "nvidia.com/gpu": 1 } };
  const { spec } = resolved({ trainer: { resourcesPerNode: asked } }, torch({}, own));
  assert.deepEqual(containerIn(spec, "node")["resources"], {
    limits: { cpu: "8", memory: "8Gi", "nvidia.com/gpu": 1 },
    requests: { cpu: "2" },
  });
});

test("JAX and XGBoost are told the first node and their number", () => {
  const jax = envOf(resolved({ runtimeRef: { name: "jax-distributed" }, trainer: { numNodes: 3 } }));
  assert.deepEqual(jax, {
    JAX_NUM_PROCESSES: "3",
    JAX_PROCESS_ID: undefined,
    JAX_COORDINATOR_ADDRESS: "j-node-0-0.j:29500",
  });
  const gpus = { limits: { "nvidia.com/gpu": 2 } };
  const trainer = { numNodes: 3, resourcesPerNode: gpus };
  const xgboost = envOf(resolved({ runtimeRef: { name: "xgboost-distributed" }, trainer }));
  assert.deepEqual([xgboost["DMLC_NUM_WORKER"], xgboost["DMLC_TRACKER_URI"]], ["6", "j-node-0-0.j"]);
});

describe("the command of torchtune", () => {
  const tune = (args: readonly string[], trainer: JsonObject = {}) => {
    const { spec, wrong } = resolved({
      runtimeRef: { name: "torchtune-llama3.2-1b" },
      trainer: { command: ["tune", "run"], args, ...trainer },
    });
    return { command: arrayAt(containerIn(spec, "node"), "command").slice(2), wrong };
  };
  const own = ["output_dir=/workspace/output", "tokenizer.path=/workspace/model/original/tokenizer.model"];
  const kept = [...own, "checkpointer.checkpoint_dir=/workspace/model"];
  const endpoint = "--rdzv_endpoint={{.JobName}}-node-0-0.{{.JobName}}:29500";
  const lora = ["model.lora_attn_modules=['q_proj']"];
  const cases: readonly [string, readonly string[], JsonObject, readonly string[]][] = [
    ["several GPUs", [], {}, [endpoint, "full_finetune_distributed", "--config", "llama3_2/1B_full", ...kept]],
    [
      "one process",
      [],
      { numProcPerNode: 1 },
      ["full_finetune_single_device", "--config", "llama3_2/1B_full_single_device", ...kept],
    ],
    ["LoRA", lora, {}, [endpoint, "lora_finetune_distributed", "--config", "llama3_2/1B_lora", ...kept]],
    [
      "QLoRA on one device",
      [...lora, "model.quantize_base=True"],
      { numProcPerNode: 1 },
      ["lora_finetune_single_device", "--config", "llama3_2/1B_qlora_single_device", ...kept],
    ],
    [
      "DoRA is not quantized",
      [...lora, "model.quantize_base=True", "model.use_dora=true"],
      {},
      [endpoint, "lora_finetune_distributed", "--config", "llama3_2/1B_lora", ...kept],
    ],
  ];
  for (const [name, args, trainer, expected] of cases) {
    test(name, () => assert.deepEqual(tune(args, trainer), { command: expected, wrong: [] }));
  }
  test("what it cannot do is refused", () => {
    assert.deepEqual(tune(["output_dir=/x"]).wrong, ["spec.trainer.args[0]"]);
    assert.deepEqual(tune(lora, { numNodes: 2 }).wrong, ["spec.trainer.numNodes", "spec.trainer.numNodes"]);
  });
});

describe("a TrainJob is refused by the member that its runtime does not have", () => {
  const patch = (job: JsonObject) => [
    { manager: "acme.io/x", trainingRuntimeSpec: { template: { spec: { replicatedJobs: [job] } } } },
  ];
  const pod = (spec: JsonObject) => ({ template: { spec: { template: { spec } } } });
  const cases: readonly [string, JsonObject, readonly string[]][] = [
    ["an initializer", { initializer: { model: { storageUri: "hf://a/b" } } }, ["spec.runtimeRef"]],
    [
      "a storage URI without a scheme",
      { initializer: { dataset: { storageUri: "a/b" } } },
      ["spec.initializer.dataset.storageUri", "spec.runtimeRef"],
    ],
    [
      "a reserved variable",
      {
        trainer: {
          env: [
            { name: "A", value: "1" },
            { name: "PET_NNODES", value: "1" },
          ],
        },
      },
      ["spec.trainer.env[1].name"],
    ],
    [
      "a patch of another job",
      { runtimePatches: patch({ name: "worker" }) },
      ["spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"],
    ],
    [
      "a patch of another container",
      { runtimePatches: patch({ name: "node", ...pod({ containers: [{ name: "x" }] }) }) },
      ["spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"],
    ],
    [
      "variables in a patch",
      { runtimePatches: patch({ name: "node", ...pod({ containers: [{ name: "node", env: [{ name: "A" }] }] }) }) },
      ["spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"],
    ],
    [
      "an override of another job",
      { podTemplateOverrides: [{ targetJobs: [{ name: "worker" }], spec: {} }] },
      ["spec.podTemplateOverrides[0].spec.replicatedJobs[0]"],
    ],
    ["a manager without a path", { runtimePatches: [{ manager: "acme" }] }, ["spec.runtimePatches[0].manager"]],
    ["no process", { trainer: { numProcPerNode: 0 } }, ["spec.trainer.numProcPerNode"]],
    ["an unknown member", { trainer: { nodes: 2 } }, ["spec.trainer.nodes"]],
  ];
  for (const [name, spec, expected] of cases) {
    test(name, () => assert.deepEqual(resolved(spec).wrong, expected));
  }
});

test("patches and overrides reach the pods in their order, and the runtime stays as it is", () => {
  const before = JSON.stringify(shipped("torch-distributed"));
  const override = {
    targetJobs: [{ name: "node" }],
    metadata: { labels: { a: "2" } },
    spec: { nodeSelector: { pool: "b" } },
  };
  const job = {
    name: "node",
    template: {
      spec: {
        template: { metadata: { labels: { a: "1", b: "1" } }, spec: { nodeSelector: { pool: "a", zone: "z" } } },
      },
    },
  };
  const { spec, metadata } = resolved({
    runtimePatches: [
      {
        manager: "acme.io/x",
        trainingRuntimeSpec: { template: { metadata: { labels: { set: "y" } }, spec: { replicatedJobs: [job] } } },
      },
    ],
    podTemplateOverrides: [override],
  });
  const [group] = groupsOf(spec);
  const pod = objectAt(objectAt(objectAt(group, "template"), "spec"), "template");
  assert.deepEqual(objectAt(pod, "metadata"), { labels: { a: "2", b: "1" } });
  assert.deepEqual(objectAt(pod, "spec")["nodeSelector"], { pool: "b", zone: "z" });
  assert.deepEqual(metadata["labels"], { set: "y" });
  assert.equal(JSON.stringify(shipped("torch-distributed")), before);
});

/**
 * The training runtimes that every installation has. Their content is that of the runtimes of Kubeflow Trainer
 * (https://github.com/kubeflow/trainer), Copyright The Kubeflow Authors, Apache License 2.0; see the file NOTICE.
 */
import type { JsonObject } from "../../../runtime/json.ts";
import { ANCESTOR_STEP, INITIALIZER_VOLUME, NODE, TRAINER_STEP, type TrainingRuntime } from "./training-runtime.ts";

const IMAGES = "ghcr.io/kubeflow/trainer";

/** One child job with one pod. `step`: the part of a TrainJob that it has. Omitted: none. */
function group(
  name: string,
  of: { readonly step?: string; readonly container: JsonObject; readonly pod?: JsonObject; readonly more?: JsonObject },
): JsonObject {
  const { step, container, pod = {}, more = {} } = of;
  return {
    name,
    groupName: "default",
    replicas: 1,
    ...more,
    template: {
      ...(step === undefined ? {} : { metadata: { labels: { [ANCESTOR_STEP]: step } } }),
      spec: { template: { spec: { ...pod, containers: [container] } } },
    },
  };
}

function trainer(container: JsonObject, more: JsonObject = {}): JsonObject {
  return group(NODE, { step: TRAINER_STEP, container: { name: NODE, ...container }, more });
}

function runtime(
  name: string,
  of: { readonly framework: string; readonly mlPolicy: JsonObject; readonly set: JsonObject },
): TrainingRuntime {
  const { framework, mlPolicy, set } = of;
  return {
    namespace: "",
    name,
    labels: { "trainer.kubeflow.org/framework": framework },
    spec: { mlPolicy: { numNodes: 1, ...mlPolicy }, template: { spec: set } },
    createTimeMs: 0,
    version: 0,
    isShipped: true,
  };
}

/** Nodes that run a program of the framework each, and find each other. */
function plain(framework: string, image: string): TrainingRuntime {
  return runtime(`${framework}-distributed`, {
    framework,
    mlPolicy: { [framework]: {} },
    set: { replicatedJobs: [trainer({ image })] },
  });
}

/** Nodes with a server of SSH, and a launcher that starts processes there and is a node itself. */
function mpi(framework: string): TrainingRuntime {
  const image = `${IMAGES}/${framework}-runtime`;
  const container = { name: NODE, image, securityContext: { runAsUser: 1000 } };
  const pod = { securityContext: { fsGroup: 1000 } };
  const server = {
    command: ["/usr/sbin/sshd"],
    args: ["-De", "-f", "/home/mpiuser/.sshd_config"],
    readinessProbe: { initialDelaySeconds: 5, tcpSocket: { port: 2222 } },
  };
  const more = { dependsOn: [{ name: "node", status: "Ready" }] };
  return runtime(`${framework}-distributed`, {
    framework,
    mlPolicy: {
      mpi: {
        mpiImplementation: "OpenMPI",
        numProcPerNode: 1,
        runLauncherAsNode: true,
        sshAuthMountPath: "/home/mpiuser/.ssh",
      },
    },
    set: {
      network: { publishNotReadyAddresses: true },
      replicatedJobs: [
        group("node", { container: { ...container, ...server }, pod }),
        group("launcher", { step: "trainer", container, pod, more }),
      ],
      successPolicy: { operator: "All", targetReplicatedJobs: ["launcher"] },
    },
  });
}

const WORKSPACE = { volumeMounts: [{ mountPath: "/workspace", name: INITIALIZER_VOLUME }] };

function initializer(step: "dataset-initializer" | "model-initializer", uri: string): JsonObject {
  const env = [{ name: "STORAGE_URI", value: uri }];
  return group(step, { step, container: { name: step, image: `${IMAGES}/${step}`, env, ...WORKSPACE } });
}

/** Fine-tunes a model of Hugging Face that an initializer fetches. */
function torchtune(
  model: string,
  of: { readonly source: string; readonly config: string; readonly tokenizer: readonly string[] },
): TrainingRuntime {
  const command = [
    ...["tune", "run", "--rdzv_endpoint=localhost:29500", "full_finetune_distributed", "--config", of.config],
    ...["dataset=torchtune.datasets.instruct_dataset", "dataset.source=parquet"],
    ...["dataset.data_dir=/workspace/dataset/data", "output_dir=/workspace/output"],
    ...of.tokenizer,
    "checkpointer.checkpoint_dir=/workspace/model",
  ];
  const container = {
    image: `${IMAGES}/torchtune-trainer`,
    command,
    resources: { limits: { "nvidia.com/gpu": 2 } },
    ...WORKSPACE,
  };
  const steps = ["dataset-initializer", "model-initializer"];
  const more = { dependsOn: steps.map((name) => ({ name, status: "Complete" })) };
  return runtime(`torchtune-${model}`, {
    framework: "torchtune",
    mlPolicy: { torch: {} },
    set: {
      replicatedJobs: [
        initializer("dataset-initializer", "hf://tatsu-lab/alpaca"),
        initializer("model-initializer", of.source),
        trainer(container, more),
      ],
      volumeClaimPolicies: [{ templates: [CLAIM] }],
    },
  });
}

const CLAIM: JsonObject = {
  metadata: { name: INITIALIZER_VOLUME },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "20Gi" } } },
};

const LLAMA_TOKENIZER = ["tokenizer.path=/workspace/model/original/tokenizer.model"];

/** In the order of their names. They belong to the installation, and never change. */
export const SHIPPED_RUNTIMES: readonly TrainingRuntime[] = [
  mpi("deepspeed"),
  plain("jax", "nvcr.io/nvidia/jax:25.10-py3"),
  mpi("mlx"),
  plain("torch", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"),
  torchtune("llama3.2-1b", {
    source: "hf://meta-llama/Llama-3.2-1B-Instruct",
    config: "llama3_2/1B_full",
    tokenizer: LLAMA_TOKENIZER,
  }),
  torchtune("llama3.2-3b", {
    source: "hf://meta-llama/Llama-3.2-3B-Instruct",
    config: "llama3_2/3B_full",
    tokenizer: LLAMA_TOKENIZER,
  }),
  torchtune("qwen2.5-1.5b", {
    source: "hf://Qwen/Qwen2.5-1.5B-Instruct",
    config: "qwen2_5/1.5B_full",
    tokenizer: ["tokenizer.path=/workspace/model/vocab.json", "tokenizer.merges_file=/workspace/model/merges.txt"],
  }),
  plain("xgboost", `${IMAGES}/xgboost-runtime`),
];

const BY_NAME: ReadonlyMap<string, TrainingRuntime> = new Map(SHIPPED_RUNTIMES.map((one) => [one.name, one]));

/** The shipped runtime of this name. Null: there is none, or the name is one of a namespace. */
export function shippedRuntime({ namespace, name }: Pick<TrainingRuntime, "namespace" | "name">) {
  return namespace === "" ? (BY_NAME.get(name) ?? null) : null;
}

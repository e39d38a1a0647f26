import type { SentJob } from "../../../src/core/job/request/sent.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { pick } from "../../support/random.ts";
import { SERVICE_KIND, TASK_ENDS } from "./sim-service.ts";
import { GPU } from "./world.ts";

const BATCH = "Job.v1.batch";
/** On pods of jobs that need one rack for all their pods. */
export const WISH_LABEL = "example.com/needs";
/** Kinds that are a JobSet once they are submitted. */
const SETS = ["JobSet", "TrainJob"];

/** A job with pods in one of these queues. `small`: so many fit that it matters which ones run. */
export function randomJob(
  random: () => number,
  at: number,
  { queues, small }: { readonly queues: readonly string[]; readonly small: boolean },
): SentJob {
  const replicas = 1 + Math.floor(random() * (small ? 3 : 5));
  const isGangOfFour = random() < (small ? 0.15 : 0.5);
  const min = isGangOfFour ? 4 : 1 + Math.floor(random() * replicas);
  const gpus = pick(random, [0, 1, 1, 2]);
  const annotations = {
    "sim.gangway.dev/pull": pick(random, ["100ms", "1s", "8s"]),
    "sim.gangway.dev/run": pick(random, small ? ["5s", "20s", "60s"] : ["1s", "5s", "20s"]),
    "sim.gangway.dev/exit-code": pick(random, ["0", "0", "0", "1", "137,0", "137,137,1"]),
  };
  const resources = gpus === 0 ? { requests: { cpu: "1" } } : { limits: { [GPU]: String(gpus) } };
  const kind = pick(random, ["Job", "PyTorchJob", "TFJob", "MPIJob", BATCH, ...SETS]);
  const isSet = SETS.includes(kind);
  const isBatch = kind === BATCH || isSet;
  const count = isGangOfFour ? 4 + Math.floor(random() * 2) : replicas;
  const container = {
    name: { PyTorchJob: "pytorch", TFJob: "tensorflow", MPIJob: "mpi" }[kind] ?? "main",
    image: "trainer",
    resources,
  };
  const needsRack = random() < 0.3;
  const template = {
    metadata: { annotations, ...(needsRack ? { labels: { [WISH_LABEL]: "rack" } } : {}) },
    spec: { containers: [container] },
  };
  return {
    namespace: "default",
    name: `job-${at}-${Math.floor(random() * 1e6)}`,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind,
      // The workers of these jobs may come and go while the job runs.
      ...(kind === "TFJob" && random() < 0.6 ? { kindSpec: { enableDynamicWorker: true } } : {}),
      ...(kind === BATCH ? { kindSpec: batchFields(random, isGangOfFour ? 5 : replicas) } : {}),
      ...(isSet ? { kindSpec: setFields(random, count) } : {}),
      priority: Math.floor(random() * 3),
      ...(needsRack ? { placement: { topology: { required: "rack" } } } : {}),
      replicaSpecs: {
        ...(kind === "MPIJob" ? { Launcher: { template } } : {}),
        // Members that end long before the others.
        ...(kind === "Job" && at % 2 === 1 ? { Early: earlyRole(template) } : {}),
        ...(isSet ? { driver: { replicas: 1, restartPolicy: "Never" as const, template } } : {}),
        [isSet ? "workers" : "Worker"]: {
          replicas: count,
          restartPolicy: pick(random, isBatch ? ["Never", "OnFailure"] : ["ExitCode", "Never", "OnFailure"]),
          template,
        },
      },
      runPolicy: {
        // Omitted: limits free what still runs, and other ends keep pods, which end by themselves.
        ...pick(random, [{ cleanPodPolicy: "All" as const }, { cleanPodPolicy: "Running" as const }, {}]),
        ...(isBatch ? {} : { backoffLimit: 3 }),
        ...(at % 5 === 4 && !isBatch ? { restartScope: "GANG" as const } : {}),
        systemBackoffLimit: pick(random, [2, 20]),
        activeDeadlineSeconds: pick(random, [600, 600, 60]),
        schedulingPolicy: {
          minAvailable: min,
          scheduleTimeoutSeconds: 20,
          queue: pick(random, queues),
        },
      },
    },
  };
}

/** Parts of the work, one for each member or more; or a queue of work. */
function batchFields(random: () => number, members: number): JsonObject {
  return pick(random, [
    { completionMode: "Indexed", backoffLimit: 3 },
    { completionMode: "Indexed", completions: members + 2, backoffLimitPerIndex: 1 },
    { completions: members + 1 },
    { backoffLimit: 1 },
  ]);
}

/** Child jobs of one pod each, and a driver that may start before, with or after them. */
function setFields(random: () => number, members: number): JsonObject {
  const child = { parallelism: 1, completions: 1, backoffLimit: pick(random, [0, 1]) };
  const failurePolicy = pick(random, [
    {},
    { maxRestarts: 2 },
    { maxRestarts: 0, rules: [{ action: "RestartJobSetAndIgnoreMaxRestarts", targetReplicatedJobs: ["driver"] }] },
  ]);
  const order = pick(random, [{}, { startupPolicy: { startupPolicyOrder: "InOrder" } }]);
  const dependsOn = Object.keys(order).length > 0 ? [] : pick(random, [[], [{ name: "workers", status: "Ready" }]]);
  return {
    failurePolicy,
    ...order,
    successPolicy: pick(random, [{}, { targetReplicatedJobs: ["driver"] }]),
    replicatedJobs: [
      { name: "workers", replicas: members, template: { spec: child } },
      { name: "driver", dependsOn, template: { spec: child } },
    ],
  };
}

/** Two members of the same size, which succeed after a second. */
function earlyRole(template: JsonObject) {
  const annotations = { "sim.gangway.dev/pull": "100ms", "sim.gangway.dev/run": "1s" };
  return { replicas: 2, template: { ...template, metadata: { annotations } } };
}

/** A job without pods, with the outcomes of its attempts. */
export function randomTask(random: () => number, at: number): SentJob {
  const ends = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(random, TASK_ENDS));
  return {
    namespace: "default",
    name: `task-${at}-${Math.floor(random() * 1e6)}`,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: SERVICE_KIND,
      replicaSpecs: {},
      runPolicy: {
        backoffLimit: 3,
        systemBackoffLimit: 1 + Math.floor(random() * 6),
        activeDeadlineSeconds: 200,
        schedulingPolicy: { queue: pick(random, ["default", "small"]) },
      },
      kindSpec: { ends, runMs: pick(random, [0, 1_000, 10_000]), givesBack: random() < 0.5 },
    },
  };
}

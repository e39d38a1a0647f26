/** The common API of Kubeflow's operators: labels, policies, conditions and status, as a job of Gangway has them. */
import { create } from "@bufbuild/protobuf";
import { recordOf, toProtoJob } from "../../src/api/job/convert-job.ts";
import { defaultSpec } from "../../src/core/job/request/defaults.ts";
import type { SentRunPolicy } from "../../src/core/job/request/sent.ts";
import { CLEAN_POD_POLICIES } from "../../src/core/job/spec.ts";
import { fromManifest } from "../../src/core/kinds/manifest/from-manifest.ts";
import { isRetried } from "../../src/core/reconcile/count-failures.ts";
import { JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import { arrayAt, type Json, type JsonObject, objectAt, stringMapAt } from "../../src/runtime/json.ts";
import { names, pytorch, Scene } from "../core/reconcile/scene.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { absent, row, walk } from "./walk.ts";

const kind = OWN_KINDS.kindOf("PyTorchJob")!;

/** The first pod of a job, as it is requested. */
function masterPod(): JsonObject {
  const [pod] = new Scene(pytorch()).step().actions.filter((action) => action.kind === "createPod");
  return pod !== undefined && "manifest" in pod ? pod.manifest : {};
}

const label = (name: string) =>
  stringMapAt(objectAt(masterPod(), "metadata"), "labels")[`training.kubeflow.org/${name}`];

/** A job of two pods of which one has ended: in the API's words. */
function shown(scene: Scene) {
  return create(JobSchema, toProtoJob(recordOf(scene.job), { view: "BASIC", kinds: OWN_KINDS })).status!;
}

const running = (policy: SentRunPolicy = {}) => new Scene(pytorch(policy)).start();

function ended(policy: SentRunPolicy): Scene {
  const scene = running(policy);
  scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
  scene.set("j-master-0", "Succeeded", { exitCode: 0 });
  scene.rest();
  return scene;
}

function restarting(): Scene {
  const scene = running();
  scene.set("j-worker-0", "Failed", { exitCode: 1 });
  scene.step();
  return scene;
}

function failed(): Scene {
  const scene = new Scene(pytorch({}, "Never")).start();
  scene.set("j-worker-0", "Failed", { exitCode: 1 });
  scene.step();
  return scene;
}

const trueConditions = (scene: Scene) =>
  scene.job.status.conditions.filter(({ status }) => status === "True").map(({ type }) => type);

/** The spec of a manifest, with its defaults. */
function specOf(members: { readonly runPolicy?: JsonObject; readonly replica?: JsonObject } = {}) {
  const template = { spec: { containers: [{ name: "pytorch", image: "img" }] } };
  const { runPolicy = {}, replica = {} } = members;
  const spec = { runPolicy, pytorchReplicaSpecs: { Worker: { template, ...replica } } };
  const read = fromManifest(
    { apiVersion: "kubeflow.org/v1", kind: "PyTorchJob", metadata: { name: "j" }, spec },
    OWN_KINDS,
  );
  if (read.kind === "refused") return read.errors;
  return defaultSpec(read.manifest.spec, { kind, labels: {}, namespaceQueue: null, priorityClass: null });
}

function policyOf(runPolicy: JsonObject) {
  const spec = specOf({ runPolicy });
  return "runPolicy" in spec ? spec.runPolicy : spec;
}

function replicaOf(replica: JsonObject) {
  const spec = specOf({ replica });
  return "replicaSpecs" in spec ? spec.replicaSpecs["Worker"] : spec;
}

const USER = {
  code: "ExitCode",
  kind: "USER",
  message: "",
  container: null,
  exitCode: 1,
  permanent: false,
  lost: false,
  cleanup: false,
} as const;
const retried = (policy: "Always" | "OnFailure" | "Never" | "ExitCode") =>
  [1, 127, 128, 255].map((exitCode) => isRetried({ policy, failure: USER, exitCode }));

const schedulingPolicy: JsonObject = {
  minAvailable: 1,
  queue: "q",
  minResources: { cpu: "1" },
  priorityClass: "high",
  scheduleTimeoutSeconds: 60,
};

walk("kubeflow-common", [
  row("ReplicaIndexLabel", "a pod has its index", () => label("replica-index"), "0"),
  row("ReplicaTypeLabel", "a pod has its type in lower case", () => label("replica-type"), "master"),
  row("OperatorNameLabel", "a pod has the name of its operator", () => label("operator-name"), "pytorchjob-controller"),
  row("JobNameLabel", "a pod has the name of its job", () => label("job-name"), "j"),
  row("JobRoleLabel", "the master has its role", () => label("job-role"), "master"),
  ...absent("RegisterDefaults"),
  row("CleanPodPolicy", "a policy is one of three words", () => CLEAN_POD_POLICIES, ["All", "Running", "None"]),
  row("CleanPodPolicyUndefined", "none was written: None", () => policyOf({}), {
    ...(policyOf({ cleanPodPolicy: "None" }) as object),
    cleanPodPolicyAtLimit: "Running",
  }),
  row("CleanPodPolicyAll", "no pod stays", () => ended({ cleanPodPolicy: "All" }).podNames, []),
  row("CleanPodPolicyRunning", "pods that ended stay", () => ended({ cleanPodPolicy: "Running" }).podNames, [
    "j-master-0",
    "j-worker-0",
  ]),
  row("CleanPodPolicyNone", "all pods stay", () => ended({ cleanPodPolicy: "None" }).podNames.length, 3),
  row("ControllerInterface", "a kind is data and pure functions", () => typeof kind.verdict, "function"),
  row("ControllerName", "a kind names its operator", () => kind.operatorName, "pytorchjob-controller"),
  row("GetAPIGroupVersionKind", "a kind has a name and a version", () => [kind.name, kind.apiVersion], [
    "PyTorchJob",
    "kubeflow.org/v1",
  ]),
  row("GetAPIGroupVersion", "a kind has a version", () => kind.apiVersion, "kubeflow.org/v1"),
  ...absent("GetGroupNameLabelValue", "GetJobFromInformerCache", "GetJobFromAPIClient"),
  row("GetPodsForJob", "the pods of the job are those with its labels", () => running().podNames, [
    "j-master-0",
    "j-worker-0",
    "j-worker-1",
  ]),
  row(
    "GetServicesForJob",
    "each pod has a service",
    () => names(new Scene(pytorch()).step(), "createService").length,
    3,
  ),
  row(
    "DeleteJob",
    "a deleted job takes its pods with it",
    () => {
      const scene = running();
      scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
      scene.rest();
      return scene.podNames;
    },
    [],
  ),
  row("UpdateJobStatus", "the status follows the pods", () => running().job.status.phase, "RUNNING"),
  row("UpdateJobStatusInApiServer", "a status that stays the same is not written", () => running().step().record, null),
  row(
    "SetClusterSpec",
    "a kind tells pods of each other",
    () =>
      arrayAt(objectAt({ c: arrayAt(objectAt(masterPod(), "spec"), "containers")[0] as Json }, "c"), "env").some(
        (one) => objectAt({ one }, "one")["name"] === "MASTER_ADDR",
      ),
    true,
  ),
  row("GetDefaultContainerName", "a kind has a default container", () => kind.defaultContainer, "pytorch"),
  row("GetDefaultContainerPortName", "a kind has a port", () => kind.defaultPort?.name, "pytorchjob-port"),
  row(
    "IsMasterRole",
    "the kind says who is the master",
    () => [kind.isMaster({ Master: 1, Worker: 2 }, "Master", 0), kind.isMaster({ Master: 1, Worker: 2 }, "Worker", 0)],
    [true, false],
  ),
  row(
    "ReconcileJobs",
    "a step creates all that is missing",
    () => names(new Scene(pytorch()).step(), "createPod").length,
    3,
  ),
  row(
    "ReconcilePods",
    "a pod that is gone is made again",
    () => {
      const scene = running();
      scene.cluster.things = scene.cluster.things.filter(({ name }) => name !== "j-worker-1");
      return names(scene.step(), "createService").concat(names(scene.step(), "createPod"));
    },
    ["j-worker-1"],
  ),
  row(
    "ReconcileServices",
    "a service that is gone is made again",
    () => {
      const scene = running();
      scene.cluster.things = scene.cluster.things.filter(
        ({ kind: is, name }) => is !== "service" || name !== "j-worker-1",
      );
      return names(scene.step(), "createService");
    },
    ["j-worker-1"],
  ),
  row(
    "JobCondition",
    "a condition has six members",
    () => Object.keys(running().job.status.conditions[0] ?? {}).sort(),
    ["lastTransitionMs", "lastUpdateMs", "message", "reason", "status", "type"],
  ),
  row("JobConditionType", "conditions have Kubeflow's names", () => trueConditions(running()).slice(0, 2), [
    "Created",
    "Running",
  ]),
  row("JobCreated", "an accepted job has it", () => trueConditions(new Scene(pytorch())), ["Created"]),
  row("JobRunning", "a job whose master runs has it", () => trueConditions(running()).includes("Running"), true),
  row(
    "JobRestarting",
    "a job whose pod is made again has it",
    () => trueConditions(restarting()).includes("Restarting"),
    true,
  ),
  row("JobSucceeded", "a job that succeeded has it and Created alone", () => trueConditions(ended({})), [
    "Created",
    "Succeeded",
  ]),
  row("JobFailed", "a job that failed has it and Created alone", () => trueConditions(failed()), ["Created", "Failed"]),
  row(
    "JobStatus",
    "all six members are shown",
    () => {
      const status = shown(ended({}));
      const { conditions, replicaStatuses, acknowledgeTime, startTime, completionTime, lastReconcileTime } = status;
      return [
        conditions.length > 0,
        Object.keys(replicaStatuses),
        ...[acknowledgeTime, startTime, completionTime, lastReconcileTime].map((time) => time !== undefined),
      ];
    },
    [true, ["Master", "Worker"], true, true, true, true],
  ),
  row("ReplicaSpec", "one replica, and the template as it is", () => replicaOf({}), {
    replicas: 1,
    restartPolicy: "OnFailure",
    template: { spec: { containers: [{ name: "pytorch", image: "img" }] } },
  }),
  row(
    "ReplicaStatus",
    "counts, and two forms of one selector",
    () => {
      const {
        $typeName: _one,
        labelSelector,
        ...worker
      } = shown(ended({ cleanPodPolicy: "None" })).replicaStatuses["Worker"]!;
      return { ...worker, labels: { ...labelSelector?.matchLabels } };
    },
    {
      active: 0,
      succeeded: 2,
      failed: 0,
      activeAtEnd: 1,
      succeededParts: "",
      failedParts: "",
      selector:
        "training.kubeflow.org/job-name=j,training.kubeflow.org/operator-name=pytorchjob-controller," +
        "training.kubeflow.org/replica-type=worker",
      labels: {
        "training.kubeflow.org/job-name": "j",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": "worker",
      },
    },
  ),
  row("ReplicaType", "each kind has its own, in any case", () => [kind.roleName("worker"), kind.roleName("MASTER")], [
    "Worker",
    "Master",
  ]),
  row("RestartPolicy", "one of four words", () => replicaOf({ restartPolicy: "Sometimes" }), [
    {
      path: "spec.pytorchReplicaSpecs.Worker.restartPolicy",
      message: 'must be one of Always, OnFailure, Never, ExitCode, not "Sometimes"',
    },
  ]),
  row("RestartPolicyAlways", "every exit code is retried", () => retried("Always"), [true, true, true, true]),
  row("RestartPolicyOnFailure", "every exit code is retried", () => retried("OnFailure"), [true, true, true, true]),
  row("RestartPolicyNever", "no exit code is retried", () => retried("Never"), [false, false, false, false]),
  row("RestartPolicyExitCode", "codes from 128 on are retried", () => retried("ExitCode"), [false, false, true, true]),
  row(
    "RunPolicy",
    "all members are taken",
    () => {
      const taken = { cleanPodPolicy: "All", ttlSecondsAfterFinished: 1, activeDeadlineSeconds: 2, backoffLimit: 3 };
      const policy = policyOf({ ...taken, schedulingPolicy }) as unknown as JsonObject;
      return Object.keys(taken).map((member) => policy[member]);
    },
    ["All", 1, 2, 3],
  ),
  row(
    "SchedulingPolicy",
    "all members are taken",
    () => objectAt(policyOf({ schedulingPolicy }) as unknown as JsonObject, "schedulingPolicy"),
    schedulingPolicy,
  ),
]);

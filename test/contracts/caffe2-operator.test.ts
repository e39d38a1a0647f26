/** The controller of the Caffe2 operator, as a Caffe2Job in the operator's own form runs in Gangway. */
import { defaultSpec } from "../../src/core/job/request/defaults.ts";
import { checkSent } from "../../src/core/kinds/check-sent.ts";
import { fromManifest } from "../../src/core/kinds/manifest/from-manifest.ts";
import { backoffMs } from "../../src/core/reconcile/count-failures.ts";
import type { Action } from "../../src/core/reconcile/decision.ts";
import { claimVerdict } from "../../src/core/reconcile/objects/claim.ts";
import { arrayAt, type JsonObject, objectAt, stringAt, stringMapAt } from "../../src/runtime/json.ts";
import { eventOf } from "../../src/worker/carry-out.ts";
import { Scene } from "../core/reconcile/scene.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { absent, row, walk } from "./walk.ts";

const kind = OWN_KINDS.kindOf("Caffe2Job")!;

/** A manifest of the operator's own examples. */
const MANIFEST: JsonObject = {
  apiVersion: "kubeflow.org/v1alpha1",
  kind: "Caffe2Job",
  metadata: { name: "j" },
  spec: {
    RuntimeID: "1529307087",
    backendSpecs: { backendType: "redis", redisHost: "redis-service", redisPort: 6379 },
    replicaSpecs: {
      replicas: 2,
      template: {
        spec: {
          hostNetwork: true,
          containers: [{ name: "caffe2", image: "kubeflow/caffe2", args: ["--run_id=$(RUN_ID)"] }],
        },
      },
    },
  },
};

function sentOf(manifest: JsonObject) {
  const read = fromManifest(manifest, OWN_KINDS);
  if (read.kind === "refused") throw new Error(JSON.stringify(read.errors));
  return read.manifest.spec;
}

const scene = () => new Scene(sentOf(MANIFEST), "caffe2");

function pod(index: number): JsonObject {
  const pods = scene()
    .step()
    .actions.flatMap((action) => (action.kind === "createPod" ? [action.manifest] : []));
  return pods[index] ?? {};
}

const firstOf = (object: JsonObject, member: string) => objectAt({ first: arrayAt(object, member)[0] ?? {} }, "first");

function env(index: number): Record<string, string> {
  const variables = arrayAt(firstOf(objectAt(pod(index), "spec"), "containers"), "env");
  const own = variables.map((one) => [stringAt(one, "name") ?? "", stringAt(one, "value") ?? ""] as const);
  return Object.fromEntries(own.filter(([name]) => !name.startsWith("GANGWAY_")));
}

const at = { cluster: "c", namespace: "n" };
const made: Action = { ...at, kind: "createPod", anchor: "a", manifest: { metadata: { name: "p" } } };
const service: Action = { ...at, kind: "createService", anchor: "a", manifest: { metadata: { name: "p" } } };
const gone: Action = { ...at, kind: "deletePod", name: "p", uid: "u" };
const refused = { kind: "failed", reason: "Forbidden", message: "no" } as const;
const reason = (action: Action, outcome: { readonly kind: "done" } | typeof refused) =>
  eventOf({ action, outcome })?.reason;

const selector = { app: "j" };
const anchor = { uid: "mine", deleting: false };
const object = (labels: Record<string, string>, controllerUid: string | null) => ({
  name: "p",
  uid: "u",
  labels,
  controllerUid,
  deleting: false,
});
const claims = (of: ReturnType<typeof object>) => claimVerdict(of, { anchor, selector });
const orphan = object(selector, null);
const released = object({ app: "other" }, "mine");

/** Both kinds of objects are claimed by one function. */
const claimed = (what: "Pod" | "Service") => [
  row(
    `${what}ControllerRefManager`,
    "an object with our controller is ours",
    () => claims(object(selector, "mine")),
    "owned",
  ),
  row(
    `New${what}ControllerRefManager`,
    "another's object is left alone",
    () => claims(object(selector, "theirs")),
    "leave",
  ),
  row(`Adopt${what}`, "an orphan with our labels is adopted", () => claims(orphan), "adopt"),
  row(`Claim${what}s`, "each object has one verdict", () => [orphan, released].map(claims), ["adopt", "release"]),
  row(`Release${what}`, "an object without our labels is released", () => claims(released), "release"),
];

walk("caffe2-operator-controller", [
  row("FailedCreatePodReason", "the newer of two names", () => reason(made, refused), "FailedCreatePod"),
  row(
    "SuccessfulCreatePodReason",
    "the newer of two names",
    () => reason(made, { kind: "done" }),
    "SuccessfulCreatePod",
  ),
  row("FailedDeletePodReason", "the newer of two names", () => reason(gone, refused), "FailedDeletePod"),
  row(
    "SuccessfulDeletePodReason",
    "the newer of two names",
    () => reason(gone, { kind: "done" }),
    "SuccessfulDeletePod",
  ),
  row("FailedCreateServiceReason", "the same name", () => reason(service, refused), "FailedCreateService"),
  row(
    "SuccessfulCreateServiceReason",
    "the same name",
    () => reason(service, { kind: "done" }),
    "SuccessfulCreateService",
  ),
  ...absent("ErrVersionOutdated"),
  row("DefaultJobBackOff", "the first wait", () => backoffMs(1), 10_000),
  row("MaxJobBackOff", "the longest wait", () => backoffMs(100), 360_000),
  row(
    "GetPodFromTemplate",
    "a pod is its template with labels and an owner",
    () => [
      objectAt(pod(0), "spec")["hostNetwork"],
      stringMapAt(objectAt(pod(0), "metadata"), "labels")["training.kubeflow.org/replica-type"],
    ],
    [true, "worker"],
  ),
  row(
    "RecheckDeletionTimestamp",
    "an anchor that is being deleted adopts nothing",
    () => claimVerdict(orphan, { anchor: { ...anchor, deleting: true }, selector }),
    "leave",
  ),
  row("BaseControllerRefManager", "labels and owner decide", () => claims(object({}, null)), "leave"),
  row(
    "CanAdopt",
    "an object that is being deleted is not adopted",
    () => claims({ ...orphan, deleting: true }),
    "leave",
  ),
  row("ClaimObject", "adopts, releases, or leaves alone", () => [orphan, released, object({}, null)].map(claims), [
    "adopt",
    "release",
    "leave",
  ]),
  row("Caffe2Config", "each pod has its configuration", () => JSON.parse(env(1)["CAFFE2_CONFIG"] ?? ""), {
    cluster: { worker: ["j-worker-0:2222", "j-worker-1:2222"] },
    task: { type: "worker", index: 1 },
  }),
  row("ClusterSpec", "pods get the variables of the operator", () => ({ ...env(1), CAFFE2_CONFIG: undefined }), {
    CAFFE2_CONFIG: undefined,
    SHARD_ID: "1",
    NUM_SHARDS: "2",
    RUN_ID: "1529307087",
    REDIS_HOST: "redis-service",
    REDIS_PORT: "6379",
    NFS_PATH: "",
  }),
  row(
    "Controller",
    "the operator's manifest is accepted as it is, and runs",
    () => {
      const one = scene();
      const sent = sentOf(MANIFEST);
      defaultSpec(sent, { kind, labels: {}, namespaceQueue: null, priorityClass: null });
      one.start();
      return [checkSent(kind, sent), one.job.status.phase, one.podNames];
    },
    [[], "RUNNING", ["j-worker-0", "j-worker-1"]],
  ),
  ...absent("New"),
  row(
    "Run",
    "the job succeeds when all shards have",
    () => {
      const one = scene().start();
      for (const name of one.podNames) one.set(name, "Succeeded", { exitCode: 0 });
      one.step();
      return one.job.status.phase;
    },
    "SUCCEEDED",
  ),
  ...absent("ControllerConfiguration", "DefaultCaffe2JobControllerConfiguration"),
  ...absent("FakeServiceControl"),
  row(
    "CreateServices",
    "each shard has a service",
    () =>
      scene()
        .step()
        .actions.filter(({ kind: is }) => is === "createService").length,
    2,
  ),
  row(
    "CreateServicesWithControllerRef",
    "the anchor owns it",
    () =>
      scene()
        .step()
        .actions.flatMap((one) => (one.kind === "createService" ? [one.anchor] : [])),
    ["j-admission-1", "j-admission-1"],
  ),
  ...absent("PatchService", "PodControlInterface", "CreatePodsOnNode", "PatchPod"),
  row(
    "CreatePods",
    "each shard has a pod",
    () =>
      scene()
        .step()
        .actions.filter(({ kind: is }) => is === "createPod").length,
    2,
  ),
  row(
    "CreatePodsWithControllerRef",
    "the anchor owns it",
    () =>
      scene()
        .step()
        .actions.flatMap((one) => (one.kind === "createPod" ? [one.anchor] : [])),
    ["j-admission-1", "j-admission-1"],
  ),
  row(
    "DeletePod",
    "a pod is deleted by its uid",
    () => {
      const one = scene().start();
      one.job = { ...one.job, cancel: { reason: "", atMs: one.nowMs } };
      return one.step().actions.flatMap((action) => (action.kind === "deletePod" ? [action.uid !== ""] : []));
    },
    [true, true],
  ),
  ...claimed("Pod"),
  ...absent("RealPodControl", "RealServiceControl", "ServiceControlInterface"),
  ...claimed("Service"),
  row(
    "TaskSpec",
    "a pod knows its own task",
    () => (JSON.parse(env(0)["CAFFE2_CONFIG"] ?? "") as { task: unknown }).task,
    { type: "worker", index: 0 },
  ),
]);

/** How Kubeflow's training operator reconciles pods, function by function, as a step of Gangway does. */
import { LABEL } from "../../src/core/job/labels.ts";
import type { SentSpec } from "../../src/core/job/request/sent.ts";
import type { PodView } from "../../src/core/pods/read/pod-view.ts";
import { arrangeGang, podSlices } from "../../src/core/reconcile/arrange-gang.ts";
import type { Decision } from "../../src/core/reconcile/decision.ts";
import { objectAt } from "../../src/runtime/json.ts";
import { names, pytorch, Scene } from "../core/reconcile/scene.ts";
import { template } from "../core/reconcile/world.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { row, walk } from "./walk.ts";

const kind = OWN_KINDS.kindOf("PyTorchJob")!;
const running = (restartPolicy?: "Never" | "ExitCode") => new Scene(pytorch({}, restartPolicy)).start();
const reasons = ({ record }: Decision) => (record?.events ?? []).map(({ reason }) => reason);
const active = (scene: Scene) => scene.job.status.replicaStatuses["Worker"]?.active;

/** Changes the labels of a pod. */
function relabel(scene: Scene, name: string, labels: Record<string, string>): void {
  const thing = scene.cluster.pods().find((pod) => pod.name === name)!;
  const metadata = objectAt(thing.json, "metadata");
  const changed = { ...metadata, labels: { ...objectAt(metadata, "labels"), ...labels } };
  scene.cluster.change(thing, { json: { ...thing.json, metadata: changed } });
}

/** A worker that ended with this code, under the policy ExitCode. */
function after(exitCode: number): { readonly phase: string; readonly reasons: readonly string[] } {
  const scene = running("ExitCode");
  scene.set("j-worker-0", "Failed", { exitCode });
  const told = reasons(scene.step());
  return { phase: scene.job.status.phase, reasons: told };
}

/** The first step of a job whose templates name what the operator overwrites, or leaves. */
function firstStep(
  members: { readonly restartPolicy?: string; readonly schedulerName?: string },
  gangs = false,
): Decision {
  const made = template("pytorch");
  const replica = { template: { spec: { ...objectAt(made, "spec"), ...members } } };
  const sent: SentSpec = { kind: "PyTorchJob", replicaSpecs: { Master: replica } };
  const scene = new Scene(sent);
  if (gangs) scene.cluster.scheduler = "scheduler-plugins";
  return scene.step();
}

const pod = (index: number | null) => ({ index }) as PodView;

walk("training-operator-pod", [
  row(
    "podTemplateRestartPolicyReason",
    "a template's own restart policy is warned of",
    () => reasons(firstStep({ restartPolicy: "Always" })),
    ["PyTorchJobStarting", "SettedPodTemplateRestartPolicy"],
  ),
  row(
    "exitedWithCodeReason",
    "each exit code is told, 0 too",
    () => {
      const scene = running();
      scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
      return reasons(scene.step());
    },
    ["ExitedWithCode"],
  ),
  row(
    "podTemplateSchedulerNameReason",
    "another scheduler is warned of",
    () => reasons(firstStep({ schedulerName: "mine" }, true)),
    ["PyTorchJobStarting", "SettedPodTemplateSchedulerName"],
  ),
  row("AddPod", "a pod that appears is counted", () => active(running()), 2),
  row(
    "UpdatePod",
    "a pod that runs no more is counted no more",
    () => {
      const scene = running();
      scene.set("j-worker-1", "Pending");
      scene.step();
      return active(scene);
    },
    1,
  ),
  row(
    "DeletePod",
    "a pod that is gone is made again in the same attempt",
    () => {
      const scene = running();
      scene.cluster.things = scene.cluster.things.filter(({ name, kind: is }) => is !== "pod" || name !== "j-worker-1");
      return [names(scene.step(), "createPod"), scene.job.status.attempts.byReplica];
    },
    [["j-worker-1"], {}],
  ),
  row(
    "GetPodsForJob",
    "pods are found by labels and owner",
    () => {
      const scene = running();
      relabel(scene, "j-worker-1", { [LABEL.jobUid]: "another" });
      scene.step();
      return active(scene);
    },
    1,
  ),
  row(
    "FilterPodsForReplicaType",
    "each type has its own pods",
    () => {
      const scene = running();
      const [admission] = scene.job.admissions;
      const { slots } = arrangeGang({ job: scene.job, kind, observed: scene.observe() }, admission!);
      return slots.filter(({ role }) => role === "Worker").map(({ pod: own }) => own?.name);
    },
    ["j-worker-0", "j-worker-1"],
  ),
  row(
    "GetPodSlices",
    "pods are sorted by index, also beyond the number of replicas",
    () =>
      [podSlices([0, 1, 2].map(pod), 4), podSlices([0, 1, 2].map(pod), 1), podSlices([pod(null)], 1)].map((slices) =>
        slices.map((own) => own.length),
      ),
    [[1, 1, 1, 0], [1, 1, 1], [0]],
  ),
  row(
    "ReconcilePods",
    "a missing pod is created, a superfluous one deleted",
    () => {
      const scene = running();
      relabel(scene, "j-worker-1", { [LABEL.replicaIndex]: "5" });
      return names(scene.step(), "deletePod");
    },
    ["j-worker-1"],
  ),
  row("IsRetryableExitCode", "a code from 128 on restarts the pod", () => after(137), {
    phase: "RESTARTING",
    reasons: ["ExitedWithCode", "PyTorchJobRestarting"],
  }),
  row("IsPermanentExitCode", "a code up to 127 ends the job", () => after(1), {
    phase: "FAILED",
    reasons: ["ExitedWithCode", "PyTorchJobFailed"],
  }),
]);

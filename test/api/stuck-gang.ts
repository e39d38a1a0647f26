/** A service with a gang that was admitted, and of which only the master runs. */
import type { TestContext } from "node:test";
import type { JobPods } from "../../src/api/ports.ts";
import type { Job } from "../../src/core/job/job.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import type { PodProblem } from "../../src/core/job/status.ts";
import { type PodView, podView } from "../../src/core/pods/read/pod-view.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { admit } from "../core/reconcile/world.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

export const MESSAGE = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu.";
export const CREATED = "2026-01-01T00:00:00Z";

export const PROBLEM: PodProblem = {
  replicaType: "Worker",
  pods: 2,
  reason: "Unschedulable",
  message: MESSAGE,
  sinceMs: Date.parse(CREATED),
};

/** The master runs; the workers find no node. */
function podsOf({ uid }: Pick<Job, "uid">) {
  const unschedulable = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: MESSAGE };
  const pod = (role: string, index: number, status: object, nodeName = "") =>
    podView({
      metadata: {
        name: `mnist-${role}-${index}`,
        creationTimestamp: CREATED,
        labels: {
          [LABEL.jobUid]: uid,
          [LABEL.admission]: "1",
          [LABEL.attempt]: "1",
          [LABEL.replicaType]: role,
          [LABEL.replicaIndex]: String(index),
        },
      },
      spec: { nodeName },
      status: { ...status },
    });
  const waiting = { phase: "Pending", conditions: [unschedulable] };
  const running = {
    phase: "Running",
    conditions: [{ type: "Ready", status: "True" }],
    containerStatuses: [{ name: "pytorch", ready: true, restartCount: 2, state: { running: {} } }],
  };
  return [pod("worker", 1, waiting), pod("master", 0, running, "gpu-1"), pod("worker", 0, waiting)];
}

/** A gang of three that was admitted. `away`: its cluster does not answer. */
export async function serveStuckGang(t: TestContext, { away = false } = {}) {
  const changes = new Map<string, Partial<PodView>>();
  const asked: Parameters<JobPods["ofJob"]>[0][] = [];
  const pods: JobPods = {
    ofJob: async (of) => {
      asked.push(of);
      return away ? null : podsOf({ uid: of.jobUid }).map((pod) => ({ ...pod, ...changes.get(pod.name) }));
    },
  };
  const fixture = await startFixture(t, { pods });
  await fixture.call(JobService.method.createJob, { job: pytorchJob() });
  const { job } = fixture.store.jobs.get("default/mnist")!;
  const admitted = admit(job, { cluster: "east", nowMs: 1, number: 1 });
  const status = {
    ...admitted.status,
    phase: "STARTING" as const,
    podProblems: { atMs: PROBLEM.sinceMs, problems: [PROBLEM] },
    pods: {
      admission: 1,
      phases: { "Master/0": "RUNNING" as const },
      facts: { "Master/0": { node: "gpu-1", ready: true as const }, "Worker/0": { reason: "Unschedulable" } },
    },
  };
  const put = (changed: Partial<Job>) => fixture.store.put({ ...admitted, status, ...changed });
  put({});
  const change = (pod: string, to: Partial<PodView>) => void changes.set(pod, to);
  return { ...fixture, asked, put, change };
}

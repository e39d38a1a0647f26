import fc from "fast-check";
import type { Job } from "../../src/core/job/job.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import type { Admission, JobStatus } from "../../src/core/job/status.ts";
import { askOf } from "../../src/core/plan/model/ask.ts";
import type { PlannedAdmission } from "../../src/core/plan/model/plan-types.ts";
import { contentHash } from "../../src/runtime/content-hash.ts";
import { OWN_KINDS } from "../support/kinds.ts";

export const NOW = 1_750_000_000_000;
export const FLAVOR = "gpu/h100";

let made = 0;

/** A UUID that is unique within the run and grows, as version 7 does. */
export function nextUid(): string {
  made += 1;
  return `01900000-0000-7000-8000-${made.toString(16).padStart(12, "0")}`;
}

export const NO_STATUS: JobStatus = {
  phase: "WAITING",
  conditions: [
    {
      type: "Created",
      status: "True",
      reason: "PyTorchJobCreated",
      message: "PyTorchJob train is created.",
      lastUpdateMs: NOW,
      lastTransitionMs: NOW,
    },
  ],
  replicaStatuses: {},
  startTimeMs: null,
  completionTimeMs: null,
  waiting: null,
  failure: null,
  attempts: { user: 0, system: 0, byReplica: {}, notBeforeMs: {}, restartsSeen: {} },
  backoff: null,
};

export function newJob(overrides: Partial<Job> & { queue?: string; priority?: number } = {}): Job {
  const { queue = "research", priority = 0, ...rest } = overrides;
  const uid = rest.uid ?? nextUid();
  return {
    uid,
    namespace: "team",
    name: `job-${uid.slice(-6)}`,
    project: "default",
    labels: {},
    annotations: {},
    createdBy: "anonymous",
    createTimeMs: NOW,
    deleteTimeMs: null,
    cancel: null,
    version: 1,
    spec: {
      kind: "PyTorchJob",
      replicaSpecs: {
        Worker: { replicas: 4, restartPolicy: "OnFailure", template: { spec: { containers: [{ name: "pytorch" }] } } },
      },
      runPolicy: {
        cleanPodPolicy: "None",
        ttlSecondsAfterFinished: null,
        activeDeadlineSeconds: null,
        backoffLimit: null,
        systemBackoffLimit: 20,
        restartScope: "REPLICA",
        schedulingPolicy: { minAvailable: 4, queue, scheduleTimeoutSeconds: 600 },
      },
      kindSpec: {},
      priority,
      placement: { clusters: [], clusterSelector: {}, gpuModels: [] },
    },
    status: NO_STATUS,
    admissions: [],
    ...rest,
  };
}

export function sentOf(job: Job): SentJob {
  return {
    namespace: job.namespace,
    name: job.name,
    generateName: "",
    labels: job.labels,
    annotations: job.annotations,
    spec: { kind: job.spec.kind, replicaSpecs: { Worker: { replicas: 4 } }, priority: job.spec.priority },
  };
}

/** A plan that admits a job of four workers, with one GPU each. */
export function plannedFor(job: Job, overrides: Partial<PlannedAdmission> = {}): PlannedAdmission {
  const queue = job.spec.runPolicy.schedulingPolicy.queue;
  return {
    kind: "admit",
    jobUid: job.uid,
    askHash: contentHash(askOf(job, OWN_KINDS)),
    generation: 1,
    admission: 1,
    cluster: "east",
    admissionCounter: 0,
    members: { Worker: 4 },
    flavors: { "nvidia.com/gpu": FLAVOR },
    flavorLabels: { "nvidia.com/gpu": { "gangway.dev/gpu": "h100" } },
    allocations: [{ pool: FLAVOR, amount: 4, project: job.project, namespace: job.namespace, queue }],
    ...overrides,
  };
}

/** Arbitrary values of fields. Keys and texts may hold any character that JSON can. */
const text = fc.string({ unit: "binary", maxLength: 8 });
const map = fc.dictionary(text, text, { maxKeys: 3 });
const ms = fc.integer({ min: 0, max: 4_000_000_000_000 });
const maybeMs = fc.option(ms);
const counts = fc.dictionary(fc.string({ maxLength: 6 }), fc.nat({ max: 1000 }), { maxKeys: 3 });

export const anyStatus: fc.Arbitrary<JobStatus> = fc
  .record({
    phase: fc.constantFrom(
      "WAITING",
      "ADMITTED",
      "STARTING",
      "RUNNING",
      "RESTARTING",
      "SUCCEEDED",
      "FAILED",
      "CANCELLED",
    ),
    conditions: fc.array(
      fc.record({
        type: fc.constantFrom("Created", "Running", "Failed", "PodsReady"),
        status: fc.constantFrom("True", "False"),
        reason: text,
        message: text,
        lastUpdateMs: ms,
        lastTransitionMs: ms,
      }),
      { maxLength: 3 },
    ),
    replicaStatuses: fc.dictionary(
      fc.string({ maxLength: 6 }),
      fc.record({ active: fc.nat(), succeeded: fc.nat(), failed: fc.nat() }),
      { maxKeys: 2 },
    ),
    startTimeMs: maybeMs,
    completionTimeMs: ms,
    waiting: fc.option(fc.record({ reason: text, message: text, sinceMs: ms })),
    failure: fc.option(
      fc.record({
        code: text,
        kind: fc.constantFrom("USER", "SYSTEM"),
        message: text,
        container: fc.option(text),
        exitCode: fc.option(fc.integer({ min: 0, max: 255 })),
      }),
    ),
    attempts: fc.record({
      user: fc.nat(),
      system: fc.nat(),
      byReplica: counts,
      notBeforeMs: counts,
      restartsSeen: counts,
    }),
    backoff: fc.option(fc.record({ undone: fc.nat(), notBeforeMs: ms, lastCluster: text })),
  })
  .map((status) => {
    const terminal = ["SUCCEEDED", "FAILED", "CANCELLED"].includes(status.phase);
    return { ...status, completionTimeMs: terminal ? status.completionTimeMs : null } as JobStatus;
  });

/** Admissions as a job may have them: numbered upwards, at most one live, none that is history. */
export const anyAdmissions: fc.Arbitrary<readonly Admission[]> = fc
  .array(
    fc.record({
      cluster: fc.constantFrom("east", "west", null),
      admitTimeMs: ms,
      members: counts,
      flavors: map,
      flavorLabels: fc.dictionary(text, map, { maxKeys: 2 }),
      state: fc.constantFrom("ended" as const, "undone" as const),
      tokensReleasedMs: maybeMs,
      goneMs: maybeMs,
      belowMinSinceMs: maybeMs,
      last: fc.boolean(),
    }),
    { maxLength: 3 },
  )
  .map((admissions) =>
    admissions.map(({ last, ...admission }, at) => ({
      ...admission,
      number: at + 1,
      state: last && at === admissions.length - 1 ? ("live" as const) : admission.state,
      goneMs: admission.tokensReleasedMs === null ? admission.goneMs : null,
    })),
  );

/** The caps and the lease of a job's allocation: none. */
export const NO_LIMIT = { caps: { project: null, namespace: null }, leaseMs: null } as const;

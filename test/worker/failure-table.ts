/**
 * What may happen to the pod of a replica, and what comes of its job: one table for the simulated kubelet and for a real control plane, so that
 * both are held to the same. Each has its own way to play a row.
 */
import type { RestartPolicy } from "../../src/core/job/spec.ts";
import type { FailureKind } from "../../src/core/job/status.ts";

/** How the first attempt of the first worker fares; what comes after it succeeds. */
export type Row = {
  readonly policy?: RestartPolicy;
  /** Failures that are counted in the end. */
  readonly user?: number;
  readonly system?: number;
  /** How the job fails; absent: it succeeds at last. */
  readonly fails?: { readonly code: string; readonly kind: FailureKind };
  readonly backoffLimit?: number;
  readonly systemBackoffLimit?: number;
  /** A plain job of two workers whose gang is restarted as a whole; otherwise a PyTorchJob of one worker. */
  readonly gang?: boolean;
  readonly interruptible?: boolean;
  /** Containers beside the one that counts: one that is started before it, one that runs along, or one that Kubernetes calls a sidecar. */
  readonly beside?: "init" | "sidecar" | "nativeSidecar";
  /** Pods may be pending for so short that this one fails by it. */
  readonly impatient?: boolean;
};

const USER_LIMIT = { code: "BackoffLimitExceeded", kind: "USER" } as const;
const stuck = (reason: string) => ({ code: `ContainersNotReady|${reason}`, kind: "USER" }) as const;

/** Under the restart policy `ExitCode` where a row names none. */
export const FAILURES = {
  ImagePullBackOff: { user: 1 },
  "ImagePullBackOff of an init container": { user: 1, beside: "init" },
  "CrashLoopBackOff of an init container": { policy: "OnFailure", user: 1, beside: "init" },
  CreateContainerConfigError: { fails: stuck("CreateContainerConfigError") },
  CreateContainerError: { fails: stuck("CreateContainerError") },
  InvalidImageName: { fails: stuck("InvalidImageName") },
  RunContainerError: { system: 1 },
  "pending for too long": { policy: "OnFailure", user: 1, backoffLimit: 1, fails: USER_LIMIT, impatient: true },

  "exit code 1": { fails: { code: "ExitCode", kind: "USER" } },
  "exit code 137": { system: 1 },
  "exit code 143": { user: 1 },
  OOMKilled: { user: 1 },
  "exit code 2 of an init container": { user: 1, beside: "init" },
  "OOMKilled of an init container": { user: 1, beside: "init" },
  "success despite OOMKilled": { user: 1 },
  "success despite OOMKilled of a sidecar": { user: 1, beside: "sidecar" },

  "exit code 1 of one of a gang": { policy: "OnFailure", gang: true, user: 1 },
  "exit code 1 under Never": { policy: "Never", fails: { code: "ExitCode", kind: "USER" } },
  "exit code 137 under Never": { policy: "Never", fails: { code: "Interrupted", kind: "SYSTEM" } },
  "a container restarted once": { policy: "OnFailure", user: 1 },
  "CrashLoopBackOff under OnFailure": { policy: "OnFailure", backoffLimit: 2, user: 2, fails: USER_LIMIT },
  "CrashLoopBackOff under Always": { policy: "Always", backoffLimit: 2, user: 2, fails: USER_LIMIT },

  "the primary container ends well while a sidecar runs": { beside: "sidecar" },
  "the primary container fails while a sidecar runs": {
    beside: "sidecar",
    fails: { code: "Error", kind: "USER" },
  },
  "a sidecar is restarted while the primary container runs": { policy: "Never", beside: "nativeSidecar" },

  "eviction by the node": { system: 1 },
  "eviction by the node under Never": { policy: "Never", system: 1 },
  "eviction by the node that spends the last of the budget": {
    system: 1,
    systemBackoffLimit: 1,
    fails: { code: "SystemBackoffLimitExceeded", kind: "SYSTEM" },
  },
  "node shutdown": { system: 1 },
  "preemption by the node": { system: 1 },
  "a node that refuses the pod": { system: 1 },

  "eviction through the API": { system: 1 },
  "eviction through the API under Never": { policy: "Never", system: 1 },
  "eviction of one of a gang": { gang: true, system: 1 },
  "eviction of an interruptible job": { interruptible: true, system: 1 },
  "preemption by the scheduler": { system: 1 },
  "eviction by a taint": { system: 1 },
  "loss of the node": { system: 1 },
  "collection of one of a gang with its node": { gang: true, system: 1 },
} as const satisfies Record<string, Row>;

export type Failing = keyof typeof FAILURES;

export const FAILING = Object.keys(FAILURES) as readonly Failing[];

export function rowOf(name: Failing): Row {
  return FAILURES[name];
}

/** The name of the row's job. */
export function nameOf(failing: Failing): string {
  return `row-${FAILING.indexOf(failing)}`;
}

/** What the row says of the job in the end, in the words in which a test shows what it found. */
export function expectedEnd(row: Row) {
  const { user = 0, system = 0, fails } = row;
  return {
    phase: fails === undefined ? "SUCCEEDED" : "FAILED",
    failure: fails ?? null,
    attempts: { user, system },
  };
}

/**
 * The failures of a replica's pod, and the end of its job for each. The simulated kubelet and a real control plane
 * share this table, so that both must behave alike. Each plays a row in its own way.
 */
import type { RestartPolicy } from "../../src/core/job/spec.ts";
import type { FailureKind } from "../../src/core/job/status.ts";

/** The failure of the first worker's first attempt. Later attempts succeed. */
export type Row = {
  readonly policy?: RestartPolicy;
  /** The failures that are counted at the end. */
  readonly user?: number;
  readonly system?: number;
  /** How the job fails. Omitted: it succeeds. */
  readonly fails?: { readonly code: string; readonly kind: FailureKind };
  readonly backoffLimit?: number;
  readonly systemBackoffLimit?: number;
  /** A plain job of two workers whose gang is restarted as a whole; otherwise a PyTorchJob of one worker. */
  readonly gang?: boolean;
  readonly interruptible?: boolean;
  /**
   * Containers beside the one that counts: one that is started before it, one that runs along, or one that Kubernetes
   * calls a sidecar.
   */
  readonly beside?: "init" | "sidecar" | "nativeSidecar";
  /** True: the limit for pending pods is so short that this pod fails. */
  readonly impatient?: boolean;
};

const USER_LIMIT = { code: "BackoffLimitExceeded", kind: "USER" } as const;
const stuck = (reason: string) => ({ code: `ContainersNotReady|${reason}`, kind: "USER" }) as const;

/** The rows. A row without a restart policy runs under `ExitCode`. */
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

/** The expected end of the row's job, in the form in which tests report the actual end. */
export function expectedEnd(row: Row) {
  const { user = 0, system = 0, fails } = row;
  return {
    phase: fails === undefined ? "SUCCEEDED" : "FAILED",
    failure: fails ?? null,
    attempts: { user, system },
  };
}

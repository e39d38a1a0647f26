/** What a kind says whose own fields decide what a failure does, and when a job ends. */
import type { JobSpec } from "../job/spec.ts";
import type { MemberEnd } from "../job/status.ts";

/** A failed pod, as the rules of its kind see it. */
export type FailedPod = {
  readonly spec: JobSpec;
  readonly role: string;
  /** The part of the work that the pod did. */
  readonly index: number;
  readonly name: string;
  /** How often this part has failed before, of the failures that count. */
  readonly failures: number;
  /** True: the platform ended the pod, not its program. */
  readonly lost: boolean;
  /** The ends of its containers and init containers. */
  readonly exits: readonly { readonly container: string; readonly exitCode: number }[];
  readonly conditions: readonly { readonly type: string; readonly status: string }[];
};

/** What follows from the failure of a pod. */
export type FailureAction =
  /** The member starts again. `counts`: the failure counts for the limits of the kind. */
  | { readonly kind: "retry"; readonly counts: boolean }
  /** This part of the work has failed for good, and the others go on. */
  | { readonly kind: "endPart" }
  | { readonly kind: "endJob"; readonly code: string; readonly message: string };

/** One member of a gang, as the rules of its kind see it. */
export type MemberState = {
  readonly role: string;
  /** The part of the work that it does. */
  readonly index: number;
  /** True: it has a pod that has neither ended nor is being deleted. */
  readonly active: boolean;
  /** True: that pod runs. */
  readonly running: boolean;
  /** The container restarts of that pod. */
  readonly restarts: number;
};

/** A part of the work that has ended for good. */
export type PartEnd = { readonly role: string; readonly index: number; readonly end: MemberEnd };

/** A gang, as the rules of its kind see it. */
export type GangState = {
  readonly spec: JobSpec;
  /** In the order of replica types, then of members. */
  readonly members: readonly MemberState[];
  /** In the order of replica types, then by index. Ends under earlier admissions too. */
  readonly ends: readonly PartEnd[];
  /** How many failures have counted. */
  readonly failures: number;
};

/** The state of a job by the rules of its kind. Null: it stays as it is. */
export type RuleVerdict =
  | null
  | { readonly kind: "running" }
  | { readonly kind: "succeeded"; readonly message: string }
  /** `code`: CamelCase, the code of the job's failure. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

/** A failure after which a member waits. */
export type RetriedFailure = {
  readonly spec: JobSpec;
  /** Failures of the gang since a part of the work has succeeded. */
  readonly inRow: number;
  /** How often this part of the work has failed, of the failures that count; at least 1. */
  readonly failed: number;
};

/**
 * The rules of a kind, in place of its verdict, the restart policies and the backoff limit of the run policy. The work
 * of a replica type has parts, which its members do: each its own, or one after the other. A part that has ended is not
 * done again under later admissions. Failures of the system count for `systemBackoffLimit`, unless a rule counts them.
 */
export type KindRules = {
  readonly onFailure: (pod: FailedPod) => FailureAction;
  readonly judge: (gang: GangState) => RuleVerdict;
  /** True for members that may start now. Members that may not are not missed. */
  readonly mayStart: (gang: GangState) => (member: MemberState) => boolean;
  readonly retryDelayMs: (failure: RetriedFailure) => number;
  /** How many parts the work of a replica type has. Null: as many as it has members. */
  readonly partsOf: (spec: JobSpec, role: string) => number | null;
};

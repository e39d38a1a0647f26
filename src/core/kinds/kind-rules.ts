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
  /** No part of its group is tried again: `judge` decides what follows from the code and the message. */
  | { readonly kind: "endGroup"; readonly code: string; readonly message: string }
  /** The whole gang starts again, although the failure counts for no limit of the kind. */
  | { readonly kind: "restartGang" };

/** One member of a gang, as the rules of its kind see it. */
export type MemberState = {
  readonly role: string;
  /** The part of the work that it does. */
  readonly index: number;
  /** True: it has a pod that has neither ended nor is being deleted. */
  readonly active: boolean;
  /** True: that pod runs. */
  readonly running: boolean;
  /** True: that pod is ready. */
  readonly ready: boolean;
  /** The labels of the node that the pod is bound to. Null: it is bound to none that is known. */
  readonly nodeLabels: Readonly<Record<string, string>> | null;
  /** The container restarts of that pod. */
  readonly restarts: number;
};

/** A part of the work that has ended for good. */
export type PartEnd = { readonly role: string; readonly index: number; readonly end: MemberEnd };

/** How often a part of the work has failed, of the failures that count. */
export type PartFailures = { readonly role: string; readonly index: number; readonly count: number };

/** A failure after which a group of the work is not tried again. */
export type GroupFailure = {
  readonly role: string;
  /** The part that has failed. */
  readonly index: number;
  readonly code: string;
  readonly message: string;
};

/** A gang, as the rules of its kind see it. */
export type GangState = {
  readonly jobName: string;
  readonly spec: JobSpec;
  readonly nowMs: number;
  /** In the order of replica types, then of members. */
  readonly members: readonly MemberState[];
  /** In the order of replica types, then by index. Ends under earlier admissions too. */
  readonly ends: readonly PartEnd[];
  /** How many failures have counted. */
  readonly failures: number;
  /** How often parts of the work have failed and counted since the gang last restarted as a whole. Omitted: never. */
  readonly partFailures: readonly PartFailures[];
  /** Those of this moment. */
  readonly groupFailures: readonly GroupFailure[];
  /** When the members of a replica type could start under this admission, for kinds that say `startsInOrder`. */
  readonly begunMs: Readonly<Record<string, number>>;
  /** How often the gang has restarted as a whole by a verdict that counts. */
  readonly restarts: number;
};

/** The state of a job by the rules of its kind. Null: it stays as it is. */
export type RuleVerdict =
  | null
  | { readonly kind: "running" }
  /** The whole gang starts again, and nothing of what it has done counts. `counts`: for `restarts`. */
  | { readonly kind: "restart"; readonly counts: boolean; readonly message: string }
  | { readonly kind: "succeeded"; readonly message: string }
  /** `code`: CamelCase, the code of the job's failure. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

/** A failure after which a member waits. */
export type RetriedFailure = {
  readonly spec: JobSpec;
  readonly role: string;
  /** Failures of the gang since a part of the work has succeeded. */
  readonly inRow: number;
  /** How often this part of the work has failed, of the failures that count; at least 1. */
  readonly failed: number;
  /** The same of all parts of its group. */
  readonly failedInGroup: number;
};

/**
 * How the work of a replica type is divided: into groups of equal size, such as the child jobs of a JobSet, each with
 * members of its own, which do its parts. Members and parts are numbered through all groups.
 */
export type Work = {
  readonly groups: number;
  /** Of one group. */
  readonly members: number;
  /** Of one group. */
  readonly parts: number;
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
  readonly workOf: (spec: Pick<JobSpec, "kindSpec" | "replicaSpecs">, role: string) => Work;
  /** True: it is recorded when the members of each replica type could start. Omitted: it is not. */
  readonly startsInOrder?: (spec: JobSpec) => boolean;
  /**
   * True: each admission does the work anew, because what was done is gone with the volumes of the last one. Needs
   * `startsInOrder`. Omitted: what has been done is not done again.
   */
  readonly worksAnew?: (spec: JobSpec) => boolean;
  /** When `judge` may say something else although nothing happens. Null, or omitted: never. */
  readonly recheckAtMs?: (gang: GangState) => number | null;
};

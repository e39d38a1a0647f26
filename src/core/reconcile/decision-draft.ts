import { foreignText } from "../../runtime/foreign-text.ts";
import { canonicalJson } from "../../runtime/json.ts";
import { minOf } from "../../runtime/lists.ts";
import { type ConditionChange, setCondition } from "../job/conditions.ts";
import type { JobEvent } from "../job/event.ts";
import type { Job } from "../job/job.ts";
import type { Placement } from "../job/placement/placement.ts";
import { reasonFor } from "../job/reason-for.ts";
import type { Admission, ConditionType, JobStatus } from "../job/status.ts";
import type { Kind } from "../kinds/kind.ts";
import type { Registry } from "../kinds/registry.ts";
import type { BuildConfig } from "../pods/build/build-config.ts";
import type { PendingLimits } from "../pods/read/read-pending.ts";
import type { Action, Decision } from "./decision.ts";
import type { Observed } from "./observed.ts";

/** How long a requested change may take until the watch of its cluster shows it. */
export const OUTSTANDING_MS = 5_000;

/** The settings of an installation that every decision uses. */
export type ReconcileConfig = {
  readonly kinds: Registry;
  readonly build: BuildConfig;
  /** How long pods may be stuck before they start. Omitted: `PENDING_LIMITS`. */
  readonly pending?: PendingLimits;
  /** Gangs that move leave a lost cluster after so much silence. Omitted: `MOVE_AFTER_MS`. */
  readonly moveAfterMs?: number;
};

/** What a decision reads beside the record, the objects and the time. */
export type BesideRecord = {
  /**
   * An object that an API server has refused to create. The worker remembers it until it is recorded. Null or omitted:
   * none is known.
   */
  readonly refused?: RefusedCreate | null;
  /** The planned nodes of the live admission. Null or omitted: none are planned. */
  readonly placement?: Placement | null;
};

/** The inputs of a decision. */
export type Inputs = Required<BesideRecord> & {
  readonly job: Job;
  readonly kind: Kind;
  readonly observed: Observed;
  readonly nowMs: number;
  readonly config: ReconcileConfig;
};

/** An object that an API server has refused to create. */
export type RefusedCreate = {
  readonly admission: number;
  readonly name: string;
  /** The attempt of a pod. 0 for other objects. */
  readonly attempt: number;
  /** As events say it: `FailedCreatePod`, `FailedCreateService`, … */
  readonly reason: string;
  readonly message: string;
  /** The code of the job's failure, if the server would always refuse the pod. Null: a retry may succeed. */
  readonly code: string | null;
  /** What has to change before the cluster takes the object. Omitted: a retry may succeed. */
  readonly remedy?: string;
};

/** A decision in the making. It starts as a copy of the record, and each rule changes it in turn. */
export type Draft = {
  status: JobStatus;
  admissions: readonly Admission[];
  deleteTimeMs: number | null;
  readonly events: JobEvent[];
  readonly actions: Action[];
  /** Times to look again; the earliest one counts. */
  readonly recheckAtMs: number[];
  /** True once this decision ends or undoes the live admission. Its tokens are then released by a later record. */
  stopped: boolean;
};

export function startDraft(job: Job): Draft {
  const { status, admissions, deleteTimeMs } = job;
  return { status, admissions, deleteTimeMs, events: [], actions: [], recheckAtMs: [], stopped: false };
}

/** The finished decision. It has no record if the job stays as it was: the time of this step alone is not recorded. */
export function finishDraft(draft: Draft, job: Job, nowMs: number): Decision {
  const next = { status: withShortTexts(draft.status), admissions: draft.admissions, deleteTimeMs: draft.deleteTimeMs };
  const before = { status: job.status, admissions: job.admissions, deleteTimeMs: job.deleteTimeMs };
  const changed = canonicalJson(next) !== canonicalJson(before);
  return {
    record: changed
      ? { ...next, status: { ...next.status, lastReconcileMs: nowMs }, events: draft.events.map(short) }
      : null,
    forget: false,
    actions: draft.actions,
    recheckAtMs: draft.recheckAtMs.length === 0 ? null : minOf(draft.recheckAtMs),
  };
}

/** Messages are made of the words of clusters and plugins, and each of these may be as long as all may be together. */
function withShortTexts(status: JobStatus): JobStatus {
  const { failure, waiting } = status;
  return { ...status, failure: failure && short(failure), ...(waiting && { waiting: short(waiting) }) };
}

function short<T extends { readonly message: string }>(said: T): T {
  return { ...said, message: foreignText(said.message) };
}

/** Sets a condition of the draft. Returns true if that changed it. */
export function changeCondition(draft: Draft, change: ConditionChange, nowMs: number): boolean {
  const conditions = setCondition(draft.status.conditions, change, nowMs);
  if (conditions === draft.status.conditions) return false;
  draft.status = { ...draft.status, conditions };
  return true;
}

/** Sets those of the conditions to False that are True. A condition that was never set stays unset. */
export function clearConditions(
  draft: Draft,
  cleared: { readonly types: readonly ConditionType[]; readonly reason: string; readonly message: string },
  nowMs: number,
): void {
  for (const { type, status } of draft.status.conditions) {
    if (!cleared.types.includes(type) || status === "False") continue;
    changeCondition(draft, { type, status: "False", reason: cleared.reason, message: cleared.message }, nowMs);
  }
}

/** Replaces the admission of that number in the draft. */
export function changeAdmission(draft: Draft, changed: Admission): void {
  draft.admissions = draft.admissions.map((one) => (one.number === changed.number ? changed : one));
}

/** The name of a condition's reason or of an event: `PyTorchJobRunning`. */
export function reasonOf(job: Job, what: string): string {
  return reasonFor(job.spec.kind, what);
}

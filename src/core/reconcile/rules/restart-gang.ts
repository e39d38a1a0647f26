/**
 * Restarts a gang as a whole by the rules of its kind. It serves users of JobSets, whose failure policy starts all
 * child jobs again: those that have succeeded too.
 */
import { maxOf } from "../../../runtime/lists.ts";
import type { Admission, GangAdmission } from "../../job/status.ts";
import { attemptOf, type Slot } from "../arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs, reasonOf } from "../decision-draft.ts";
import type { SlotFailure } from "../member-ends.ts";
import { gangState } from "./kind-rules.ts";

type Restarting = {
  readonly admission: GangAdmission;
  readonly slots: readonly Slot[];
  readonly failures: readonly SlotFailure[];
};

/**
 * Raises the attempt of every member, and forgets what has been done and how often it has failed. Runs after the
 * failures of the pass were counted. Null: the gang does not restart.
 */
export function restartByRules(draft: Draft, inputs: Inputs, of: Restarting): GangAdmission | null {
  const { job, kind, nowMs } = inputs;
  const { admission, slots, failures } = of;
  const { rules } = kind;
  if (rules === undefined) return null;
  const { attempts, ends: _done, ...status } = draft.status;
  const verdict = rules.judge(gangState(slots, { rules, job, admission, nowMs, attempts, failures }));
  const bySystem = failures.find(({ action }) => action?.kind === "restartGang");
  if (verdict?.kind !== "restart" && bySystem === undefined) return null;
  const { parts: _parts, failures: _failures, inRow: _inRow, restarts, ...rest } = attempts;
  const attempt = maxOf(slots.map(({ key }) => attemptOf(attempts, key))) + 1;
  const counts = verdict?.kind === "restart" && verdict.counts;
  draft.status = {
    ...status,
    attempts: {
      ...rest,
      byReplica: { ...rest.byReplica, ...Object.fromEntries(slots.map(({ key }) => [key, attempt])) },
      notBeforeMs: {},
      restarts: { all: (restarts?.all ?? 0) + 1, counted: (restarts?.counted ?? 0) + Number(counts), attempt },
    },
  };
  const why = verdict?.kind === "restart" ? verdict.message : (bySystem?.failure.message ?? "");
  const message = `${job.spec.kind} ${job.name} is restarting as a whole: ${why}.`;
  draft.events.push({ type: "Warning", reason: reasonOf(job, "Restarting"), message });
  const { ended: _ended, lastEndMs: _last, begunMs: _begun, ...anew } = admission;
  changeAdmission(draft, anew);
  return anew;
}

/**
 * The job without what was done under earlier admissions, at the first step of an admission whose kind does all work
 * anew. Members start with their first parts again.
 */
export function withoutLostWork(draft: Draft, inputs: Inputs, live: Pick<Admission, "begunMs">): Inputs {
  const { job, kind } = inputs;
  if (live.begunMs !== undefined || kind.rules?.worksAnew?.(job.spec) !== true) return inputs;
  const { ends: _gone, attempts, ...status } = draft.status;
  const { parts: _parts, failures: _failures, inRow: _inRow, ...rest } = attempts;
  draft.status = { ...status, attempts: rest };
  return { ...inputs, job: { ...job, status: draft.status } };
}

import type { JobEvent } from "../../../core/job/event.ts";
import type { Job } from "../../../core/job/job.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import type { RecordOutcome } from "../../../core/reconcile/decision.ts";
import { GroupCommit } from "../../../runtime/group-commit.ts";
import { maxOf } from "../../../runtime/lists.ts";
import type { Db } from "../db/db.ts";
import { appendEvents } from "./append.ts";
import { moveRechecks, type Recheck } from "./due-jobs.ts";
import { jobsForSteps, type StepJob } from "./load-job.ts";
import { type DecidedStep, recordSteps } from "./record-steps.ts";

/** The most steps that share a statement or a transaction. A job that is read may be a megabyte. */
const STEPS_MAX = 64;
/** More steps than ever run at a time. */
const STEPS_WAITING_MAX = 10_000;

/** Events of a job that change nothing else. */
type Note = { readonly job: Job; readonly events: readonly JobEvent[]; readonly nowMs: number };

/** Lets the steps of many jobs share statements and transactions. An error of one is not that of the others. */
export function stepGroups(db: Db, kinds: Registry) {
  const bounds = { groupMax: STEPS_MAX, waitingMax: STEPS_WAITING_MAX, apart: true };
  return {
    loads: new GroupCommit<string, StepJob | null>({
      ...bounds,
      what: "reads of jobs",
      run: (uids) => jobsForSteps(db, uids),
    }),
    records: new GroupCommit<DecidedStep & { readonly nowMs: number }, RecordOutcome>({
      ...bounds,
      what: "records of steps",
      run: (steps) => recordSteps(db, steps, { nowMs: maxOf(steps.map(({ nowMs }) => nowMs)), kinds }),
    }),
    notes: new GroupCommit<Note, undefined>({
      ...bounds,
      what: "events of steps",
      run: async (notes) => {
        const nowMs = maxOf(notes.map((note) => note.nowMs));
        await appendEvents(
          db,
          notes.flatMap(({ job, events }) => events.map((event) => ({ job, event }))),
          nowMs,
        );
        return notes.map(() => undefined);
      },
    }),
    rechecks: new GroupCommit<Recheck, undefined>({
      ...bounds,
      what: "times to look again",
      run: async (rechecks) => {
        await moveRechecks(db, rechecks);
        return rechecks.map(() => undefined);
      },
    }),
  };
}

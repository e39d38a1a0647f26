import type { FieldNote, SentJob } from "../core/job/sent.ts";
import type { WantedChange } from "../core/kinds/change-job.ts";
import { type Changed, change } from "./change.ts";
import { Collector } from "./collector.ts";
import { cancel, remove, type Which } from "./end.ts";
import type { CancelOutcome, IntakePorts } from "./ports.ts";
import { check, type Submission, type Submitted } from "./submit.ts";
import { type BatchSubmitted, submitAll } from "./submit-all.ts";

/** The way in for jobs: whoever serves an API asks it, and what it acknowledges is durable. */
export type Intake = {
  readonly submit: (submission: Submission) => Promise<Submitted>;
  /** Many jobs, each on its own, in the order in which they are given. */
  readonly submitAll: (submissions: readonly Submission[]) => Promise<readonly BatchSubmitted[]>;
  /** Everything that is wrong with a job; with `strict`, everything odd too. Nothing changes. */
  readonly check: (sent: SentJob) => Promise<readonly FieldNote[]>;
  readonly change: (which: Which, wanted: WantedChange) => Promise<Changed>;
  readonly cancel: (which: Which, reason: string) => Promise<CancelOutcome>;
  readonly remove: (which: Which) => Promise<CancelOutcome>;
};

export function createIntake(ports: IntakePorts): Intake {
  const collector = new Collector(ports);
  return {
    submit: (submission) => collector.submit(submission),
    submitAll: (submissions) => submitAll(ports, submissions),
    check: (sent) => check(ports, sent),
    change: (which, wanted) => change(ports, which, wanted),
    cancel: (which, reason) => cancel(ports, which, reason),
    remove: (which) => remove(ports, which),
  };
}

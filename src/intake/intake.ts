import type { FieldNote, SentJob } from "../core/job/sent.ts";
import { cancel, remove, type Which } from "./end.ts";
import type { CancelOutcome, IntakePorts } from "./ports.ts";
import { check, type Submission, type Submitted, submit } from "./submit.ts";

/** The way in for jobs: whoever serves an API asks it, and what it acknowledges is durable. */
export type Intake = {
  readonly submit: (submission: Submission) => Promise<Submitted>;
  /** Everything that is wrong with a job; with `strict`, everything odd too. Nothing changes. */
  readonly check: (sent: SentJob) => Promise<readonly FieldNote[]>;
  readonly cancel: (which: Which, reason: string) => Promise<CancelOutcome>;
  readonly remove: (which: Which) => Promise<CancelOutcome>;
};

export function createIntake(ports: IntakePorts): Intake {
  return {
    submit: (submission) => submit(ports, submission),
    check: (sent) => check(ports, sent),
    cancel: (which, reason) => cancel(ports, which, reason),
    remove: (which) => remove(ports, which),
  };
}

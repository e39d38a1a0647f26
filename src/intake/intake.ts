import { cancel, remove, type Which } from "./end.ts";
import type { CancelOutcome, IntakePorts } from "./ports.ts";
import { type Submission, type Submitted, submit } from "./submit.ts";

/** The way in for jobs: whoever serves an API asks it, and what it acknowledges is durable. */
export type Intake = {
  readonly submit: (submission: Submission) => Promise<Submitted>;
  readonly cancel: (which: Which, reason: string) => Promise<CancelOutcome>;
  readonly remove: (which: Which) => Promise<CancelOutcome>;
};

export function createIntake(ports: IntakePorts): Intake {
  return {
    submit: (submission) => submit(ports, submission),
    cancel: (which, reason) => cancel(ports, which, reason),
    remove: (which) => remove(ports, which),
  };
}

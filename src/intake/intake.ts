import type {
  BatchSubmitOutcome,
  EndOutcome,
  JobName,
  MadeJob,
  Submission,
  SubmitOutcome,
  UpdateOutcome,
} from "../core/job/request/requests.ts";
import type { FieldNote } from "../core/job/request/sent.ts";
import type { AskedChange } from "../core/kinds/change-job.ts";
import type { ForeseenSubmission } from "../core/plan/model/simulation.ts";
import { GroupCommit } from "../runtime/group-commit.ts";
import { servedCall } from "../runtime/served-call.ts";
import { cancel, change, remove } from "./change.ts";
import { TemplateJudge } from "./judged-templates.ts";
import type { IntakePorts } from "./ports.ts";
import { check, make } from "./submit.ts";
import { GROUP_MAX, submitAll } from "./submit-all.ts";

/**
 * How many submissions of one job wait for the database: twenty full transactions, which take some seconds. A client
 * that came later would time out, and each waiting job holds memory. It is answered UNAVAILABLE and retries.
 */
export const SUBMISSIONS_WAITING_MAX = 20 * GROUP_MAX;

/** Validates jobs and makes them durable. Everything that it acknowledges is durable. */
export type Intake = {
  readonly submit: (submission: ForeseenSubmission) => Promise<SubmitOutcome>;
  /** Submits many jobs, each independent of the others. Answers in the order of the submissions. */
  readonly submitAll: (submissions: readonly ForeseenSubmission[]) => Promise<readonly BatchSubmitOutcome[]>;
  /** Returns everything that is wrong with a job, warnings included. Changes nothing. */
  readonly check: (submission: Pick<Submission, "job" | "queueAccess">) => Promise<readonly FieldNote[]>;
  /** Returns the job that a submission would create, whatever other jobs there are. Changes nothing. */
  readonly make: (submission: Submission) => Promise<MadeJob>;
  readonly change: (job: JobName, wanted: AskedChange) => Promise<UpdateOutcome>;
  readonly cancel: (job: JobName, reason: string) => Promise<EndOutcome>;
  readonly remove: (job: JobName) => Promise<EndOutcome>;
};

export function createIntake(given: IntakePorts): Intake {
  const ports = { ...given, templateJudge: new TemplateJudge() };
  const submissions = new GroupCommit<ForeseenSubmission, BatchSubmitOutcome>({
    what: "submissions",
    groupMax: GROUP_MAX,
    waitingMax: SUBMISSIONS_WAITING_MAX,
    run: (group) => submitAll(ports, group),
  });
  return {
    submit: async (submission) => {
      const outcome = await submissions.ask({ ...submission, call: servedCall() });
      if (outcome.kind === "failed") throw outcome.error;
      return outcome;
    },
    submitAll: (submissions) => submitAll(ports, submissions),
    check: (submission) => check(ports, submission),
    make: (submission) => make(ports, submission),
    change: (job, wanted) => change(ports, job, wanted),
    cancel: (job, reason) => cancel(ports, job, reason),
    remove: (job) => remove(ports, job),
  };
}

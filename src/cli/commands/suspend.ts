import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import type { JobRef } from "../jobs/job-name.ts";
import { addJobSelection, changeJobs, type JobSelectionOptions, selectJobs } from "../jobs/select-jobs.ts";
import { partialSpec, updateJob } from "../jobs/update-job.ts";
import { NOT_ENDED } from "../output/job-words.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";

/** `gangway suspend` and `gangway resume`. */
export function registerSuspendAndResume(registrar: Registrar): void {
  registerSuspendChange(registrar, "suspend", {
    suspend: true,
    verb: "suspended",
    description: "Take jobs off their clusters and out of their queues until they are resumed",
  });
  registerSuspendChange(registrar, "resume", {
    suspend: false,
    verb: "resumed",
    description: "Return suspended jobs to their queues, and retry jobs that are set aside",
  });
}

/** True for a job whose steps have stopped workers. */
function isSetAside({ status }: Job): boolean {
  return status?.conditions.some(({ type, status }) => type === "SetAside" && status === "True") ?? false;
}

type SuspendChange = {
  readonly suspend: boolean;
  readonly verb: string;
  readonly description: string;
};

function registerSuspendChange(registrar: Registrar, name: string, change: SuspendChange): void {
  const command = addJobSelection(registrar.program.command(name))
    .description(change.description)
    .addHelpText("after", examples(`gangway ${name} llama-pretrain`, `gangway ${name} --queue research --yes`));
  onRun<JobSelectionOptions>(registrar, command, async (run, args, options) => {
    const changes = (job: Job) =>
      (job.spec?.runPolicy?.suspend ?? false) !== change.suspend || (!change.suspend && isSetAside(job));
    const jobs = await selectJobs(run, args, { options, verb: name, phases: NOT_ENDED, changes });
    const spec = partialSpec({ runPolicy: { suspend: change.suspend } });
    const changeOne = (job: JobRef) => updateJob(run, job, change.verb, { spec, paths: ["spec.run_policy.suspend"] });
    return changeJobs(run, jobs, { change: changeOne, done: change.verb });
  });
}

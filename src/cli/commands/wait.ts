import { Option } from "commander";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { getJobsByName } from "../jobs/job-name.ts";
import {
  addJobNamesOrFilter,
  type JobSelectionOptions,
  listSelected,
  refuseNone,
  selectionGiven,
} from "../jobs/select-jobs.ts";
import { waitForDeletion } from "../jobs/wait-for-deletion.ts";
import { waitForEnd } from "../jobs/wait-for-end.ts";
import { parseGoal, type WaitGoal, waitForPhase } from "../jobs/wait-for-phase.ts";
import { qualifiedName } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { timeoutOption } from "../shell/options.ts";

type WaitOptions = JobSelectionOptions & { timeout?: number; for?: WaitGoal };

export function registerWait(registrar: Registrar): void {
  const command = addJobNamesOrFilter(registrar.program.command("wait"))
    .summary("Wait until jobs have ended")
    .description(
      "Wait until jobs have ended, and print each change.\n" +
        "Exit status: 0 if all jobs succeeded, 1 if one did not, 124 after the timeout.",
    )
    .addOption(
      new Option(
        "--for <goal>",
        "a phase, condition=PHASE, delete, or jsonpath={.status.phase}=PHASE (default: the end)",
      ).argParser(parseGoal),
    )
    .addOption(timeoutOption())
    .addHelpText(
      "after",
      examples(
        "gangway wait llama-pretrain bert-finetune --timeout 1h",
        "gangway wait -l sweep=lr",
        "gangway wait --for=condition=running llama-pretrain",
      ),
    );
  onRun<WaitOptions>(registrar, command, async (run, args, options) => {
    const selection = await selectionGiven(run, args, { options, verb: "wait for" });
    const jobs =
      selection === null
        ? await getJobsByName(run, args, JobView.FULL)
        : await listSelected(run, { ...selection, view: JobView.FULL }, []);
    if (selection !== null && jobs.length === 0) refuseNone(run, selection);
    return waitForGoal(run, jobs, options);
  });
}

/** Waits for the goal of --for; without it, for the end of the jobs. */
function waitForGoal(run: Run, jobs: readonly Job[], { timeout, for: goal }: WaitOptions): Promise<number> {
  const bounds = { timeoutMs: timeout ?? null, report: (line: string) => run.deps.stdoutAsIs(`${line}\n`) };
  if (goal?.kind === "phase" && jobs.length > 0) return waitForPhase(run, jobs, { ...bounds, phase: goal.phase });
  if (goal?.kind !== "deletion") return waitForEnd(run, jobs, bounds);
  const onDeleted = (job: Job) => printLines(run, [`${qualifiedName(job)} deleted`]);
  if (jobs.length === 0) return Promise.resolve(EXIT.ok);
  return waitForDeletion(run, jobs, { timeoutMs: bounds.timeoutMs, onDeleted });
}

import type { Command } from "commander";
import type { Job, JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import type { JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { CallError } from "../rpc/call-error.ts";
import type { Run } from "../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";
import { addJobFilterOptions, hasFilter, type JobFilterOptions, withKind } from "./job-filter.ts";
import { checkedJobs, JOBS_ARGUMENT, type JobRef, jobArguments, refOf } from "./job-name.ts";
import { listJobs } from "./list-jobs.ts";

/** The options by which a command that acts on jobs selects them. */
export type JobSelectionOptions = JobFilterOptions & {
  readonly all?: boolean;
  readonly yes?: boolean;
  readonly ignoreNotFound?: boolean;
};

/** A verb and the jobs that it can change. Omitted: all. */
type Selection = {
  readonly options: JobSelectionOptions;
  readonly verb: string;
  readonly phases?: readonly JobPhase[];
  readonly changes?: (job: Job) => boolean;
};

/** The jobs of a command line. `isSelection`: options select them. */
export type SelectedJobs = { readonly refs: readonly JobRef[]; readonly isSelection: boolean };

/** A selection changes at most this many jobs: more would not end in the patience of a caller. */
const SELECTED_MAX = 100_000;
/** Names that a question shows. */
const NAMES_SHOWN_MAX = 10;

/** Adds the argument and the options of commands that change several jobs, by name or by properties. */
export function addJobSelection(command: Command): Command {
  return addJobNamesOrFilter(command).option(
    "--yes",
    "change the selected jobs; without it, only show how many there are",
  );
}

/** The same for a command that changes nothing, which needs no --yes. */
export function addJobNamesOrFilter(command: Command): Command {
  command.argument("[name...]", `${JOBS_ARGUMENT}; or select jobs with the options`);
  return addJobFilterOptions(command)
    .option("--all", "all jobs of the namespace; with -A, of all namespaces")
    .option("--ignore-not-found", "succeed also if a job does not exist, or if no job is selected");
}

/**
 * Returns the jobs that the command line names or selects, after checking every argument. Refuses a selection without
 * --yes, with the number of its jobs, and one that no job passes. Without --phase it selects jobs in `phases`, those
 * that the verb can change, and of these the ones that it `changes`.
 */
export async function selectJobs(
  run: Run,
  args: readonly string[],
  { options: given, verb, phases = [], changes = () => true }: Selection,
): Promise<SelectedJobs> {
  const options = await selectionGiven(run, args, { options: given, verb });
  const ignoresMissing = given.ignoreNotFound === true;
  if (options === null) return { refs: await checkedJobs(run, args, { ignoresMissing }), isSelection: false };
  const jobs = (await listSelected(run, options, phases)).filter(changes);
  if (jobs.length === 0) await explainNone(run, options, verb);
  if (jobs.length > 0 && options.yes !== true) {
    throw usageFailure(`this would ${verb} ${countText(jobs.length)}: ${shownNames(jobs)}; add --yes to do it`);
  }
  return { refs: jobs.map(refOf), isSelection: true };
}

/**
 * The options that select the jobs of a command line, with the kind of an argument that is a kind alone. Null: the
 * arguments name the jobs. Refuses both, and neither.
 */
export async function selectionGiven<O extends JobSelectionOptions>(
  run: Pick<Run, "deps">,
  args: readonly string[],
  { options, verb }: { readonly options: O; readonly verb: string },
): Promise<O | null> {
  const { kindWord, jobs } = await jobArguments(run, args, { kindAlone: true });
  const isSelection = hasFilter(options) || options.all === true;
  const selects = "select jobs with -l, --queue, --phase, … or --all";
  if (jobs.length > 0 && isSelection) {
    throw usageFailure("give either names of jobs or options that select jobs, not both");
  }
  if (jobs.length > 0) return null;
  // Alone, the word may be the name of a job.
  if (!isSelection && kindWord !== null) return null;
  if (!isSelection) throw usageFailure(`give the names of the jobs to ${verb}, or ${selects}`);
  return withKind(options, kindWord);
}

/** Refuses a selection that no job passes. Only says it if jobs pass, and the verb has nothing to do for them. */
async function explainNone(run: Run, options: JobSelectionOptions, verb: string): Promise<void> {
  const { total } = await listJobs(run, { ...options, limit: 1 });
  if (total === 0) refuseNone(run, options);
  else run.deps.stderr(`nothing to ${verb}: ${countText(total)} selected, and none that this would change\n`);
}

/** Refuses a selection that no job passes, unless the options say otherwise. */
export function refuseNone(run: Run, { ignoreNotFound, allNamespaces }: JobSelectionOptions): void {
  if (ignoreNotFound === true) {
    run.deps.stderr("no jobs\n");
    return;
  }
  const where = allNamespaces === true ? "any namespace" : `namespace ${run.namespace}`;
  const line = `error: no job of ${where} passes the selection; --ignore-not-found makes this no error`;
  throw new CommandFailure(EXIT.refused, [line]);
}

/** The jobs that options select, in `phases` unless --phase says which. */
export async function listSelected(
  run: Run,
  options: JobFilterOptions & { readonly view?: JobView },
  phases: readonly JobPhase[],
): Promise<readonly Job[]> {
  const { jobs, isCut } = await listJobs(run, { ...options, limit: SELECTED_MAX }, phases);
  if (isCut) throw usageFailure(`more than ${SELECTED_MAX} jobs are selected; select fewer at once`);
  return jobs;
}

function shownNames(jobs: readonly Job[]): string {
  const shown = jobs.slice(0, NAMES_SHOWN_MAX).map(({ metadata }) => metadata?.name ?? "");
  const others = jobs.length - shown.length;
  return shown.join(", ") + (others > 0 ? ` and ${others} more` : "");
}

/** `1 job`, `3 jobs`. */
export function countText(count: number): string {
  return count === 1 ? "1 job" : `${count} jobs`;
}

/**
 * Changes each job, and continues after a refused one. Prints the number of jobs if they were selected, with the word
 * `done`; null: the caller does. Returns the exit status: that of a refusal if one was refused.
 */
export async function changeJobs(
  run: Run,
  { refs, isSelection }: SelectedJobs,
  { change, done }: { change: (job: JobRef) => Promise<void>; done: string | null },
): Promise<number> {
  let changed = 0;
  for (const job of refs) {
    try {
      await change(job);
      changed += 1;
    } catch (error) {
      const failure = await refusalOf(error, run.client.address);
      run.deps.stderr(`${failure.lines.join("\n")}\n`);
    }
  }
  if (isSelection && refs.length > 0 && done !== null) run.deps.stderr(`${countText(changed)} ${done}\n`);
  return changed === refs.length ? EXIT.ok : EXIT.refused;
}

/** Throws an error that is not about one job, such as an unavailable service. */
async function refusalOf(error: unknown, address: string): Promise<CommandFailure> {
  const failure = error instanceof CallError ? await explained(error, address) : error;
  if (failure instanceof CommandFailure && failure.exitCode === EXIT.refused) return failure;
  throw error;
}

/** Only a failure needs the words of a failure. */
async function explained(error: CallError, address: string): Promise<CommandFailure> {
  const { rpcFailure } = await import("../rpc/rpc-failure.ts");
  return rpcFailure(error, address);
}

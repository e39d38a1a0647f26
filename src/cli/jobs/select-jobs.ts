import type { Command } from "commander";
import type { Job, JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import type { JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { CommandFailure, EXIT, usageFailure } from "../exit.ts";
import { splitCommas } from "../options.ts";
import { CallError } from "../rpc/call-error.ts";
import type { Run } from "../run-command.ts";
import { addJobFilterOptions, hasFilter, type JobFilterOptions } from "./job-filter.ts";
import { resolveJobName } from "./job-name.ts";
import { listJobs } from "./list-jobs.ts";

/** A job of a command line. */
export type JobRef = { readonly namespace: string; readonly name: string };

/** The options by which a command that changes jobs selects them. */
export type JobSelectionOptions = JobFilterOptions & { readonly all?: boolean; readonly yes?: boolean };

/** A verb and the jobs that it can change. Omitted: all. */
type Selection = {
  readonly options: JobSelectionOptions;
  readonly verb: string;
  readonly phases?: readonly JobPhase[];
  readonly changes?: (job: Job) => boolean;
};

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
  command.argument("[name...]", "names of jobs, as NAME or KIND/NAME; or select jobs with the options");
  return addJobFilterOptions(command).option("--all", "all jobs of the namespace; with -A, of all namespaces");
}

/** The names in job arguments, which may be lists with commas. */
export function splitNames(args: readonly string[]): readonly string[] {
  return args.flatMap(splitCommas);
}

/**
 * Returns the jobs that the command line names or selects. Refuses a selection without --yes, with the number of its
 * jobs. Without --phase it selects jobs in `phases`, those that the verb can change, and of these the ones that it
 * `changes`.
 */
export async function selectJobs(
  run: Run,
  args: readonly string[],
  { options, verb, phases = [], changes = () => true }: Selection,
): Promise<readonly JobRef[]> {
  const names = namesGiven(args, options, verb);
  if (names.length > 0) return namedJobs(run, names);
  const jobs = (await listSelected(run, options, phases)).filter(changes);
  if (jobs.length === 0) run.deps.stderr("no jobs\n");
  if (jobs.length > 0 && options.yes !== true) {
    throw usageFailure(`this would ${verb} ${countText(jobs.length)}: ${shownNames(jobs)}; add --yes to do it`);
  }
  return jobs.map(({ metadata }) => ({ namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" }));
}

/** The names of a command line; none if options select the jobs. Refuses both, and neither. */
export function namesGiven(args: readonly string[], options: JobSelectionOptions, verb: string): readonly string[] {
  const names = splitNames(args);
  const isSelection = hasFilter(options) || options.all === true;
  if (names.length > 0 && isSelection) {
    throw usageFailure("give either names of jobs or options that select jobs, not both");
  }
  if (names.length === 0 && !isSelection) {
    throw usageFailure(`give the names of the jobs to ${verb}, or select jobs with -l, --queue, --phase, … or --all`);
  }
  return names;
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

/** Resolves every name before the first job is changed. */
async function namedJobs(run: Run, names: readonly string[]): Promise<readonly JobRef[]> {
  const jobs: JobRef[] = [];
  for (const argument of names) {
    jobs.push({ namespace: run.namespace, name: await resolveJobName(run, argument) });
  }
  return jobs;
}

function shownNames(jobs: readonly Job[]): string {
  const shown = jobs.slice(0, NAMES_SHOWN_MAX).map(({ metadata }) => metadata?.name ?? "");
  const others = jobs.length - shown.length;
  return shown.join(", ") + (others > 0 ? ` and ${others} more` : "");
}

function countText(count: number): string {
  return count === 1 ? "1 job" : `${count} jobs`;
}

/**
 * Changes each job, and continues after a refused one. Prints the number of jobs if they were selected. Returns the
 * exit status: that of a refusal if one was refused.
 */
export async function changeJobs(
  run: Run,
  jobs: readonly JobRef[],
  { change, done, isSelection }: { change: (job: JobRef) => Promise<void>; done: string; isSelection: boolean },
): Promise<number> {
  let changed = 0;
  for (const job of jobs) {
    try {
      await change(job);
      changed += 1;
    } catch (error) {
      const failure = await refusalOf(error, run.client.address);
      run.deps.stderr(`${failure.lines.join("\n")}\n`);
    }
  }
  if (isSelection && jobs.length > 0) run.deps.stderr(`${countText(changed)} ${done}\n`);
  return changed === jobs.length ? EXIT.ok : EXIT.refused;
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

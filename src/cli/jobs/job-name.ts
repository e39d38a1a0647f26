/** The jobs that arguments name: `llama`, `pytorchjob/llama`, or a kind and then names, as in `pytorchjob llama`. */
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { append } from "../../runtime/lists.ts";
import { CallError, isNotFound, STATUS } from "../rpc/call-error.ts";
import type { Run } from "../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";
import { splitCommas } from "../shell/options.ts";
import { anyKind, isAnyKind, isWordFor, kindHelp, localKind } from "./kind-words.ts";

/** A job of a command line. */
export type JobRef = { readonly namespace: string; readonly name: string };

export function refOf({ metadata }: Pick<Job, "metadata">): JobRef {
  return { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" };
}

/** How commands describe such an argument. */
export const JOB_ARGUMENT = "name of the job, as NAME, KIND/NAME or KIND NAME";
export const JOBS_ARGUMENT = "names of jobs, as NAME, KIND/NAME or KIND NAME";

/** The arguments of a command line, taken apart. */
export type JobArguments = {
  /** The kind before the names, as it was written. Null: none. */
  readonly kindWord: string | null;
  readonly jobs: readonly JobArgument[];
};

/** `kindWord`: as it was written. Null: a job of any kind. */
export type JobArgument = { readonly name: string; readonly kindWord: string | null };

/**
 * Takes arguments apart, of which each may be a list with commas. A kind of this program or `job` may stand before
 * names, or alone if it then selects jobs. Refuses an argument that is not understood.
 */
export async function jobArguments(
  run: Pick<Run, "deps">,
  args: readonly string[],
  { kindAlone = false }: { readonly kindAlone?: boolean } = {},
): Promise<JobArguments> {
  const words = args.flatMap(splitCommas);
  const [first = "", ...names] = words;
  const isKind =
    (names.length > 0 || kindAlone) && !first.includes("/") && (isAnyKind(first) || (await isLocal(run, first)));
  return isKind ? ofKind(first, names) : { kindWord: null, jobs: [...new Set(words)].map(parseJob) };
}

/** The job that these arguments name; with a kind, after checking that the job is of this kind. */
export async function resolveJobName(run: Run, args: readonly string[]): Promise<string> {
  const job = await oneJob(run, args);
  if (job.kindWord !== null) await getJob(run, job, JobView.BASIC);
  return job.name;
}

/** The jobs that these arguments name; those with a kind after checking it. */
export async function resolveJobNames(run: Run, args: readonly string[]): Promise<readonly JobRef[]> {
  const { jobs } = await jobArguments(run, args);
  for (const job of jobs) if (job.kindWord !== null) await getJob(run, job, JobView.BASIC);
  return jobs.map(({ name }) => ({ namespace: run.namespace, name }));
}

/** Gets the one job that these arguments name. */
export async function getJobByName(run: Run, args: readonly string[], view: JobView): Promise<Job> {
  return getJob(run, await oneJob(run, args), view);
}

/** Gets the jobs that these arguments name, in their order. */
export async function getJobsByName(run: Run, args: readonly string[], view: JobView): Promise<readonly Job[]> {
  const { jobs } = await jobArguments(run, args);
  const found: Job[] = [];
  for (const job of jobs) found.push(await getJob(run, job, view));
  return found;
}

/**
 * Checks every argument of a command that changes jobs, before the first change: each must name a job. Otherwise throws
 * one failure that has all reasons. `ignoresMissing`: leaves out jobs that do not exist.
 */
export async function checkedJobs(
  run: Run,
  args: readonly string[],
  { ignoresMissing }: { readonly ignoresMissing: boolean },
): Promise<readonly JobRef[]> {
  const given = await jobArguments(run, args);
  const errors = given.kindWord === null ? [] : await errorsOfKind(run, given.kindWord);
  const refs: JobRef[] = [];
  for (const job of given.jobs) {
    const failure = await failureOf(run, job);
    if (failure === null) refs.push({ namespace: run.namespace, name: job.name });
    else if (!ignoresMissing || !isNotFound(failure)) append(errors, await linesOf(run, failure));
  }
  append(errors, await hintOfKind(run, given, refs));
  if (errors.length === 0) return refs;
  throw new CommandFailure(EXIT.refused, given.jobs.length > 1 ? [...errors, "nothing was changed"] : errors);
}

async function isLocal(run: Pick<Run, "deps">, word: string): Promise<boolean> {
  return (await localKind(run, word)) !== null;
}

function ofKind(kindWord: string, names: readonly string[]): JobArguments {
  const wrong = names.find((name) => name.includes("/"));
  if (wrong !== undefined)
    throw usageFailure(`after the kind ${kindWord}, give names of jobs without a kind, not ${wrong}`);
  return {
    kindWord,
    jobs: [...new Set(names)].map((name) => ({ name, kindWord: isAnyKind(kindWord) ? null : kindWord })),
  };
}

function parseJob(argument: string): JobArgument {
  const [name = "", kindWord = null, ...more] = argument.split("/").reverse();
  if (name === "" || kindWord === "" || more.length > 0)
    throw usageFailure(`a job must be NAME or KIND/NAME, not ${argument}`);
  return { name, kindWord: kindWord === null || isAnyKind(kindWord) ? null : kindWord };
}

async function oneJob(run: Run, args: readonly string[]): Promise<JobArgument> {
  const { jobs } = await jobArguments(run, args);
  const [job, second] = jobs;
  if (job !== undefined && second === undefined) return job;
  // A plugin of the service may have this kind.
  const [kindWord = "", name = "", ...more] = args;
  const isServed = args.length === 2 && more.length === 0 && (await anyKind(run, kindWord)) !== null;
  if (isServed) return { kindWord, name };
  throw usageFailure(`give one job, as NAME, KIND/NAME or KIND NAME, not ${args.join(" ")}`);
}

/** Refuses a job of another kind than the argument's. */
async function getJob(run: Run, { name, kindWord }: JobArgument, view: JobView): Promise<Job> {
  const { job } = await run.client.call(JobService.method.getJob, { namespace: run.namespace, name, view });
  if (job === undefined) throw new Error("the service returned no job");
  const kind = job.spec?.kind ?? "";
  if (kindWord === null || isWordFor(kindWord, kind)) return job;
  const known = await anyKind(run, kindWord);
  const help = known === null ? `; ${kindWord} is no kind: ${await kindHelp(run, kindWord)}` : "";
  throw new CommandFailure(EXIT.refused, [`error: there is no ${kindWord}/${name}: ${name} is a ${kind}${help}`]);
}

/** Null: the job exists, and is of the kind that was given. A caller that may not see jobs learns it by the change. */
async function failureOf(run: Run, job: JobArgument): Promise<CallError | CommandFailure | null> {
  try {
    await getJob(run, job, JobView.BASIC);
    return null;
  } catch (error) {
    if (error instanceof CallError && error.code === STATUS.PERMISSION_DENIED && job.kindWord === null) return null;
    if (error instanceof CommandFailure) return error;
    if (isNotFound(error)) return error;
    throw error;
  }
}

async function linesOf(run: Run, failure: CallError | CommandFailure): Promise<readonly string[]> {
  if (failure instanceof CommandFailure) return failure.lines;
  const { rpcFailure } = await import("../rpc/rpc-failure.ts");
  return rpcFailure(failure, run.client.address).lines;
}

/** The word before the names may also be the name of a job: a list with the error, or without one. */
async function errorsOfKind(run: Run, word: string): Promise<string[]> {
  if ((await failureOf(run, { name: word, kindWord: null })) !== null) return [];
  return [`error: ${word} is a kind here, and the name of a job, too: for the job, write job/${word}`];
}

/** Help for a first argument that names no job: it may be meant as a kind. */
async function hintOfKind(run: Run, { kindWord, jobs }: JobArguments, found: readonly JobRef[]) {
  const [first, second] = jobs;
  if (kindWord !== null || first === undefined) return [];
  if (first.kindWord !== null || found.some(({ name }) => name === first.name)) return [];
  const kind = isAnyKind(first.name) ? first.name : await anyKind(run, first.name);
  if (kind !== null && second === undefined) return [`${first.name} is a kind: give names of jobs after it`];
  if (second === undefined) return [];
  if (kind !== null) return [`${first.name} is a kind: write ${first.name}/NAME for each job`];
  const help = await kindHelp(run, first.name);
  return help.startsWith("did you mean") ? [`${first.name} names no job, and is no kind: ${help}`] : [];
}

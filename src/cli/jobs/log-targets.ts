/** The logs that a command line means: those of jobs, of pods, or of the process with a global rank. */
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { isNotFound } from "../rpc/call-error.ts";
import type { Run } from "../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";
import { getJobByName, getJobsByName, type JobRef, jobArguments, refOf } from "./job-name.ts";
import { type JobSelectionOptions, listSelected, refuseNone, selectionGiven } from "./select-jobs.ts";

/** The logs of a job. `replica` is one of them or a type; empty: all. `orPod`: the name may be that of a pod. */
export type NamedLog = JobRef & { readonly replica: string; readonly orPod?: boolean };

type TargetOptions = JobSelectionOptions & { readonly replica?: string; readonly rank?: number };

/** More jobs than a person reads at once, and fewer than would take all places of followers. */
const JOBS_MAX = 50;

/** The logs of the jobs or pods that arguments name, or of the jobs that options select. */
export async function logTargets(
  run: Run,
  args: readonly string[],
  options: TargetOptions,
): Promise<readonly NamedLog[]> {
  const selection = await selectionGiven(run, args.map(withoutPod), { options, verb: "show" });
  const targets = selection === null ? await namedTargets(run, args, options) : await selected(run, selection, options);
  if (targets.length > JOBS_MAX)
    throw usageFailure(`these are the logs of ${targets.length} jobs; select at most ${JOBS_MAX} at once`);
  return targets;
}

async function selected(run: Run, selection: TargetOptions, options: TargetOptions): Promise<readonly NamedLog[]> {
  const jobs = await listSelected(run, { ...selection, view: JobView.FULL }, []);
  if (jobs.length === 0) refuseNone(run, selection);
  return jobs.map((job) => targetOf(job, options));
}

async function namedTargets(run: Run, args: readonly string[], options: TargetOptions): Promise<readonly NamedLog[]> {
  const { jobs, kindWord } = await jobArguments(run, args.map(withoutPod));
  if (kindWord !== null) return (await getJobsByName(run, args, JobView.FULL)).map((job) => targetOf(job, options));
  const targets: NamedLog[] = [];
  for (const { name, kindWord: kind } of jobs) {
    // The call for the log itself says whether the job exists: its caller may have the permission for logs alone.
    if (kind === null && options.rank === undefined)
      targets.push({
        namespace: run.namespace,
        name,
        replica: options.replica ?? "",
        orPod: options.replica === undefined,
      });
    else
      targets.push(
        targetOf(await getJobByName(run, [kind === null ? name : `${kind}/${name}`], JobView.FULL), options),
      );
  }
  return targets;
}

/** Pods are called JOB-TYPE-INDEX, and those of a type with one replica may be called JOB-TYPE. Null: it is no pod. */
export async function podTarget(run: Run, pod: string): Promise<NamedLog | null> {
  for (const pattern of [/^(.+)-([a-z0-9]+)-(\d+)$/, /^(.+)-([a-z0-9]+)$/]) {
    const [, name = "", type = "", index = "0"] = pattern.exec(pod) ?? [];
    if (name === "") continue;
    const job = await getJobByName(run, [name], JobView.BASIC).catch((error: unknown) => {
      if (isNotFound(error)) return null;
      throw error;
    });
    const role = Object.keys(job?.spec?.replicaSpecs ?? {}).find((one) => one.toLowerCase() === type);
    if (job !== null && role !== undefined) return { ...refOf(job), replica: `${role}/${index}` };
  }
  return null;
}

function targetOf(job: Job, { replica = "", rank }: TargetOptions): NamedLog {
  return { ...refOf(job), replica: rank === undefined ? replica : replicaOfRank(job, rank) };
}

/** `kubectl logs pod/NAME` is habit. */
function withoutPod(argument: string): string {
  return argument.replace(/^pods?\//, "");
}

/** Types whose processes have ranks, in their order. The others only help them. */
const RANKED: readonly string[] = ["Master", "Chief", "Worker"];

/** The replica that has the process with this global rank: each replica has several processes, and theirs follow. */
export function replicaOfRank({ metadata, spec }: Job, rank: number): string {
  const perReplica = processesOf(spec?.kindSpec ?? {}, spec?.replicaSpecs ?? {});
  let node = Math.floor(rank / perReplica);
  const ranked = RANKED.filter((role) => spec?.replicaSpecs[role] !== undefined);
  for (const role of ranked) {
    const replicas = spec?.replicaSpecs[role]?.replicas ?? 1;
    if (node < replicas) return `${role}/${node}`;
    node -= replicas;
  }
  const nodes = ranked.reduce((sum, role) => sum + (spec?.replicaSpecs[role]?.replicas ?? 1), 0);
  const name = metadata?.name ?? "";
  if (nodes === 0) {
    throw new CommandFailure(EXIT.refused, [`error: the replicas of ${name} have no ranks; use --replica TYPE/INDEX`]);
  }
  const most = nodes * perReplica - 1;
  throw usageFailure(`--rank must be at most ${most}: ${name} has ${nodes} replicas with ${perReplica} processes each`);
}

type Specs = NonNullable<Job["spec"]>["replicaSpecs"];

/** The number that the manifest says; with `gpu` or `auto`, the GPUs of a replica. */
function processesOf(kindSpec: Readonly<Record<string, unknown>>, replicaSpecs: Specs): number {
  const { nprocPerNode, slotsPerWorker, elasticPolicy } = kindSpec;
  const elastic = (elasticPolicy as { nProcPerNode?: unknown } | undefined)?.nProcPerNode;
  const said = Number(nprocPerNode ?? slotsPerWorker ?? elastic ?? Number.NaN);
  if (Number.isInteger(said) && said > 0) return said;
  if (nprocPerNode !== "gpu" && nprocPerNode !== "auto") return 1;
  return Math.max(1, gpusOf(replicaSpecs));
}

function gpusOf(replicaSpecs: Specs): number {
  const template = (replicaSpecs["Worker"] ?? replicaSpecs["Master"])?.template as PodTemplate | undefined;
  const limits = template?.spec?.containers?.[0]?.resources?.limits ?? {};
  const [, gpus = 0] = Object.entries(limits).find(([name]) => name.endsWith("/gpu")) ?? [];
  return Number(gpus) || 0;
}

type PodTemplate = {
  readonly spec?: {
    readonly containers?: readonly { readonly resources?: { readonly limits?: Readonly<Record<string, unknown>> } }[];
  };
};

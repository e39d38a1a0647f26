import { JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import { JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { getJobByName, JOB_ARGUMENT, type JobRef, refOf, resolveJobName } from "../jobs/job-name.ts";
import { type MaskedUpdate, partialSpec, updateJob } from "../jobs/update-job.ts";
import { waitForPhase } from "../jobs/wait-for-phase.ts";
import { CallError } from "../rpc/call-error.ts";
import { detailsOf, reasonOf } from "../rpc/rpc-failure.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";

export function registerScale(registrar: Registrar): void {
  const command = registrar.program
    .command("scale")
    .summary("Change the number of replicas of a job")
    .description(
      "Change the number of replicas of a job. While the job is admitted, this works only if its kind is elastic; " +
        "with --restart for every kind.",
    )
    .argument("<name>", JOB_ARGUMENT)
    .argument("<type=replicas...>", "replica types with their new numbers, e.g. Worker=8")
    .option(
      "--restart",
      "if the number cannot change while the job is admitted: suspend the job, scale it, and resume it",
    )
    .addHelpText(
      "after",
      examples("gangway scale llama-pretrain Worker=8", "gangway scale bert-finetune Worker=4 --restart"),
    );
  onRun<{ readonly restart?: boolean }>(registrar, command, async (run, args, { restart = false }) => {
    // A kind may stand before the name: the first pair begins the replicas.
    const at = args.findIndex((word) => word.includes("="));
    const [names, pairs] = at < 0 ? [args.slice(0, 1), args.slice(1)] : [args.slice(0, at), args.slice(at)];
    const replicaSpecs = Object.fromEntries(pairs.map(parseReplicas));
    const job = { namespace: run.namespace, name: await resolveJobName(run, names) };
    const update = { spec: partialSpec({ replicaSpecs }), paths: [REPLICAS_PATH] };
    try {
      await updateJob(run, job, "scaled", update);
    } catch (error) {
      if (!restart || !isFixedSize(error)) throw error;
      await restartWith(run, job, replicaSpecs);
    }
    return EXIT.ok;
  });
}

const REPLICAS_PATH = "spec.replica_specs.*.replicas";
const SUSPEND_PATH = "spec.run_policy.suspend";

type ReplicaCounts = Record<string, { replicas: number }>;

function suspension(suspend: boolean): MaskedUpdate {
  return { spec: partialSpec({ runPolicy: { suspend } }), paths: [SUSPEND_PATH] };
}

/** True if the job is admitted, and its kind cannot change the number until it is not. */
function isFixedSize(error: unknown): boolean {
  return error instanceof CallError && reasonOf(detailsOf(error)) === "JOB_SIZE_FIXED";
}

/**
 * Suspends a job, waits until its admission is undone, and gives it the new numbers as it resumes. If the service
 * refuses these, the job is resumed as it was.
 */
async function restartWith(run: Run, ref: JobRef, replicaSpecs: ReplicaCounts): Promise<void> {
  await updateJob(run, ref, "suspended", suspension(true));
  const job = await getJobByName(run, [ref.name], JobView.BASIC);
  const wait = { phase: JobPhase.SUSPENDED, timeoutMs: null, report: () => undefined };
  const ended = await waitForPhase(run, [job], wait).catch((error: unknown) => {
    throw interrupted(error, ref.name);
  });
  if (ended !== EXIT.ok) throw new CommandFailure(EXIT.refused, [`error: ${ref.name} ended before it was suspended`]);
  const { spec } = suspension(false);
  const restart = { spec: partialSpec({ ...spec, replicaSpecs }), paths: [REPLICAS_PATH, SUSPEND_PATH] };
  try {
    await updateJob(run, refOf(job), "scaled and resumed", restart);
  } catch (error) {
    if (error instanceof CallError && reasonOf(detailsOf(error)) !== "") {
      await updateJob(run, ref, "resumed as it was", suspension(false));
    }
    throw error;
  }
}

/** The failure of a restart that stops half-way, with what is left to do. */
function interrupted(error: unknown, name: string): unknown {
  if (!(error instanceof CommandFailure)) return error;
  const lines = [
    `error: interrupted: ${name} is suspended, and not scaled yet`,
    `  Give the same command again, then "gangway resume ${name}"; or resume it as it was.`,
  ];
  return new CommandFailure(error.exitCode, lines);
}

function parseReplicas(pair: string): [string, { replicas: number }] {
  const [, role = "", count = ""] = /^([^=]+)=(\d{1,9})$/.exec(pair) ?? [];
  if (role === "") throw usageFailure(`replicas must be TYPE=NUMBER, e.g. Worker=8, not ${pair}`);
  return [role, { replicas: Number(count) }];
}

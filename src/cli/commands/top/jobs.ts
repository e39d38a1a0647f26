import { create } from "@bufbuild/protobuf";
import { InvalidArgumentError, Option } from "commander";
import { type Job, JobPhase } from "../../../gen/gangway/v1/job_pb.ts";
import { JobView, ListJobsResponseSchema } from "../../../gen/gangway/v1/job_service_pb.ts";
import { compareText } from "../../../runtime/compare-text.ts";
import { addJobFilterOptions, type JobFilterOptions } from "../../jobs/job-filter.ts";
import { listJobs } from "../../jobs/list-jobs.ts";
import { ageCell, clusterCell, heldText, parsePhase, qualifiedName } from "../../output/job-text.ts";
import { queueOf } from "../../output/job-words.ts";
import { printResponse } from "../../output/print.ts";
import type { Column } from "../../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../../run/run-command.ts";
import { EXIT, usageFailure } from "../../shell/exit.ts";
import { isTable, limitOption, noHeadersOption, type OutputFormat, outputOption } from "../../shell/options.ts";
import { noteReserved } from "./reserved.ts";

type TopJobsOptions = JobFilterOptions & {
  readonly sortBy?: string;
  readonly limit: number;
  readonly output: OutputFormat;
};

/** The phases in which a job has pods that may run. */
const RUNNING: readonly JobPhase[] = [JobPhase.ADMITTED, JobPhase.STARTING, JobPhase.RUNNING, JobPhase.RESTARTING];

export function registerTopJobs(registrar: Registrar): void {
  const command = addJobFilterOptions(registrar.program.command("jobs"))
    .alias("job")
    .summary("Show running jobs by the GPUs that they hold")
    .description(
      "Show running jobs by the GPUs that they hold, those with the most first. What a job holds is reserved for it; " +
        "how much it uses is not measured.",
    )
    .addOption(
      new Option(
        "--sort-by <column>",
        "gpus, age, name, priority, queue, cluster, flavor or pods (default: gpus)",
      ).argParser(parseSortBy),
    )
    .addOption(limitOption())
    .addOption(noHeadersOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway top jobs", "gangway top jobs -A --sort-by age", "gangway top jobs --queue nlp --no-headers"),
    );
  onRun<TopJobsOptions>(registrar, command, async (run, _args, options) => showJobs(run, options));
}

/** The orders of the service, by words. */
const SERVED: Readonly<Record<string, string>> = {
  gpus: "held desc",
  held: "held desc",
  age: "create_time",
  name: "name",
  priority: "priority desc",
};

type Sorted = { readonly compare: (one: Job, other: Job) => number };

/** The orders that this program makes, of the jobs that hold the most. */
const LOCAL: Readonly<Record<string, Sorted>> = {
  queue: { compare: (one, other) => compareText(queueOf(one), queueOf(other)) },
  cluster: { compare: (one, other) => compareText(clusterCell(one), clusterCell(other)) },
  flavor: { compare: (one, other) => compareText(flavorsOf(one), flavorsOf(other)) },
  pods: { compare: (one, other) => activeOf(other) - activeOf(one) },
};

function parseSortBy(text: string): string {
  const word = text.replace(/^\{?\.?(metadata\.)?/, "").replace(/\}$/, "");
  if (Object.hasOwn(SERVED, word) || Object.hasOwn(LOCAL, word)) return word;
  throw new InvalidArgumentError(`Allowed are ${[...Object.keys(SERVED), ...Object.keys(LOCAL)].join(", ")}.`);
}

async function showJobs(run: Run, options: TopJobsOptions): Promise<number> {
  const { sortBy = "gpus", limit, output, phase = [] } = options;
  const wrong = phase.find((one) => !RUNNING.includes(parsePhase(one)));
  if (wrong !== undefined)
    throw usageFailure(`--phase ${wrong}: only admitted, starting, running and restarting jobs hold GPUs`);
  const view = isTable(output) || output === "name" ? JobView.BASIC : JobView.FULL;
  const listed = await listJobs(run, { ...options, orderBy: SERVED[sortBy] ?? "held desc", view }, RUNNING);
  const jobs = Object.hasOwn(LOCAL, sortBy) ? listed.jobs.toSorted(LOCAL[sortBy]?.compare) : listed.jobs;
  const columns = COLUMNS.filter(({ title }) => title !== "NAMESPACE" || options.allNamespaces === true);
  const nowMs = run.deps.clock.nowMs();
  printResponse(run, output, {
    schema: ListJobsResponseSchema,
    message: create(ListJobsResponseSchema, { jobs, totalEstimate: listed.total }),
    names: jobs.map(qualifiedName),
    columns,
    rows: jobs.map((job) => columns.map(({ cell }) => cell(job, nowMs))),
    none: "no running jobs",
  });
  if (listed.isCut)
    run.deps.stderr(`only the first ${limit} of ${listed.total} jobs are shown; use --limit to see more\n`);
  noteReserved(run, output, jobs.length);
  return EXIT.ok;
}

type TopColumn = Column & { readonly cell: (job: Job, nowMs: number) => string };

const COLUMNS: readonly TopColumn[] = [
  { title: "NAMESPACE", cell: ({ metadata }) => metadata?.namespace ?? "" },
  { title: "NAME", cell: ({ metadata }) => metadata?.name ?? "" },
  { title: "GPUS", align: "right", cell: (job) => String(heldOf(job)) },
  { title: "FLAVOR", cell: flavorsOf },
  { title: "PODS", align: "right", cell: (job) => `${activeOf(job)}/${job.status?.totalReplicas ?? 0}` },
  { title: "AGE", align: "right", cell: ({ metadata }, nowMs) => ageCell(metadata?.createTime, nowMs) },
  { title: "CLUSTER", drop: 2, cell: clusterCell },
  { title: "BY", drop: 1, cell: ({ metadata }) => metadata?.createdBy ?? "" },
  { title: "QUEUE", cell: queueOf },
];

function heldOf({ status }: Job): bigint {
  return (status?.admission?.tokens ?? []).reduce((sum, { amount }) => sum + amount, 0n);
}

/** `gpu/h100`, or `6 gpu/a100, 2 gpu/h100` if there are several. */
function flavorsOf({ status }: Job): string {
  return heldText(status?.admission?.tokens ?? []);
}

/** How many of its pods run. */
function activeOf({ status }: Job): number {
  return Object.values(status?.replicaStatuses ?? {}).reduce((sum, { active }) => sum + active, 0);
}

import { create } from "@bufbuild/protobuf";
import type { JobPod } from "../../gen/gangway/v1/job_pb.ts";
import {
  JobService,
  type ListJobPodsResponse,
  ListJobPodsResponseSchema,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { addJobFilterOptions, hasFilter, type JobFilterOptions } from "../jobs/job-filter.ts";
import { JOBS_ARGUMENT, type JobRef, refOf, resolveJobName, resolveJobNames } from "../jobs/job-name.ts";
import { podTarget } from "../jobs/log-targets.ts";
import { listSelected } from "../jobs/select-jobs.ts";
import { streamJobs } from "../jobs/stream-jobs.ts";
import { ageCell } from "../output/job-text.ts";
import { NOT_ENDED, podSentence } from "../output/job-words.ts";
import { printPainted, printResponse, tableWidth } from "../output/print.ts";
import { type Column, columnsOfWatch, renderTable } from "../output/table.ts";
import { isNotFound } from "../rpc/call-error.ts";
import { pagesUpTo } from "../rpc/pages.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { isTable, noHeadersOption, type OutputFormat, outputOption } from "../shell/options.ts";

/** The service allows no larger page. */
const PAGE_SIZE = 1_000;

type PodsOptions = JobFilterOptions & { readonly output: OutputFormat; readonly watch?: boolean };

export function registerPods(registrar: Registrar): void {
  const command = addJobFilterOptions(registrar.program.command("pods"))
    .alias("pod")
    .summary("Show the pods of jobs")
    .description(
      "Show the pods of jobs: where each runs, how often it was restarted, and why one does not run. Without names, " +
        "of all jobs that have not ended. A name may also be that of a pod.",
    )
    .argument("[name...]", JOBS_ARGUMENT)
    .option("-w, --watch", "then show every pod that changes with its job, until interrupted")
    .addOption(noHeadersOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway pods llama-pretrain",
        "gangway pods llama-pretrain -o wide",
        "gangway pods llama-pretrain -o custom-columns=POD:.name,NODE:.node",
      ),
    );
  onRun<PodsOptions>(registrar, command, async (run, args, options) => {
    if (options.watch === true && !isTable(options.output)) {
      throw usageFailure("--watch and --output cannot be combined, except with -o wide");
    }
    if (options.watch === true) {
      return watchPods(run, { namespace: run.namespace, name: await resolveJobName(run, args) }, options);
    }
    const answer = await podsOf(run, args, options);
    printResponse(run, options.output, {
      schema: ListJobPodsResponseSchema,
      message: answer,
      names: answer.pods.map(({ name }) => `pod/${name}`),
      ...podsTable(answer.pods, options.output, run.deps.clock.nowMs()),
      none: args.length > 0 ? "no pods: the job is not admitted, or runs without pods" : "no pods",
    });
    if (answer.staleReason !== "") run.deps.stderr(`${answer.staleReason}\n`);
    return EXIT.ok;
  });
}

/** The pods of the jobs that arguments name, or of those that options select and that have not ended. */
async function podsOf(run: Run, args: readonly string[], options: PodsOptions): Promise<ListJobPodsResponse> {
  if (args.length > 0 && (hasFilter(options) || options.allNamespaces === true))
    throw usageFailure("give either names of jobs or options that select jobs, not both");
  const jobs =
    args.length > 0 ? await resolveJobNames(run, args) : (await listSelected(run, options, NOT_ENDED)).map(refOf);
  const answers: ListJobPodsResponse[] = [];
  for (const job of jobs) answers.push(await listPodsOrOne(run, job));
  const [only] = answers;
  if (only !== undefined && answers.length === 1) return only;
  const staleReason = [...new Set(answers.map((answer) => answer.staleReason))].filter((one) => one !== "").join("; ");
  return create(ListJobPodsResponseSchema, { pods: answers.flatMap(({ pods }) => pods), staleReason });
}

/** The pods of a job. A name that no job has is read as that of a pod. */
async function listPodsOrOne(run: Run, job: JobRef): Promise<ListJobPodsResponse> {
  try {
    return await listPods(run, job);
  } catch (error) {
    const pod = isNotFound(error) ? await podTarget(run, job.name) : null;
    if (pod === null) throw error;
    const answer = await listPods(run, pod);
    return create(ListJobPodsResponseSchema, { ...answer, pods: answer.pods.filter(({ name }) => name === job.name) });
  }
}

async function listPods(run: Run, job: JobRef): Promise<ListJobPodsResponse> {
  let last = create(ListJobPodsResponseSchema);
  const { items: pods } = await pagesUpTo(Number.POSITIVE_INFINITY, async (page) => {
    last = await run.client.call(JobService.method.listJobPods, { ...job, ...page, pageSize: PAGE_SIZE });
    return { items: last.pods, next: last.nextPageToken };
  });
  return create(ListJobPodsResponseSchema, { ...last, pods });
}

/** Prints all pods, then those that look different after each change of the job. Returns the exit status. */
async function watchPods(run: Run, { namespace, name }: JobRef, { output }: PodsOptions): Promise<number> {
  const { signal } = run.deps;
  const print = podPrinter(run, output);
  for await (const event of streamJobs(run, {
    filter: { namespace, names: [name] },
    retriesFirstCall: false,
    signal,
  })) {
    if (event.kind === "deleted") return EXIT.ok;
    if (event.kind === "changed") print((await listPods(run, { namespace, name })).pods);
  }
  return EXIT.interrupted;
}

/** Returns a function that prints those of the pods that look different than before, as rows of a growing table. */
function podPrinter(run: Run, output: OutputFormat): (pods: readonly JobPod[]) => void {
  const { clock, color } = run.deps;
  const width = tableWidth(run, output);
  const shown = new Map<string, string>();
  return (pods) => {
    const changed = pods.filter((pod) => shown.get(pod.name) !== lookOf(pod));
    if (changed.length === 0) return;
    const columns = columnsOfWatch(columnsOf(output).map(withWidth), width).map(({ drop: _, ...column }) => column);
    const rows = changed.map((pod) => columns.map(({ cell }) => cell(pod, clock.nowMs())));
    const lines = renderTable(columns, rows, { columns: width, color });
    printPainted(run, shown.size === 0 ? lines : lines.slice(1));
    for (const pod of changed) shown.set(pod.name, lookOf(pod));
  };
}

/** The facts of a pod whose change is shown. */
function lookOf({ attempt, phase, node, plannedNode, ready, restarts, reason }: JobPod): string {
  return [attempt, phase, node, plannedNode, ready, restarts, reason].join(" ");
}

/** Rows of a watch are printed at different times, so each column has a width that most values fit. */
const WIDTHS: Readonly<Record<string, number>> = { POD: 24, NODE: 16, PHASE: 11, AGE: 4 };

function withWidth(column: PodColumn): PodColumn {
  return { ...column, minWidth: WIDTHS[column.title] ?? 0 };
}

type PodColumn = Column & { readonly cell: (pod: JobPod, nowMs: number) => string; readonly wide?: true };

const COLUMNS: readonly PodColumn[] = [
  { title: "POD", cell: ({ name }) => name },
  { title: "REPLICA", wide: true, cell: ({ replicaType, index }) => `${replicaType}/${index}` },
  { title: "ATTEMPT", align: "right", wide: true, cell: ({ attempt }) => String(attempt) },
  { title: "NODE", drop: 1, cell: ({ node }) => node },
  { title: "PLANNED", wide: true, cell: ({ plannedNode }) => plannedNode },
  { title: "PHASE", cell: ({ phase }) => phase },
  { title: "READY", wide: true, cell: ({ ready }) => (ready ? "yes" : "no") },
  { title: "RESTARTS", align: "right", drop: 2, cell: ({ restarts }) => String(restarts) },
  { title: "AGE", align: "right", drop: 3, cell: ({ createTime }, nowMs) => ageCell(createTime, nowMs) },
  { title: "REASON", cell: ({ reason, message, offPlan }) => podSentence(reason, message) || offPlan },
];

function columnsOf(output: OutputFormat): readonly PodColumn[] {
  return COLUMNS.filter(({ wide }) => output === "wide" || wide !== true);
}

function podsTable(pods: readonly JobPod[], output: OutputFormat, nowMs: number) {
  const columns = columnsOf(output);
  return { columns, rows: pods.map((pod) => columns.map(({ cell }) => cell(pod, nowMs))) };
}

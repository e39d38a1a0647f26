import { create } from "@bufbuild/protobuf";
import type { JobPod } from "../../gen/gangway/v1/job_pb.ts";
import {
  JobService,
  type ListJobPodsResponse,
  ListJobPodsResponseSchema,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { append } from "../../runtime/lists.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { resolveJobName } from "../jobs/job-name.ts";
import { streamJobs } from "../jobs/stream-jobs.ts";
import { isTable, type OutputFormat, outputOption } from "../options.ts";
import { ageCell, podSentence } from "../output/job-text.ts";
import { printPainted, printResponse } from "../output/print.ts";
import { type Column, renderTable } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

/** The service allows no larger page. */
const PAGE_SIZE = 1_000;

type PodsOptions = { readonly output: OutputFormat; readonly watch?: boolean };
type JobName = { readonly namespace: string; readonly name: string };

export function registerPods(registrar: Registrar): void {
  const command = registrar.program
    .command("pods")
    .alias("pod")
    .summary("Show the pods of a job")
    .description("Show the pods of a job: where each runs, how often it was restarted, and why one does not run")
    .argument("<name>", "name of the job, as NAME or KIND/NAME")
    .option("-w, --watch", "then show every pod that changes with its job, until interrupted")
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway pods llama-pretrain",
        "gangway pods llama-pretrain -o wide",
        "gangway pods llama-pretrain -o custom-columns=POD:.name,NODE:.node",
      ),
    );
  onRun<PodsOptions>(registrar, command, async (run, [argument = ""], options) => {
    if (options.watch === true && !isTable(options.output)) {
      throw usageFailure("--watch and --output cannot be combined, except with -o wide");
    }
    const job = { namespace: run.namespace, name: await resolveJobName(run, argument) };
    if (options.watch === true) return watchPods(run, job, options);
    const answer = await listPods(run, job);
    printResponse(run, options.output, {
      schema: ListJobPodsResponseSchema,
      message: answer,
      names: answer.pods.map(({ name }) => `pod/${name}`),
      ...podsTable(answer.pods, options.output, run.deps.clock.nowMs()),
      none: "no pods: the job is not admitted, or runs without pods",
    });
    if (answer.staleReason !== "") run.deps.stderr(`${answer.staleReason}\n`);
    return EXIT.ok;
  });
}

async function listPods(run: Run, job: JobName): Promise<ListJobPodsResponse> {
  const pods: JobPod[] = [];
  let page: ListJobPodsResponse;
  let pageToken = "";
  do {
    page = await run.client.call(JobService.method.listJobPods, { ...job, pageSize: PAGE_SIZE, pageToken });
    append(pods, page.pods);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return create(ListJobPodsResponseSchema, { ...page, pods });
}

/** Prints all pods, then those that look different after each change of the job. Returns the exit status. */
async function watchPods(run: Run, { namespace, name }: JobName, { output }: PodsOptions): Promise<number> {
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
  const { clock, isTty, columns: width, color } = run.deps;
  const shown = new Map<string, string>();
  return (pods) => {
    const changed = pods.filter((pod) => shown.get(pod.name) !== lookOf(pod));
    if (changed.length === 0) return;
    const { columns, rows } = podsTable(changed, output, clock.nowMs());
    const lines = renderTable(columns.map(withWidth), rows, { columns: isTty ? width : null, color });
    printPainted(run, shown.size === 0 ? lines : lines.slice(1));
    for (const pod of changed) shown.set(pod.name, lookOf(pod));
  };
}

/** The facts of a pod whose change is shown. */
function lookOf({ attempt, phase, node, ready, restarts, reason }: JobPod): string {
  return [attempt, phase, node, ready, restarts, reason].join(" ");
}

/** Rows of a watch are printed at different times, so each column has a width that most values fit. */
const WIDTHS: Readonly<Record<string, number>> = { POD: 24, NODE: 16, PHASE: 11, AGE: 4 };

function withWidth(column: Column): Column {
  return { ...column, minWidth: WIDTHS[column.title] ?? 0 };
}

type PodColumn = Column & { readonly cell: (pod: JobPod, nowMs: number) => string; readonly wide?: true };

const COLUMNS: readonly PodColumn[] = [
  { title: "POD", cell: ({ name }) => name },
  { title: "REPLICA", wide: true, cell: ({ replicaType, index }) => `${replicaType}/${index}` },
  { title: "ATTEMPT", align: "right", wide: true, cell: ({ attempt }) => String(attempt) },
  { title: "NODE", cell: ({ node }) => node },
  { title: "PHASE", cell: ({ phase }) => phase },
  { title: "READY", wide: true, cell: ({ ready }) => (ready ? "yes" : "no") },
  { title: "RESTARTS", align: "right", cell: ({ restarts }) => String(restarts) },
  { title: "AGE", align: "right", cell: ({ createTime }, nowMs) => ageCell(createTime, nowMs) },
  { title: "REASON", cell: ({ reason, message }) => podSentence(reason, message) },
];

function podsTable(pods: readonly JobPod[], output: OutputFormat, nowMs: number) {
  const columns = COLUMNS.filter(({ wide }) => output === "wide" || wide !== true);
  return { columns, rows: pods.map((pod) => columns.map(({ cell }) => cell(pod, nowMs))) };
}

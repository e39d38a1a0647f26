import type { MessageInitShape } from "@bufbuild/protobuf";
import { create, toJsonString } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { Option } from "commander";
import { servedKinds } from "../../core/kinds/registry.ts";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { type JobFilterSchema, JobService, ListJobsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { followJobs } from "../follow-jobs.ts";
import { jobsTable, parsePhase, qualifiedName } from "../job-text.ts";
import { jobName } from "../named-job.ts";
import { encodeMessage, printLines, show } from "../output.ts";
import {
  examples,
  namespaceOption,
  type OutputFormat,
  onRun,
  outputOption,
  type Registrar,
  type Run,
  repeated,
} from "../shell.ts";
import { renderTable } from "../table.ts";

type FilterOptions = {
  namespace: string;
  allNamespaces?: boolean;
  queue?: string;
  cluster?: string;
  phase?: readonly string[];
  kind?: readonly string[];
  label?: readonly string[];
  output: OutputFormat;
};

const PAGE_SIZE = 500;

export function registerList(registrar: Registrar): void {
  const command = withFilter(registrar.program.command("list"))
    .description("list jobs")
    .addOption(
      new Option("--order-by <order>", "the order").choices([
        "create_time",
        "create_time desc",
        "name",
        "priority desc",
      ]),
    )
    .option("--limit <count>", "no more than so many", "1000")
    .addHelpText(
      "after",
      examples(
        "gangway list",
        "gangway list -A --phase waiting --queue research",
        "gangway list -l team=nlp --kind PyTorchJob -o name",
      ),
    );
  onRun<FilterOptions & { orderBy?: string; limit: string }>(registrar, command, async (run, _args, options) => {
    const limit = Number(options.limit);
    if (!Number.isInteger(limit) || limit < 1)
      throw usageFailure(`--limit must be a positive number, not ${options.limit}`);
    const listed = await listJobs(run, { filter: filterOf(options, []), orderBy: options.orderBy ?? "", limit });
    const table = jobsTable(listed.jobs, {
      nowMs: run.deps.clock.nowMs(),
      withNamespace: options.allNamespaces === true,
    });
    const message = create(ListJobsResponseSchema, { jobs: [...listed.jobs], totalEstimate: listed.total });
    const names = listed.jobs.map(qualifiedName);
    show(run, options.output, { ...table, schema: ListJobsResponseSchema, message, names, none: "no jobs" });
    if (listed.isCut) run.deps.stderr(`${limit} of ${listed.total} jobs are shown; --limit shows more\n`);
    return EXIT.ok;
  });
}

export function registerWatch(registrar: Registrar): void {
  const command = withFilter(registrar.program.command("watch"))
    .description("show jobs and every change of them, until interrupted")
    .argument("[name...]", "names of jobs; none: all that the filters let through")
    .addHelpText(
      "after",
      examples("gangway watch", "gangway watch llama-pretrain", "gangway watch -A --queue research -o json"),
    );
  onRun<FilterOptions>(registrar, command, async (run, names, options) => {
    const filter = filterOf(options, names.map(jobName));
    const print = printer(run, options);
    for await (const change of followJobs(run, { filter, patient: false, signal: run.deps.signal })) {
      if (change.kind === "seen" || change.kind === "gone") print(change.job, change.kind === "gone");
    }
    return EXIT.interrupted;
  });
}

function withFilter(command: Command): Command {
  return command
    .addOption(namespaceOption())
    .option("-A, --all-namespaces", "of all namespaces")
    .option("--queue <name>", "of this queue")
    .option("--cluster <name>", "on this cluster")
    .option("--phase <phase>", "in this phase; may be repeated", repeated)
    .option("--kind <kind>", "of this kind; may be repeated", repeated)
    .option("-l, --label <key=value>", "with this label; may be repeated", repeated)
    .addOption(outputOption());
}

function filterOf(options: FilterOptions, names: readonly string[]): MessageInitShape<typeof JobFilterSchema> {
  return {
    namespace: options.allNamespaces === true ? "" : options.namespace,
    names: [...names],
    queue: options.queue ?? "",
    cluster: options.cluster ?? "",
    phases: (options.phase ?? []).map(parsePhase),
    kinds: (options.kind ?? []).map(
      (given) => servedKinds().find(({ name }) => name.toLowerCase() === given.toLowerCase())?.name ?? given,
    ),
    labels: Object.fromEntries((options.label ?? []).flatMap((given) => given.split(",")).map(parseLabel)),
  };
}

function parseLabel(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw usageFailure(`a label must be KEY=VALUE, not ${text}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

type Listing = {
  readonly filter: MessageInitShape<typeof JobFilterSchema>;
  readonly orderBy: string;
  readonly limit: number;
};

/** All pages, up to the limit. */
async function listJobs(run: Run, { filter, orderBy, limit }: Listing) {
  const jobs: Job[] = [];
  let pageToken = "";
  let total = 0;
  do {
    const pageSize = Math.min(PAGE_SIZE, limit - jobs.length);
    const page = await run.client.call(JobService.method.listJobs, { filter, orderBy, pageSize, pageToken });
    jobs.push(...page.jobs);
    pageToken = page.nextPageToken;
    total = page.totalEstimate;
  } while (pageToken !== "" && jobs.length < limit);
  return { jobs, total, isCut: pageToken !== "" };
}

/** Prints changes as they come: a growing table, one JSON object a line, YAML documents, or names. */
function printer(run: Run, options: FilterOptions): (job: Job, isGone: boolean) => void {
  let isFirst = true;
  return (job, isGone) => {
    if (options.output === "name") return printLines(run, [qualifiedName(job)]);
    if (options.output === "json") return printLines(run, [toJsonString(JobSchema, job)]);
    if (options.output === "yaml") return run.deps.stdout(`---\n${encodeMessage("yaml", JobSchema, job)}`);
    const table = jobsTable([job], { nowMs: run.deps.clock.nowMs(), withNamespace: options.allNamespaces === true });
    const widths = table.columns.map((column) => WATCH_WIDTHS[column.title] ?? 0);
    const rows = table.rows.map((row) =>
      row.map((cell, at) => (isGone && table.columns[at]?.title === "PHASE" ? "(gone)" : cell)),
    );
    const lines = renderTable(
      table.columns.map((column, at) => ({ ...column, minWidth: widths[at] ?? 0 })),
      rows,
      { columns: run.deps.isTty ? run.deps.columns : null, color: run.deps.color },
    );
    printLines(run, isFirst ? lines : lines.slice(1));
    isFirst = false;
  };
}

/** Rows come one at a time, so their columns have widths that most values fit. */
const WATCH_WIDTHS: Readonly<Record<string, number>> = {
  NAMESPACE: 12,
  NAME: 24,
  KIND: 10,
  QUEUE: 10,
  PHASE: 10,
  CLUSTER: 12,
  PODS: 5,
  AGE: 6,
};

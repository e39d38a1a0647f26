import { toJsonString } from "@bufbuild/protobuf";
import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { EXIT } from "../exit.ts";
import { addJobFilterOptions, type JobFilterOptions, jobFilterOf } from "../jobs/job-filter.ts";
import { parseJobName } from "../jobs/job-name.ts";
import { streamJobs } from "../jobs/stream-jobs.ts";
import { type OutputFormat, outputOption } from "../options.ts";
import { jobsTable, qualifiedName } from "../output/job-text.ts";
import { encodeMessage, printLines } from "../output/print.ts";
import { renderTable } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

type WatchOptions = JobFilterOptions & { readonly output: OutputFormat };

export function registerWatch(registrar: Registrar): void {
  const command = addJobFilterOptions(registrar.program.command("watch"))
    .description("Show jobs, then every change of them, until interrupted")
    .argument("[name...]", "names of jobs (default: all jobs that the other options select)")
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway watch", "gangway watch llama-pretrain", "gangway watch -A --queue research -o json"),
    );
  onRun<WatchOptions>(registrar, command, async (run, names, options) => {
    const filter = jobFilterOf(options, { names: names.map(parseJobName), kinds: run.deps.kinds });
    const print = jobPrinter(run, options);
    for await (const event of streamJobs(run, { filter, retriesFirstCall: false, signal: run.deps.signal })) {
      if (event.kind === "changed" || event.kind === "deleted") print(event.job, event.kind === "deleted");
    }
    return EXIT.interrupted;
  });
}

/** Returns a function that prints one job: as a row of a growing table, a line of JSON, a YAML document, or a name. */
function jobPrinter(run: Run, options: WatchOptions): (job: Job, isDeleted: boolean) => void {
  let isFirst = true;
  return (job, isDeleted) => {
    if (options.output === "name") return printLines(run, [qualifiedName(job)]);
    if (options.output === "json") return printLines(run, [toJsonString(JobSchema, job)]);
    if (options.output === "yaml") return run.deps.stdout(`---\n${encodeMessage("yaml", JobSchema, job)}`);
    const table = jobsTable([job], { nowMs: run.deps.clock.nowMs(), withNamespace: options.allNamespaces === true });
    const columns = table.columns.map((column) => ({ ...column, minWidth: WIDTHS[column.title] ?? 0 }));
    const rows = table.rows.map((row) =>
      row.map((cell, at) => (isDeleted && columns[at]?.title === "PHASE" ? "(deleted)" : cell)),
    );
    const width = run.deps.isTty ? run.deps.columns : null;
    const lines = renderTable(columns, rows, { columns: width, color: run.deps.color });
    printLines(run, isFirst ? lines : lines.slice(1));
    isFirst = false;
  };
}

/** Rows are printed one at a time, so each column has a width that most values fit. */
const WIDTHS: Readonly<Record<string, number>> = {
  NAMESPACE: 12,
  NAME: 24,
  KIND: 10,
  QUEUE: 10,
  PHASE: 10,
  CLUSTER: 12,
  PODS: 5,
  AGE: 6,
};

import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { EXIT } from "../exit.ts";
import { isTable, type OutputFormat } from "../options.ts";
import { jobsTable, qualifiedName } from "../output/job-text.ts";
import { messageJson } from "../output/message-json.ts";
import { encodeMessage, printEncoded, printLines, printPainted } from "../output/print.ts";
import { renderTable } from "../output/table.ts";
import type { Run } from "../run-command.ts";
import { type JobFilterOptions, jobFilterOf } from "./job-filter.ts";
import { parseJobName } from "./job-name.ts";
import { streamJobs } from "./stream-jobs.ts";

export type WatchOptions = JobFilterOptions & { readonly output: OutputFormat };

/** Prints the jobs that exist, then every change of them, until the user interrupts. Returns the exit status. */
export async function watchJobs(run: Run, names: readonly string[], options: WatchOptions): Promise<number> {
  const filter = await jobFilterOf(run, options, names.map(parseJobName));
  const print = jobPrinter(run, options);
  for await (const event of streamJobs(run, { filter, retriesFirstCall: false, signal: run.deps.signal })) {
    if (event.kind === "changed" || event.kind === "deleted") print(event.job, event.kind === "deleted");
  }
  return EXIT.interrupted;
}

/** Returns a function that prints one job: as a row of a growing table, a line of JSON, a YAML document, or a name. */
function jobPrinter(run: Run, options: WatchOptions): (job: Job, isDeleted: boolean) => void {
  let isFirst = true;
  return (job, isDeleted) => {
    if (options.output === "name") return printLines(run, [qualifiedName(job)]);
    if (options.output === "json") return printLines(run, [JSON.stringify(messageJson(JobSchema, job))]);
    if (options.output === "yaml") {
      run.deps.stdout("---\n");
      return printEncoded(run, "yaml", { schema: JobSchema, message: job });
    }
    if (!isTable(options.output)) return run.deps.stdout(lineOf(encodeMessage(options.output, JobSchema, job)));
    const shown = { withNamespace: options.allNamespaces === true, wide: options.output === "wide" };
    const table = jobsTable([job], { nowMs: run.deps.clock.nowMs(), ...shown });
    const columns = table.columns.map((column) => ({ ...column, minWidth: WIDTHS[column.title] ?? 0 }));
    const rows = table.rows.map((row) =>
      row.map((cell, at) => (isDeleted && columns[at]?.title === "PHASE" ? "(deleted)" : cell)),
    );
    const width = run.deps.isTty ? run.deps.columns : null;
    const lines = renderTable(columns, rows, { columns: width, color: run.deps.color });
    printPainted(run, isFirst ? lines : lines.slice(1));
    isFirst = false;
  };
}

/** Ends the text of one job with a newline. */
function lineOf(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
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

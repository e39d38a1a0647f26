import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { jobsTable, MARK_TEXT, qualifiedName } from "../output/job-text.ts";
import { messageJson } from "../output/message-json.ts";
import { printLines, printPainted, tableWidth } from "../output/print.ts";
import { columnsOfWatch, renderTable } from "../output/table.ts";
import { yamlText } from "../output/terminal.ts";
import { isNotFound } from "../rpc/call-error.ts";
import type { Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { isTable, type OutputFormat } from "../shell/options.ts";
import { ClusterSilence } from "./cluster-silence.ts";
import { type JobFilterOptions, jobFilterOf, localFilterOf, withKind } from "./job-filter.ts";
import { jobArguments } from "./job-name.ts";
import { type JobStreamEvent, streamJobs } from "./stream-jobs.ts";

export type WatchOptions = JobFilterOptions & { readonly output: OutputFormat };

type JobChange = Extract<JobStreamEvent, { readonly job: Job }>;

/** A job of a stream: as it is, or as it was before it was deleted, or before the selection left it out. */
type Seen = { readonly job: Job; readonly what: "is" | "wasDeleted" | "wasLeftOut" };

/** Prints the jobs that exist, then every change of them, until the user interrupts. Returns the exit status. */
export async function watchJobs(run: Run, args: readonly string[], options: WatchOptions): Promise<number> {
  const filter = await filterOf(run, args, options);
  const sorter = new Sorter((await localFilterOf(run, options)) ?? (() => true));
  const print = jobPrinter(run, options);
  const silent = new ClusterSilence(run);
  const show = async (event: JobChange) => {
    const what = sorter.what(event);
    if (what === null) return;
    if (what === "is") silent.add(event.job);
    else silent.remove(event.job);
    const seen = what === "gone" ? await whyGone(run, event.job, options) : what;
    print({ job: silent.shown(event.job), what: seen });
  };
  let isListing = true;
  for await (const event of streamJobs(run, { filter, retriesFirstCall: false, signal: run.deps.signal })) {
    if (event.kind === "relisting") silent.clear();
    if (event.kind === "relisting" || event.kind === "listed") isListing = event.kind === "relisting";
    else await show(event);
    // A stream without changes reports every few seconds that all jobs are listed.
    if (!isListing) for (const job of await silent.look()) print({ job, what: "is" });
  }
  return EXIT.interrupted;
}

/** Says what an event means for a watch whose conditions are more than the filter of the service. */
class Sorter {
  readonly #isWanted: (job: Job) => boolean;
  readonly #shown = new Set<string>();

  constructor(isWanted: (job: Job) => boolean) {
    this.#isWanted = isWanted;
  }

  /** Null: the watch is not about this job. */
  what({ kind, job }: JobChange): "is" | "wasLeftOut" | "gone" | null {
    const uid = job.metadata?.uid ?? "";
    const isWanted = this.#isWanted(job);
    if (!isWanted && !this.#shown.has(uid)) return null;
    if (kind === "changed" && isWanted) {
      this.#shown.add(uid);
      return "is";
    }
    this.#shown.delete(uid);
    return kind === "changed" ? "wasLeftOut" : "gone";
  }
}

/** The stream ends a job that was deleted, and one that changed so that it does not pass the filter. */
async function whyGone(run: Run, { metadata }: Job, options: WatchOptions): Promise<"wasDeleted" | "wasLeftOut"> {
  const { queue, cluster, phase, selector } = options;
  if ([queue, cluster, phase, selector].every((option) => option === undefined)) return "wasDeleted";
  try {
    await run.client.call(JobService.method.getJob, { uid: metadata?.uid ?? "", view: JobView.BASIC });
    return "wasLeftOut";
  } catch (error) {
    if (isNotFound(error)) return "wasDeleted";
    // Another failure does not end a watch: the record says as much as is known.
    return metadata?.deleteTime === undefined ? "wasLeftOut" : "wasDeleted";
  }
}

/** The filter for the jobs that arguments name, or for those of a kind, and that pass the options. */
async function filterOf(run: Run, args: readonly string[], options: WatchOptions) {
  const { kindWord, jobs } = await jobArguments(run, args, { kindAlone: true });
  if (jobs.length === 0) return jobFilterOf(run, withKind(options, kindWord), []);
  const kind = [...new Set(jobs.flatMap((job) => job.kindWord ?? []))];
  const areAllOfKinds = jobs.every((job) => job.kindWord !== null);
  const names = jobs.map(({ name }) => name);
  return jobFilterOf(run, areAllOfKinds && options.kind === undefined ? { ...options, kind } : options, names);
}

/** Returns a function that prints one job: as a row of a growing table, a line of JSON, a YAML document, or a name. */
function jobPrinter(run: Run, options: WatchOptions): (seen: Seen) => void {
  const { output } = options;
  const printRow = rowPrinter(run, options);
  return (seen) => {
    const { job } = seen;
    if (output === "name") return printLines(run, [qualifiedName(job)]);
    if (isTable(output)) return printRow(seen);
    const json = { ...messageJson(JobSchema, job), ...WHAT[seen.what] };
    if (output === "json") return printLines(run, [JSON.stringify(json)]);
    if (output === "yaml") return run.deps.stdout(`---\n${yamlText(json)}`);
    return run.deps.stdout(lineOf(output.render(json, null)));
  };
}

/** The member that tells a program of a job that is gone. A change of a job has none. */
const WHAT = { is: {}, wasDeleted: { deleted: true }, wasLeftOut: { leftOut: true } } as const;

/** Returns a function that prints one job as a row. */
function rowPrinter(run: Run, options: WatchOptions): (seen: Seen) => void {
  let isFirst = run.hasHeadings !== false;
  let isMarkExplained = false;
  const width = tableWidth(run, options.output);
  const shown = {
    withNamespace: options.allNamespaces === true,
    wide: options.output === "wide",
    marks: width !== null,
  };
  return ({ job, what }) => {
    const table = jobsTable([job], { nowMs: run.deps.clock.nowMs(), ...shown });
    const all = table.columns.map((column, at) => ({ ...column, minWidth: WIDTHS[column.title] ?? 0, at }));
    // Each row has the same columns, however wide its cells are.
    const columns = columnsOfWatch(all, width).map(({ drop: _, ...column }) => column);
    const phase = { is: null, wasDeleted: "(deleted)", wasLeftOut: "(left out)" }[what];
    const rows = table.rows.map((row) =>
      columns.map(({ title, at }) => (title === "PHASE" && phase !== null ? phase : (row[at] ?? ""))),
    );
    const lines = renderTable(columns, rows, { columns: width, color: run.deps.color });
    printPainted(run, isFirst ? lines : lines.slice(1));
    if (table.hasMarks && !isMarkExplained) run.deps.stderr(`${MARK_TEXT}\n`);
    isMarkExplained ||= table.hasMarks;
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

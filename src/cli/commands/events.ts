import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type JobEvent, JobService, ListJobEventsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { append } from "../../runtime/lists.ts";
import {
  addJobFilterOptions,
  hasFilter,
  type JobFilterOptions,
  jobFilterOf,
  localFilterOf,
} from "../jobs/job-filter.ts";
import { JOBS_ARGUMENT, type JobRef, refOf, resolveJobNames } from "../jobs/job-name.ts";
import { listJobs } from "../jobs/list-jobs.ts";
import { streamJobs } from "../jobs/stream-jobs.ts";
import { ageCell } from "../output/job-text.ts";
import { printPainted, printResponse, tableWidth } from "../output/print.ts";
import { type Column, columnsOfWatch, renderTable } from "../output/table.ts";
import { pagesUpTo } from "../rpc/pages.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { isTable, noHeadersOption, type OutputFormat, outputOption } from "../shell/options.ts";

/** Events of more jobs than this would take too many calls. */
const JOBS_MAX = 500;
/** So many jobs are asked for at once. */
const AT_ONCE = 8;

type EventsOptions = JobFilterOptions & {
  readonly output: OutputFormat;
  readonly all?: boolean;
  readonly warnings?: boolean;
  readonly watch?: boolean;
};

/** An event, and the job that it is about. */
type JobsEvent = { readonly event: JobEvent; readonly job: JobRef };

export function registerEvents(registrar: Registrar): void {
  const command = addJobFilterOptions(registrar.program.command("events"))
    .description("List the events of jobs, oldest first: of those that are named, or else of those that exist")
    .argument("[name...]", JOBS_ARGUMENT)
    .option("--all", "also those of earlier jobs of the same names")
    .option("--warnings", "only warnings")
    .option("-w, --watch", "then show every new event, until interrupted")
    .addOption(noHeadersOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway events llama-pretrain",
        "gangway events llama-pretrain --all -o wide",
        "gangway events -A --warnings -w",
      ),
    );
  onRun<EventsOptions>(registrar, command, async (run, args, options) => {
    if (args.length > 0 && (hasFilter(options) || options.allNamespaces === true))
      throw usageFailure("give either names of jobs or options that select jobs, not both");
    if (options.watch === true && !isTable(options.output))
      throw usageFailure("--watch and --output cannot be combined, except with -o wide");
    const jobs = args.length > 0 ? await resolveJobNames(run, args) : await selectedJobs(run, options);
    if (options.watch === true) return watchEvents(run, jobs, { options, areNamed: args.length > 0 });
    const events = await eventsOf(run, jobs, options);
    printResponse(run, options.output, {
      schema: ListJobEventsResponseSchema,
      message: create(ListJobEventsResponseSchema, { events: events.map(({ event }) => event) }),
      names: events.map(({ event }) => event.reason),
      ...tableOf(run, events, { options, isOne: args.length > 0 && jobs.length === 1 }),
      none: "no events",
    });
    return EXIT.ok;
  });
}

async function selectedJobs(run: Run, options: EventsOptions): Promise<readonly JobRef[]> {
  const { jobs, isCut } = await listJobs(run, { ...options, limit: JOBS_MAX, orderBy: "create_time desc" });
  if (isCut) run.deps.stderr(`only the events of the newest ${JOBS_MAX} jobs are shown; select fewer jobs\n`);
  return jobs.map(refOf);
}

/** The events of all these jobs in the order of their times. `tells`: says how many were left out. */
async function eventsOf(
  run: Run,
  jobs: readonly JobRef[],
  options: EventsOptions,
  { tells = true }: { readonly tells?: boolean } = {},
): Promise<readonly JobsEvent[]> {
  const all: JobsEvent[] = [];
  let others = 0;
  for (let at = 0; at < jobs.length; at += AT_ONCE) {
    const found = await Promise.all(
      jobs.slice(at, at + AT_ONCE).map(async (job) => ({ job, events: await allEvents(run, job) })),
    );
    for (const { job, events } of found) {
      const kept = options.all === true ? events : ofLastJob(events);
      others += events.length - kept.length;
      append(
        all,
        kept.filter((event) => isShown(event, options)).map((event) => ({ event, job })),
      );
    }
  }
  if (tells && others > 0) run.deps.stderr(leftOutText(others));
  return jobs.length === 1 ? all : all.toSorted((a, b) => timeOf(a) - timeOf(b));
}

function isShown({ type }: JobEvent, { warnings }: EventsOptions): boolean {
  return warnings !== true || type === "Warning";
}

function timeOf({ event: { time } }: JobsEvent): number {
  return time === undefined ? 0 : timestampMs(time);
}

/** Prints the events that there are, and after each change of a job its new ones. Returns the exit status. */
async function watchEvents(
  run: Run,
  jobs: readonly JobRef[],
  { options, areNamed }: { readonly options: EventsOptions; readonly areNamed: boolean },
): Promise<number> {
  const names = areNamed ? jobs.map(({ name }) => name) : [];
  const filter = await jobFilterOf(run, options, names);
  const isWanted = (await localFilterOf(run, options)) ?? (() => true);
  const isOne = areNamed && jobs.length === 1;
  const printed = new Set<string>();
  let isFirst = run.hasHeadings !== false;
  const print = (events: readonly JobsEvent[]) => {
    const fresh = events.filter(({ event, job }) => !printed.has(keyOf(event, job)));
    for (const { event, job } of fresh) printed.add(keyOf(event, job));
    if (fresh.length === 0) return;
    const { columns, rows } = tableOf(run, fresh, { options, isOne });
    const width = tableWidth(run, options.output);
    const kept = columnsOfWatch(
      columns.map((column, at) => ({ ...column, at })),
      width,
    );
    const cells = rows.map((row) => kept.map(({ at }) => row[at] ?? ""));
    const plain = kept.map(({ drop: _, ...column }) => ({ ...column, minWidth: WIDTHS[column.title] ?? 0 }));
    const lines = renderTable(plain, cells, { columns: width, color: run.deps.color });
    printPainted(run, isFirst ? lines : lines.slice(1));
    isFirst = false;
  };
  print(await eventsOf(run, jobs, options));
  for await (const one of streamJobs(run, { filter, retriesFirstCall: false, signal: run.deps.signal })) {
    if (one.kind !== "changed" || !isWanted(one.job)) continue;
    print(await eventsOf(run, [refOf(one.job)], options, { tells: false }));
  }
  return EXIT.interrupted;
}

function keyOf({ uid, resourceVersion, reason, time }: JobEvent, { namespace, name }: JobRef): string {
  const at = time === undefined ? "" : timestampMs(time);
  return `${namespace}/${name} ${uid} ${resourceVersion} ${reason} ${at}`;
}

/** Rows of a watch are printed at different times, so each column has a width that most values fit. */
const WIDTHS: Readonly<Record<string, number>> = { NAMESPACE: 12, JOB: 24, AGE: 6, TYPE: 7, REASON: 20 };

function tableOf(
  run: Run,
  events: readonly JobsEvent[],
  { options, isOne }: { readonly options: EventsOptions; readonly isOne: boolean },
) {
  const nowMs = run.deps.clock.nowMs();
  const all: readonly (Column & { readonly cell: (one: JobsEvent) => string; readonly isFor: boolean })[] = [
    { title: "NAMESPACE", isFor: options.allNamespaces === true, cell: ({ job }) => job.namespace },
    { title: "JOB", isFor: !isOne, cell: ({ job }) => job.name },
    { title: "AGE", align: "right", isFor: true, cell: ({ event }) => ageCell(event.time, nowMs) },
    { title: "TYPE", drop: 1, isFor: true, cell: ({ event }) => event.type },
    { title: "REASON", isFor: true, cell: ({ event }) => event.reason },
    { title: "UID", isFor: options.output === "wide" && options.all === true, cell: ({ event }) => event.uid },
    { title: "MESSAGE", isFor: true, cell: ({ event }) => event.message },
  ];
  const columns = all.filter(({ isFor }) => isFor);
  return { columns, rows: events.map((one) => columns.map(({ cell }) => cell(one))) };
}

function leftOutText(count: number): string {
  return count === 1
    ? "1 event of earlier jobs of this name is left out; --all shows it\n"
    : `${count} events of earlier jobs of this name are left out; --all shows them\n`;
}

/** The events of the job that had the name last. */
function ofLastJob(events: readonly JobEvent[]): readonly JobEvent[] {
  const uid = events.at(-1)?.uid;
  return events.filter((event) => event.uid === uid);
}

async function allEvents(run: Run, job: { readonly namespace: string; readonly name: string }): Promise<JobEvent[]> {
  const { items } = await pagesUpTo(Number.POSITIVE_INFINITY, async (page) => {
    const { events, nextPageToken } = await run.client.call(JobService.method.listJobEvents, { ...job, ...page });
    return { items: events, next: nextPageToken };
  });
  return items;
}

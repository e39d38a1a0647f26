/** Serves newcomers: runs the whole service, submits the examples, and shows them in a live table. */

import type { Registry } from "../../core/kinds/registry.ts";
import { type CreateJobResponse, JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import { aborted } from "../../runtime/aborted.ts";
import type { Clock } from "../../runtime/clock.ts";
import { append } from "../../runtime/lists.ts";
import { type JobStreamEvent, streamJobs } from "../jobs/stream-jobs.ts";
import { runtimeFinder } from "../manifest/find-runtime.ts";
import { readManifests } from "../manifest/read-manifests.ts";
import { LiveLines } from "../output/live-lines.ts";
import { connect, type GangwayClient } from "../rpc/client.ts";
import type { CliIo, UpOptions } from "../shell/deps.ts";
import { CommandFailure, EXIT, startFailure } from "../shell/exit.ts";
import { JobTable, keyOf } from "./up-job-table.ts";

/** A service that runs in this process. */
export type RunningService = {
  readonly address: string;
  /** The end of the line that says where it listens: where it serves HTTP, or why it does not. May be empty. */
  readonly console: string;
  /** Names its database, counters and clusters in one line. */
  readonly inUse: string;
  /** The names of the clusters that are registered and not simulated. */
  readonly realClusters: readonly string[];
  /** True: calls need neither TLS nor credentials, which this process does not have. */
  readonly isPlain: boolean;
  /** The migrations of a database server that ran before it started. */
  readonly migrated: readonly string[];
  readonly close: () => Promise<void>;
};

export type UpDeps = CliIo & {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly kinds: () => Promise<Registry>;
  /** Starts the service, and tells what it does. Throws an error that a user understands. */
  readonly start: (options: UpOptions, progress: (text: string) => void) => Promise<RunningService>;
  /** As in `Signals`. Called after the start, which survives being killed and computes for seconds. */
  readonly listen: () => void;
  /** The folder of example manifests. */
  readonly examples: string;
};

const REDRAW_MS = 100;
/** The table and the lines below it fit a small terminal: lines that scrolled away cannot be drawn again. */
const ROWS_MAX = 14;

/** Runs the service and the examples in this process, until it is interrupted or, with `exit`, the examples end. */
export async function runUp(options: UpOptions, deps: UpDeps): Promise<number> {
  // The first line of stdout names the parts in use, also for programs that read it.
  const progress = (text: string) => deps.stderr(`${text} …\n`);
  progress("starting gangway");
  const service = await deps.start(options, progress).catch((error: Error) => {
    throw startFailure(error);
  });
  deps.listen();
  try {
    deps.stdout(`${service.inUse}\n`);
    if (service.migrated.length > 0) deps.stdout(`migrated the database: ran ${service.migrated.join(", ")}\n`);
    deps.stdout(`listening on ${service.address}${service.console}\n`);
    if (options.examples && service.realClusters.length === 0 && service.isPlain)
      return await showExamples(service, options, deps);
    if (options.examples) leaveOutExamples(service, options, deps);
    await aborted(deps.signal);
    return EXIT.ok;
  } finally {
    await service.close();
  }
}

/** Says that the examples do not run. They would use the GPUs of real clusters for nothing. */
function leaveOutExamples({ realClusters, isPlain }: RunningService, { exit }: UpOptions, { stdout }: UpDeps): void {
  const why = isPlain
    ? `the examples run only while no real cluster is registered: there is ${realClusters.join(", ")}`
    : "the examples run only on a service without TLS and without authentication";
  if (exit) throw new CommandFailure(EXIT.refused, [`error: ${why}`]);
  stdout(`${why}\n`);
}

/**
 * Submits the examples and shows all jobs. With `exit`, returns the exit status once the examples have ended; without,
 * continues until an interruption.
 */
async function showExamples(service: RunningService, options: UpOptions, deps: UpDeps): Promise<number> {
  const client = connect(service.address, deps.signal);
  try {
    const jobTable = new JobTable();
    const keys = submitAll(client, deps);
    const afterwards = (all: readonly string[]) => [
      ...jobTable.summary(all).lines,
      ...(options.exit ? [] : hintLines(service)),
    ];
    await Promise.all([keys, follow(client, { jobTable, keys, afterwards, exit: options.exit }, deps)]);
    return jobTable.summary(await keys).asExpected ? EXIT.ok : EXIT.jobFailed;
  } catch (error) {
    // An interruption must not look like the success of the examples.
    if (deps.signal.aborted) return options.exit ? EXIT.interrupted : EXIT.ok;
    throw error;
  } finally {
    client.close();
  }
}

/** Submits the examples in the order of their names. Examples that exist stay as they are. */
async function submitAll(client: GangwayClient, deps: UpDeps): Promise<readonly string[]> {
  const namespace = { name: "default", isExplicit: false };
  const read = { io: deps, kinds: await deps.kinds(), namespace, findRuntime: runtimeFinder(client) };
  const { ready, errors } = await readManifests([deps.examples], read);
  if (errors.length > 0) throw new CommandFailure(EXIT.refused, errors);
  const answers: CreateJobResponse[] = [];
  for (const { job } of ready) answers.push(await client.call(JobService.method.createJob, { job }));
  return answers.flatMap(({ job }) => (job === undefined ? [] : [keyOf(job)]));
}

type Following = {
  readonly jobTable: JobTable;
  /** The examples. */
  readonly keys: Promise<readonly string[]>;
  /** The lines that it prints once the examples have ended. */
  readonly afterwards: (keys: readonly string[]) => readonly string[];
  /** True: stops then. */
  readonly exit: boolean;
};

/** Shows every change. Stops if a submission has failed. */
async function follow(client: GangwayClient, of: Following, deps: UpDeps): Promise<void> {
  const { jobTable } = of;
  const screen = new Screen(jobTable, deps);
  const stop = new AbortController();
  const redraw = deps.isTty ? setInterval(() => screen.draw(), REDRAW_MS) : undefined;
  let keys: readonly string[] | null = null;
  let isTold = false;
  const lookAtExamples = () => {
    if (isTold || keys === null || !jobTable.allEnded(keys)) return;
    isTold = true;
    screen.addLines(of.afterwards(keys));
    if (of.exit) stop.abort();
  };
  const submitted = of.keys.then(
    (all) => {
      keys = all;
      lookAtExamples();
    },
    () => stop.abort(),
  );
  try {
    const run = { client, deps };
    for await (const event of streamJobs(run, { filter: {}, retriesFirstCall: true, signal: stop.signal })) {
      applyChange(jobTable, event);
      if (event.kind === "changed") screen.printChange(event.job);
      lookAtExamples();
    }
  } finally {
    clearInterval(redraw);
    screen.draw();
    await submitted;
  }
}

function applyChange(jobTable: JobTable, event: JobStreamEvent): void {
  if (event.kind === "relisting") jobTable.clear();
  else if (event.kind === "deleted") jobTable.remove(event.job);
  else if (event.kind === "changed") jobTable.set(event.job);
}

/** Redraws one table in place on a terminal; anywhere else, prints a line for each change. */
class Screen {
  readonly #jobs: JobTable;
  readonly #deps: UpDeps;
  readonly #below: string[] = [];
  readonly #live: LiveLines;

  constructor(jobTable: JobTable, deps: UpDeps) {
    this.#jobs = jobTable;
    this.#deps = deps;
    this.#live = new LiveLines(deps.stdout, deps.columns);
  }

  printChange(job: Parameters<JobTable["line"]>[0]): void {
    if (this.#deps.isTty) return;
    const line = this.#jobs.line(job);
    if (line !== null) this.#deps.stdout(`${line}\n`);
  }

  /** Shows lines below the table. */
  addLines(lines: readonly string[]): void {
    if (this.#deps.isTty) append(this.#below, lines);
    else this.#deps.stdout(lines.map((line) => `${line}\n`).join(""));
  }

  draw(): void {
    if (!this.#deps.isTty) return;
    const { columns, color } = this.#deps;
    this.#live.draw([...this.#jobs.table({ columns, color }, ROWS_MAX), ...this.#below]);
  }
}

/** Each line fits 80 characters. */
function hintLines({ address }: RunningService): readonly string[] {
  return [
    "serving until Ctrl-C; in another terminal:",
    `  export GANGWAY_ADDRESS=${address}`,
    "  bin/gangway list · bin/gangway explain JOB · bin/gangway submit FILE",
    `  grpcurl -plaintext ${address} describe gangway.v1.JobService`,
  ];
}

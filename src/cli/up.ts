/** Serves newcomers: runs the whole service, submits the examples, and shows them in a live table. */
import type { Registry } from "../core/kinds/registry.ts";
import {
  type CreateJobResponse,
  JobService,
  type WatchJobsResponse,
  WatchJobsResponse_Type,
} from "../gen/gangway/v1/job_service_pb.ts";
import type { CliIo, UpOptions } from "./deps.ts";
import { CommandFailure, EXIT } from "./exit.ts";
import { readManifests } from "./manifest/read-manifests.ts";
import { connect, type GangwayClient } from "./rpc/client.ts";
import { JobTable, keyOf } from "./up-job-table.ts";

/** A service that runs in this process. */
export type RunningService = {
  readonly address: string;
  /** Names its database, counters and clusters in one line. */
  readonly inUse: string;
  /** The migrations of a database server that ran before it started. */
  readonly migrated: readonly string[];
  readonly close: () => Promise<void>;
};

export type UpDeps = CliIo & {
  readonly signal: AbortSignal;
  readonly kinds: () => Promise<Registry>;
  /** Starts the service, and tells what it does. Throws an error that a user understands. */
  readonly start: (options: UpOptions, progress: (text: string) => void) => Promise<RunningService>;
  /** As in `Signals`. A start survives being killed, and parts of it compute for seconds. */
  readonly endAtOnce: () => () => void;
  /** The folder of example manifests. */
  readonly examples: string;
};

const REDRAW_MS = 100;

/** Runs the service and the examples in this process, until it is interrupted or, with `exit`, the examples end. */
export async function runUp(options: UpOptions, deps: UpDeps): Promise<number> {
  const progress = (text: string) => deps.stdout(`${text} …\n`);
  const listenAgain = deps.endAtOnce();
  progress("starting gangway");
  const service = await deps
    .start(options, progress)
    .catch((error: Error) => {
      throw new CommandFailure(EXIT.refused, [`error: ${error.message}`]);
    })
    .finally(listenAgain);
  try {
    deps.stdout(`${service.inUse}\n`);
    if (service.migrated.length > 0) deps.stdout(`migrated the database: ran ${service.migrated.join(", ")}\n`);
    deps.stdout(`listening on ${service.address}\n`);
    if (options.examples) {
      const exitCode = await showExamples(service, options, deps);
      if (exitCode !== null) return exitCode;
    }
    await aborted(deps.signal);
    return EXIT.ok;
  } finally {
    await service.close();
  }
}

/** The exit status; null if the process continues to serve. */
async function showExamples(service: RunningService, options: UpOptions, deps: UpDeps): Promise<number | null> {
  const client = connect(service.address, deps.signal);
  try {
    const jobTable = new JobTable();
    const keys = submitAll(client, deps);
    await Promise.all([keys, follow(client, { jobTable, keys }, deps)]);
    const { lines, asExpected } = jobTable.summary(await keys);
    if (!options.exit) deps.stdout(grpcurlLines(service).join(""));
    deps.stdout(lines.map((line) => `${line}\n`).join(""));
    if (options.exit) return asExpected ? EXIT.ok : EXIT.jobFailed;
    deps.stdout("serving until Ctrl-C\n");
    return null;
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
  const read = { io: deps, kinds: await deps.kinds(), namespace: { name: "default", isExplicit: false } };
  const { ready, errors } = await readManifests([deps.examples], read);
  if (errors.length > 0) throw new CommandFailure(EXIT.refused, errors);
  const answers: CreateJobResponse[] = [];
  for (const { job } of ready) answers.push(await client.call(JobService.method.createJob, { job }));
  return answers.flatMap(({ job }) => (job === undefined ? [] : [keyOf(job)]));
}

/** Shows every change until these jobs have ended or a submission has failed. */
async function follow(
  client: GangwayClient,
  of: { readonly jobTable: JobTable; readonly keys: Promise<readonly string[]> },
  deps: UpDeps,
): Promise<void> {
  const screen = new Screen(of.jobTable, deps);
  const stop = new AbortController();
  const redraw = deps.isTty ? setInterval(() => screen.draw(), REDRAW_MS) : undefined;
  let keys: readonly string[] | null = null;
  const stopIfEnded = () => {
    if (keys !== null && of.jobTable.allEnded(keys)) stop.abort();
  };
  const submitted = of.keys.then(
    (all) => {
      keys = all;
      stopIfEnded();
    },
    () => stop.abort(),
  );
  try {
    for await (const change of client.stream(JobService.method.watchJobs, {}, stop.signal)) {
      applyChange(of.jobTable, change);
      if (change.job !== undefined) screen.printChange(change.job);
      stopIfEnded();
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    clearInterval(redraw);
    screen.draw();
    await submitted;
  }
}

function applyChange(jobTable: JobTable, { type, job }: WatchJobsResponse): void {
  if (type === WatchJobsResponse_Type.GAP) jobTable.clear();
  if (job === undefined) return;
  if (type === WatchJobsResponse_Type.DELETED) jobTable.remove(job);
  else jobTable.set(job);
}

/** Redraws one table in place on a terminal; anywhere else, prints a line for each change. */
class Screen {
  readonly #jobs: JobTable;
  readonly #deps: UpDeps;
  #drawnRows = 0;
  #drawnText = "";

  constructor(jobTable: JobTable, deps: UpDeps) {
    this.#jobs = jobTable;
    this.#deps = deps;
  }

  printChange(job: Parameters<JobTable["line"]>[0]): void {
    if (this.#deps.isTty) return;
    const line = this.#jobs.line(job);
    if (line !== null) this.#deps.stdout(`${line}\n`);
  }

  draw(): void {
    if (!this.#deps.isTty) return;
    const { columns, color } = this.#deps;
    // A wrapped line would take two rows, and the next table would not cover this one.
    const lines = this.#jobs.table({ columns, color }).map((line) => line.slice(0, columns));
    const text = lines.join("\n");
    if (text === this.#drawnText) return;
    const cursorUp = this.#drawnRows === 0 ? "" : `\u001b[${this.#drawnRows}A`;
    this.#deps.stdout(`${cursorUp}${lines.map((line) => `\u001b[2K${line}\n`).join("")}\u001b[J`);
    this.#drawnText = text;
    this.#drawnRows = lines.length;
  }
}

function grpcurlLines({ address }: RunningService): readonly string[] {
  return [
    "try:\n",
    `  grpcurl -plaintext ${address} describe gangway.v1.JobService\n`,
    `  grpcurl -plaintext -d '{"filter": {"phases": ["JOB_PHASE_SUCCEEDED"]}}' ${address} ` +
      "gangway.v1.JobService/ListJobs\n",
    `  grpcurl -plaintext ${address} gangway.v1.QueueService/ListQueues\n`,
  ];
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

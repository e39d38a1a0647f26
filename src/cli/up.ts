import {
  type CreateJobResponse,
  JobService,
  type WatchJobsResponse,
  WatchJobsResponse_Type,
} from "../gen/gangway/v1/job_service_pb.ts";
import { connect, type GangwayClient } from "./client.ts";
import type { CliIo, UpOptions } from "./deps.ts";
import { CommandFailure, EXIT } from "./exit.ts";
import { readManifests } from "./manifest/read-manifests.ts";
import { Board, keyOf } from "./up-board.ts";

/** A service that runs in this process. */
export type RunningService = {
  readonly address: string;
  readonly close: () => Promise<void>;
};

export type UpDeps = CliIo & {
  readonly signal: AbortSignal;
  /** Starts the service; throws an error that a user understands. */
  readonly start: (options: UpOptions) => Promise<RunningService>;
  /** The folder of example manifests. */
  readonly examples: string;
};

const REDRAW_MS = 100;

/** Runs the service in this process, with the examples on it, until it is interrupted or, with `exit`, until they have ended. */
export async function runUp(options: UpOptions, deps: UpDeps): Promise<number> {
  const service = await deps.start(options).catch((error: Error) => {
    throw new CommandFailure(EXIT.refused, [`error: ${error.message}`]);
  });
  try {
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

/** The exit status if the process is to end now, null if it goes on serving. */
async function showExamples(service: RunningService, options: UpOptions, deps: UpDeps): Promise<number | null> {
  const client = connect(service.address, deps.signal);
  try {
    const board = new Board();
    const keys = submitAll(client, deps);
    await Promise.all([keys, follow(client, { board, keys }, deps)]);
    const { lines, asExpected } = board.summary(await keys);
    if (!options.exit) deps.stdout(grpcurlLines(service).join(""));
    deps.stdout(lines.map((line) => `${line}\n`).join(""));
    if (options.exit) return asExpected ? EXIT.ok : EXIT.jobFailed;
    deps.stdout("serving until Ctrl-C\n");
    return null;
  } catch (error) {
    // Who asked how the examples end must not read their success out of an interruption.
    if (deps.signal.aborted) return options.exit ? EXIT.interrupted : EXIT.ok;
    throw error;
  } finally {
    client.close();
  }
}

/** Submits the examples in the order of their names; those that are there already stay as they are. */
async function submitAll(client: GangwayClient, deps: UpDeps): Promise<readonly string[]> {
  const read = { io: deps, namespace: { name: "default", isExplicit: false } };
  const { ready, errors } = await readManifests([deps.examples], read);
  if (errors.length > 0) throw new CommandFailure(EXIT.refused, errors);
  const answers: CreateJobResponse[] = [];
  for (const { job } of ready) answers.push(await client.call(JobService.method.createJob, { job }));
  return answers.flatMap(({ job }) => (job === undefined ? [] : [keyOf(job)]));
}

/** Shows every change until the jobs of these keys have ended, or the submission has failed. */
async function follow(
  client: GangwayClient,
  of: { readonly board: Board; readonly keys: Promise<readonly string[]> },
  deps: UpDeps,
): Promise<void> {
  const screen = new Screen(of.board, deps);
  const stop = new AbortController();
  const redraw = deps.isTty ? setInterval(() => screen.draw(), REDRAW_MS) : undefined;
  let keys: readonly string[] | null = null;
  const end = () => {
    if (keys !== null && of.board.allEnded(keys)) stop.abort();
  };
  const submitted = of.keys.then(
    (all) => {
      keys = all;
      end();
    },
    () => stop.abort(),
  );
  try {
    for await (const change of client.stream(JobService.method.watchJobs, {}, stop.signal)) {
      put(of.board, change);
      if (change.job !== undefined) screen.tell(change.job);
      end();
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    clearInterval(redraw);
    screen.draw();
    await submitted;
  }
}

function put(board: Board, { type, job }: WatchJobsResponse): void {
  if (type === WatchJobsResponse_Type.GAP) board.clear();
  if (job === undefined) return;
  if (type === WatchJobsResponse_Type.DELETED) board.remove(job);
  else board.set(job);
}

/** A terminal shows one table that is drawn again in place; anything else gets a line for each change. */
class Screen {
  readonly #board: Board;
  readonly #deps: UpDeps;
  #height = 0;
  #shown = "";

  constructor(board: Board, deps: UpDeps) {
    this.#board = board;
    this.#deps = deps;
  }

  tell(job: Parameters<Board["line"]>[0]): void {
    if (this.#deps.isTty) return;
    const line = this.#board.line(job);
    if (line !== null) this.#deps.stdout(`${line}\n`);
  }

  draw(): void {
    if (!this.#deps.isTty) return;
    const { columns, color } = this.#deps;
    // A line that wraps would be two to the terminal, and the table could not be drawn over again.
    const lines = this.#board.table({ columns, color }).map((line) => line.slice(0, columns));
    const text = lines.join("\n");
    if (text === this.#shown) return;
    const back = this.#height === 0 ? "" : `\u001b[${this.#height}A`;
    this.#deps.stdout(`${back}${lines.map((line) => `\u001b[2K${line}\n`).join("")}\u001b[J`);
    this.#shown = text;
    this.#height = lines.length;
  }
}

function grpcurlLines({ address }: RunningService): readonly string[] {
  return [
    "try:\n",
    `  grpcurl -plaintext ${address} describe gangway.v1.JobService\n`,
    `  grpcurl -plaintext -d '{"filter": {"phases": ["JOB_PHASE_SUCCEEDED"]}}' ${address} gangway.v1.JobService/ListJobs\n`,
    `  grpcurl -plaintext ${address} gangway.v1.QueueService/ListQueues\n`,
  ];
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

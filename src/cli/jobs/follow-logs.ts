/** Streams logs. A stream that follows continues after a restart of the service, with no line twice. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { FailureLog } from "../../gen/gangway/v1/failure_log_pb.ts";
import {
  JobService,
  type LogLine,
  type StreamJobLogsRequestSchema,
  type StreamJobLogsResponse,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { CallError } from "../rpc/call-error.ts";
import type { Run } from "../run/run-command.ts";
import { CommandFailure, EXIT } from "../shell/exit.ts";
import { BACKOFF_MS_MAX, BACKOFF_MS_MIN, isOfOldToken, RESTART_CODES, RESTART_MS_MAX } from "./restarts.ts";

/** Lines have their times. */
type LogRequest = Exclude<MessageInitShape<typeof StreamJobLogsRequestSchema>, { $typeName: string }>;
type LogRun = Pick<Run, "client"> & { readonly deps: Pick<Run["deps"], "clock" | "signal"> };

/**
 * The lines of a job's log with their times. With `follow`, until the job has ended. `onKept` is called before lines
 * that were kept of a container that failed, and also if there are none.
 */
export async function* followLogs(
  run: LogRun,
  request: LogRequest,
  onKept: (log: FailureLog) => void = () => {},
): AsyncGenerator<readonly LogLine[]> {
  const shown = new ShownLines();
  const retries = new Retries(run);
  for (;;) {
    try {
      for await (const message of run.client.stream(...callOf(run, request, shown))) {
        retries.worked();
        const fresh = shown.takeNew(message, onKept);
        if (fresh !== null) yield fresh;
      }
      return;
    } catch (error) {
      if (request.follow !== true) throw error;
      await retries.pause(error, shown.any);
    }
  }
}

/** The lines that were shown come again: only the first call takes the last few alone. */
function callOf({ deps }: LogRun, { tailLines, ...all }: LogRequest, shown: ShownLines) {
  const asked = shown.any || tailLines === undefined ? all : { ...all, tailLines };
  shown.begin();
  return [JobService.method.streamJobLogs, asked, deps.signal] as const;
}

/** Waits before the next call, and says when there is none. */
class Retries {
  readonly #run: LogRun;
  #backoffMs = BACKOFF_MS_MIN;
  /** When the stream broke. Null: it works. */
  #brokenMs: number | null = null;

  constructor(run: LogRun) {
    this.#run = run;
  }

  worked(): void {
    this.#backoffMs = BACKOFF_MS_MIN;
    this.#brokenMs = null;
  }

  /** Throws the error if no retry can help, or none has helped for too long. */
  async pause(error: unknown, hasLines: boolean): Promise<void> {
    const { clock, signal } = this.#run.deps;
    const isBroken = this.#brokenMs !== null;
    const mayHaveNewToken = error instanceof CallError && isOfOldToken(error) && hasLines && !isBroken;
    if (!mayHaveNewToken && !mayGoOn(error, hasLines || isBroken)) throw error;
    this.#brokenMs ??= clock.monotonicMs();
    if (clock.monotonicMs() - this.#brokenMs > RESTART_MS_MAX) throw error;
    await clock.sleep(this.#backoffMs, signal);
    if (signal.aborted) throw new CommandFailure(EXIT.interrupted, []);
    this.#backoffMs = Math.min(BACKOFF_MS_MAX, this.#backoffMs * 2);
  }
}

/**
 * False for a failure of the first call that the service itself answers, or that finds no service. A watch also retries
 * RESOURCE_EXHAUSTED; a log does not: its place was given to another caller, and the error says how to read it instead.
 */
function mayGoOn(error: unknown, hasWorked: boolean): boolean {
  if (!(error instanceof CallError) || !RESTART_CODES.includes(error.code)) return false;
  return hasWorked || /^the connection was lost/.test(error.details);
}

/** Distinguishes new lines from those that were shown before the stream began again. */
class ShownLines {
  /** True once a line was shown. */
  any = false;
  /** Of each replica: the time of its last line, and how many of its lines have this time. */
  readonly #last = new Map<string, { readonly time: bigint; readonly count: number }>();
  /** The same when the stream began again. */
  #before: ReadonlyMap<string, { readonly time: bigint; readonly count: number }> = new Map();
  /** How many lines of the last time before that the stream has repeated since. */
  readonly #repeated = new Map<string, number>();
  /** The kept logs that were shown. The service bounds how many a job has. */
  readonly #kept = new Set<string>();

  begin(): void {
    this.#repeated.clear();
    this.#before = new Map(this.#last);
  }

  /**
   * Adds the lines of a message to those that were shown. Returns the new ones; null if nothing of it is new. Calls
   * `onKept` if they are those of a kept log.
   */
  takeNew({ lines, kept }: StreamJobLogsResponse, onKept: (log: FailureLog) => void): readonly LogLine[] | null {
    if (kept !== undefined) {
      if (!this.#takeKept(kept)) return null;
      onKept(kept);
      return lines;
    }
    const fresh = lines.filter((line) => this.#takeLine(line));
    return fresh.length === 0 ? null : fresh;
  }

  /** Adds a kept log, all of whose lines are in one message. Returns false if it was shown before. */
  #takeKept({ pod, container, attempt, admission, restarts }: FailureLog): boolean {
    const key = `${pod} ${container} ${attempt} ${admission} ${restarts}`;
    const isNew = !this.#kept.has(key);
    this.#kept.add(key);
    this.any = true;
    return isNew;
  }

  /** Adds a line. Returns false if it was shown before. */
  #takeLine({ replica, container, time }: LogLine): boolean {
    const key = `${replica} ${container}`;
    const at = nanosOf(time);
    if (at !== null && this.#repeats(key, at)) return false;
    const last = this.#last.get(key);
    if (at !== null) this.#last.set(key, { time: at, count: at === last?.time ? last.count + 1 : 1 });
    this.any = true;
    return true;
  }

  /** Counts a line that has the last time before. Returns true if it was shown before the stream began again. */
  #repeats(key: string, at: bigint): boolean {
    const before = this.#before.get(key);
    if (before === undefined || at > before.time) return false;
    if (at < before.time) return true;
    const repeated = this.#repeated.get(key) ?? 0;
    this.#repeated.set(key, repeated + 1);
    return repeated < before.count;
  }
}

function nanosOf(time: Timestamp | undefined): bigint | null {
  return time === undefined ? null : time.seconds * 1_000_000_000n + BigInt(time.nanos);
}

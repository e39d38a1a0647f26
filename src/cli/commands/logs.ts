import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import type { FailureLog } from "../../gen/gangway/v1/failure_log_pb.ts";
import type { LogLine } from "../../gen/gangway/v1/job_service_pb.ts";
import { merge } from "../../runtime/merge.ts";
import { followLogs } from "../jobs/follow-logs.ts";
import { logTargets, type NamedLog, podTarget } from "../jobs/log-targets.ts";
import { addJobNamesOrFilter, type JobSelectionOptions } from "../jobs/select-jobs.ts";
import { keptHeading } from "../output/kept-log.ts";
import { isNotFound } from "../rpc/call-error.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { durationOption } from "../shell/options.ts";

type LogsOptions = JobSelectionOptions & {
  replica?: string;
  rank?: number;
  container?: string;
  follow?: boolean;
  tail?: bigint;
  since?: number;
  timestamps?: boolean;
  prefix?: boolean;
  previous?: boolean;
  attempt?: number;
  raw?: boolean;
};

export function registerLogs(registrar: Registrar): void {
  const command = addJobNamesOrFilter(registrar.program.command("logs"))
    .summary("Print the logs of the containers of jobs")
    .description(
      "Print the logs of the containers of jobs. A name may also be that of a pod. For a replica whose pod is gone, " +
        "print the last lines that were kept when its containers failed.",
    )
    .option(
      "-r, --replica <replica>",
      "only one replica, e.g. Worker/0, or one type, e.g. Worker (default: all replicas)",
    )
    .option("--rank <number>", "only the replica that has the process with this global rank", parseRank)
    .option("-c, --container <name>", "container of each replica (default: the main container of the job's kind)")
    .option("-f, --follow", "keep printing until the job has ended, also after its pods or the service restart")
    .option("--tail <lines>", "print only the last lines of each replica (default: all lines)", parseLines)
    .addOption(durationOption("--since <duration>", "print only lines that are at most this old, e.g. 10m"))
    .option("--timestamps", "print the time of each line before it")
    .option("--prefix", "print the replica and the container of each line before it, and the job if there are several")
    .option("--raw", "send control characters to the terminal, such as colours, instead of showing them")
    .option("--previous", "print the log of the container before its last restart")
    .option(
      "--attempt <number>",
      "print the last lines that were kept of the containers that failed in this attempt, at most 200 of each",
      parseAttempt,
    )
    .addHelpText(
      "after",
      examples(
        "gangway logs llama-pretrain --follow --prefix",
        "gangway logs llama-pretrain --replica Worker/0 --tail 100",
        "gangway logs llama-pretrain --rank 13 --since 10m",
        "gangway logs llama-pretrain-worker-0",
        "gangway logs llama-pretrain --attempt 2",
        "gangway logs -l sweep=lr --tail 5",
      ),
    );
  onRun<LogsOptions>(registrar, command, async (run, args, options) => {
    const { follow = false, previous = false, replica, rank } = options;
    if (follow && previous) throw usageFailure("--follow and --previous cannot be combined: that log has ended");
    if (options.attempt !== undefined) refuseWithAttempt(options);
    if (rank !== undefined && replica !== undefined) throw usageFailure("give either --replica or --rank, not both");
    const targets = await logTargets(run, args, options);
    const print = options.raw === true ? run.deps.stdoutAsIs : run.deps.stdout;
    for await (const text of logTexts(run, targets, options)) print(text);
    return EXIT.ok;
  });
}

/** The text of all logs: one after the other, or all at once with --follow. */
function logTexts(run: Run, targets: readonly NamedLog[], options: LogsOptions): AsyncIterable<string> {
  const writer = new LogWriter({ prefix: options.prefix === true || targets.length > 1, ...options });
  const names = new Map(targets.map((target) => [target, targets.length > 1 ? `${target.name} ` : ""]));
  const texts = targets.map((target) => textsOf(run, target, { writer, options, job: names.get(target) ?? "" }));
  return options.follow === true ? merge(texts) : inTurn(texts);
}

async function* inTurn(texts: readonly AsyncIterable<string>[]): AsyncGenerator<string> {
  for (const one of texts) yield* one;
}

type TextsOptions = { readonly writer: LogWriter; readonly options: LogsOptions; readonly job: string };

/** The text of one log. A name that no job has is read as that of a pod. */
async function* textsOf(run: Run, target: NamedLog, of: TextsOptions): AsyncGenerator<string> {
  try {
    yield* textsOfJob(run, target, of);
  } catch (error) {
    const pod = isNotFound(error) && target.orPod === true ? await podTarget(run, target.name) : null;
    if (pod === null) throw error;
    yield* textsOfJob(run, pod, of);
  }
}

async function* textsOfJob(
  run: Run,
  { namespace, name, replica }: NamedLog,
  { writer, options, job }: TextsOptions,
): AsyncGenerator<string> {
  const { container = "", tail, follow = false, previous = false, since, attempt } = options;
  const isTimed = options.timestamps === true || follow || since !== undefined;
  const request = {
    ...{ namespace, name, replica, container, follow, timestamps: isTimed, previous },
    ...(tail === undefined ? {} : { tailLines: tail }),
    ...(attempt === undefined ? {} : { attempt }),
  };
  const fromMs = since === undefined ? null : run.deps.clock.nowMs() - since;
  let heading = "";
  const onKept = (log: FailureLog) => {
    heading = writer.heading(keptHeading(log, job));
  };
  for await (const lines of followLogs(run, request, onKept)) {
    const shown = lines.filter(({ time }) => fromMs === null || time === undefined || timestampMs(time) >= fromMs);
    yield heading + shown.map((line) => writer.text(line, job)).join("");
    heading = "";
  }
}

/** Kept lines have ended, and have no times. */
function refuseWithAttempt(options: LogsOptions): void {
  const { follow, previous, timestamps, since } = options;
  const wrong = Object.entries({ follow, previous, timestamps, since: since !== undefined }).find(([, given]) => given);
  if (wrong === undefined) return;
  const why = "the lines that are kept of an attempt have ended, and have no times";
  throw usageFailure(`--attempt and --${wrong[0]} cannot be combined: ${why}`);
}

/** Attempts are counted from 1. */
function parseAttempt(text: string): number {
  const attempt = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (attempt === 0) throw new InvalidArgumentError("It must be the number of an attempt, 1 or more.");
  return attempt;
}

function parseRank(text: string): number {
  if (!/^\d{1,7}$/.test(text)) throw new InvalidArgumentError("It must be a rank, 0 or more.");
  return Number(text);
}

function parseLines(text: string): bigint {
  if (!/^\d{1,18}$/.test(text)) throw new InvalidArgumentError("It must be a number of lines, 0 or more.");
  return BigInt(text);
}

/** Joins the pieces of a long line. Ends an open line with a newline if another replica writes next. */
class LogWriter {
  readonly #options: { readonly prefix: boolean; readonly timestamps?: boolean };
  /** The replica of the line that is still open; empty if none is. */
  #openReplica = "";

  constructor(options: { readonly prefix: boolean; readonly timestamps?: boolean }) {
    this.#options = options;
  }

  /** A line of its own, which is not of a log. */
  heading(text: string): string {
    const newline = this.#openReplica === "" ? "" : "\n";
    this.#openReplica = "";
    return `${newline}${text}\n`;
  }

  /** `job`: what stands before the replica in a prefix. */
  text(line: LogLine, job: string): string {
    const replica = job + line.replica;
    const continues = this.#openReplica === replica;
    const newline = this.#openReplica !== "" && !continues ? "\n" : "";
    const head = continues ? "" : this.#head(line, job);
    this.#openReplica = line.partial ? replica : "";
    return `${newline}${head}${line.text}${line.partial ? "" : "\n"}`;
  }

  #head({ replica, container, time }: LogLine, job: string): string {
    const prefix = this.#options.prefix ? `[${job}${replica} ${container}] ` : "";
    return prefix + (this.#options.timestamps === true && time !== undefined ? `${timeText(time)} ` : "");
  }
}

function timeText(time: Timestamp): string {
  return new Date(timestampMs(time)).toISOString();
}

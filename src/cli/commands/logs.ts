import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { JobService, type LogLine } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { resolveJobName } from "../jobs/job-name.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

type LogsOptions = {
  replica?: string;
  container?: string;
  follow?: boolean;
  tail?: bigint;
  timestamps?: boolean;
  prefix?: boolean;
  previous?: boolean;
  raw?: boolean;
};

export function registerLogs(registrar: Registrar): void {
  const command = registrar.program
    .command("logs")
    .description("Print the logs of a job's containers")
    .argument("<name>", "name of the job, as NAME or KIND/NAME")
    .option(
      "-r, --replica <replica>",
      "only one replica, e.g. Worker/0, or one type, e.g. Worker (default: all replicas)",
    )
    .option("-c, --container <name>", "container of each replica (default: the main container of the job's kind)")
    .option("-f, --follow", "keep printing until the job has ended, also after its pods restart")
    .option("--tail <lines>", "print only the last lines of each replica (default: all lines)", parseLines)
    .option("--timestamps", "print the time of each line before it")
    .option("--prefix", "print the replica and the container of each line before it")
    .option("--raw", "send control characters to the terminal, such as colours, instead of showing them")
    .option("--previous", "print the log of the container before its last restart")
    .addHelpText(
      "after",
      examples(
        "gangway logs llama-pretrain --follow --prefix",
        "gangway logs llama-pretrain --replica Worker/0 --tail 100",
        "gangway logs llama-pretrain -r Master --timestamps",
      ),
    );
  onRun<LogsOptions>(registrar, command, async (run, [argument = ""], options) => {
    const { replica = "", container = "", tail } = options;
    const { follow = false, timestamps = false, previous = false, prefix = false } = options;
    if (follow && previous) throw usageFailure("--follow and --previous cannot be combined: that log has ended");
    const name = await resolveJobName(run, argument);
    const request = { namespace: run.namespace, name, replica, container, follow, timestamps, previous };
    const writer = new LogWriter({ prefix, timestamps });
    const stream = run.client.stream(
      JobService.method.streamJobLogs,
      tail === undefined ? request : { ...request, tailLines: tail },
      run.deps.signal,
    );
    const print = options.raw === true ? run.deps.stdoutAsIs : run.deps.stdout;
    for await (const { lines } of stream) print(lines.map((line) => writer.text(line)).join(""));
    return EXIT.ok;
  });
}

function parseLines(text: string): bigint {
  if (!/^\d{1,18}$/.test(text)) throw new InvalidArgumentError("It must be a number of lines, 0 or more.");
  return BigInt(text);
}

/** Joins the pieces of a long line. Ends an open line with a newline if another replica writes next. */
class LogWriter {
  readonly #options: { readonly prefix: boolean; readonly timestamps: boolean };
  /** The replica of the line that is still open; empty if none is. */
  #openReplica = "";

  constructor(options: { readonly prefix: boolean; readonly timestamps: boolean }) {
    this.#options = options;
  }

  text(line: LogLine): string {
    const continues = this.#openReplica === line.replica;
    const newline = this.#openReplica !== "" && !continues ? "\n" : "";
    const head = continues ? "" : this.#head(line);
    this.#openReplica = line.partial ? line.replica : "";
    return `${newline}${head}${line.text}${line.partial ? "" : "\n"}`;
  }

  #head({ replica, container, time }: LogLine): string {
    const prefix = this.#options.prefix ? `[${replica} ${container}] ` : "";
    return prefix + (this.#options.timestamps && time !== undefined ? `${timeText(time)} ` : "");
  }
}

function timeText(time: Timestamp): string {
  return new Date(timestampMs(time)).toISOString();
}

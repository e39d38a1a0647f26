import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { JobService, type LogLine } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { namedJob } from "../named-job.ts";
import { examples, namespaceOption, onRun, type Registrar } from "../shell.ts";

type Options = {
  namespace: string;
  replica?: string;
  container?: string;
  follow?: boolean;
  tail?: bigint;
  timestamps?: boolean;
  prefix?: boolean;
  previous?: boolean;
};

export function registerLogs(registrar: Registrar): void {
  const command = registrar.program
    .command("logs")
    .description("show what the containers of a job have written")
    .argument("<name>", "name of the job, as NAME or KIND/NAME")
    .addOption(namespaceOption())
    .option("-r, --replica <replica>", "of one replica, Worker/0, or of all of a type, Worker (default: of all)")
    .option("-c, --container <name>", "of this container (default: the one that the job's kind goes by)")
    .option("-f, --follow", "go on until the job has ended, also when its pods start again")
    .option("--tail <lines>", "only the last lines of each replica", parseLines)
    .option("--timestamps", "begin each line with the time when it was written")
    .option("--prefix", "begin each line with its replica and container")
    .option("--previous", "of the run before the container's last restart in its pod")
    .addHelpText(
      "after",
      examples(
        "gangway logs llama-pretrain --follow --prefix",
        "gangway logs llama-pretrain --replica Worker/0 --tail 100",
        "gangway logs llama-pretrain -r Master --timestamps",
      ),
    );
  onRun<Options>(registrar, command, async (run, [given = ""], options) => {
    const { client, deps } = run;
    const {
      namespace,
      replica = "",
      container = "",
      follow = false,
      tail,
      timestamps = false,
      previous = false,
    } = options;
    if (follow && previous) throw usageFailure("--previous is over and cannot be followed");
    const asked = {
      namespace,
      name: await namedJob(run, given, namespace),
      replica,
      container,
      follow,
      timestamps,
      previous,
    };
    const request = tail === undefined ? asked : { ...asked, tailLines: tail };
    const writer = new Writer({ prefix: options.prefix === true, timestamps });
    for await (const { lines } of client.stream(JobService.method.streamJobLogs, request, deps.signal)) {
      deps.stdout(lines.map((line) => writer.text(line)).join(""));
    }
    return EXIT.ok;
  });
}

function parseLines(text: string): bigint {
  if (!/^\d{1,18}$/.test(text)) throw new InvalidArgumentError("It must be a number of lines, 0 or more.");
  return BigInt(text);
}

/** Puts pieces together again: a line that goes on stays open until another replica writes. */
class Writer {
  readonly #shown: { readonly prefix: boolean; readonly timestamps: boolean };
  /** The replica whose line is not ended yet. */
  #open = "";

  constructor(shown: { readonly prefix: boolean; readonly timestamps: boolean }) {
    this.#shown = shown;
  }

  text(line: LogLine): string {
    const goesOn = this.#open === line.replica;
    const broken = this.#open !== "" && !goesOn ? "\n" : "";
    const head = goesOn ? "" : this.#head(line);
    this.#open = line.partial ? line.replica : "";
    return `${broken}${head}${line.text}${line.partial ? "" : "\n"}`;
  }

  #head({ replica, container, time }: LogLine): string {
    const prefix = this.#shown.prefix ? `[${replica} ${container}] ` : "";
    return prefix + (this.#shown.timestamps && time !== undefined ? `${timeText(time)} ` : "");
  }
}

function timeText(time: Timestamp): string {
  return new Date(timestampMs(time)).toISOString();
}

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import {
  type AllocateResourceResponse,
  AllocateResourceResponseSchema,
  AllocationStatus,
  ReleaseResourceResponseSchema,
  ResourceManager,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import type { Program, TakenSignal } from "../deps.ts";
import { formatSpan } from "../duration.ts";
import { CommandFailure, EXIT, usageFailure } from "../exit.ts";
import { giveBack, holdWhile, leaseField, leaseOf, type TokenRequest } from "../hold-token.ts";
import { printLines, show, showLine } from "../output.ts";
import { releaseWord, violationText } from "../quota-text.ts";
import {
  durationOption,
  examples,
  type OutputFormat,
  onRun,
  outputOption,
  parseCount,
  type Registrar,
  type Run,
} from "../shell.ts";
import { standInLine } from "../stand-in-line.ts";

type Options = {
  readonly amount?: bigint;
  readonly project?: string;
  readonly namespace?: string;
  readonly projectCap?: bigint;
  readonly namespaceCap?: bigint;
  readonly queue?: string;
  readonly holder?: string;
  readonly lease?: number;
  readonly priority?: number;
  /** True: as long as it takes. */
  readonly wait?: number | true;
  readonly exec?: boolean;
  readonly output: OutputFormat;
};

/** `gangway alloc`: takes a token of a pool, at once or in its line, for good or while a program runs. */
export function registerAlloc(registrar: Registrar): void {
  const command = registrar.program
    .command("alloc")
    .summary("take a token of a pool, at once or in its line, for good or while a program runs")
    .description(
      "take a token of a pool; exit status 0: granted, 3: refused, 4: the service is away, 124: waited too long.\n" +
        "With --exec the token is held while a program runs: renewed in time, and released at its end. The program finds\n" +
        "GANGWAY_POOL, GANGWAY_TOKEN and GANGWAY_FENCE in its environment, gets the signals that come, and its exit status\n" +
        "is the command's. It is ended (SIGTERM, 10 s later SIGKILL) if the token is lost.",
    )
    .argument("<pool>", "the pool, e.g. gpu/h100")
    .argument("<token>", "names the grant; asking again for a token that is held changes nothing")
    .argument("[command...]", "with --exec: after -- the program and its arguments, or one line for the shell");
  allocOptions(command).addHelpText(
    "after",
    examples(
      "gangway alloc ex:warehouse query-17 --lease 10m",
      "gangway alloc gpu/h100 notebook-ann --amount 2 --project nlp --wait=30m",
      "gangway alloc ex:warehouse nightly --wait --exec -- ./nightly.sh --full",
      "gangway alloc ex:warehouse nightly --exec './prepare.sh && ./nightly.sh'",
    ),
  );
  onRun<Options>(registrar, command, async (run, [pool = "", token = "", ...program], options) => {
    if (options.exec !== true && program.length > 0) throw usageFailure("a program is only run with --exec");
    if (options.exec === true && program.length === 0) throw usageFailure("--exec needs a program after --");
    const request = toRequest({ resourceNamespace: pool, allocationToken: token }, options);
    return new Allocation(run, request, options).run(program);
  });
}

function allocOptions(command: Command): Command {
  return command
    .option("--amount <count>", "how much of the pool (default: 1)", parseCount)
    .option("--project <name>", "whose project uses it (default: default)")
    .option("--namespace <name>", "whose namespace uses it (default: default)")
    .option("--project-cap <count>", "refuse if the project would use more than so much of the pool", parseCount)
    .option("--namespace-cap <count>", "refuse if the namespace would use more than so much of the pool", parseCount)
    .option("--queue <name>", "charge this queue (default: the pool's)")
    .option("--holder <name>", "who may renew and release it (default: the caller's identity)")
    .addOption(durationOption("--lease <duration>", "how long it is held unless renewed (default: the pool's)"))
    .option("--priority <number>", "its place in the line, higher first (default: 0)", parsePriority)
    .addOption(durationOption("--wait [timeout]", "wait in the pool's line, no longer than the timeout"))
    .option("--exec", "hold the token while a program runs")
    .addOption(outputOption());
}

function toRequest(ref: { resourceNamespace: string; allocationToken: string }, options: Options): TokenRequest {
  const { amount, project = "", namespace = "", queue = "", holder = "", priority = 0, lease } = options;
  const { projectCap, namespaceCap } = options;
  const resourceConstraints = {
    ...(projectCap === undefined ? {} : { projectScope: { value: projectCap } }),
    ...(namespaceCap === undefined ? {} : { namespaceScope: { value: namespaceCap } }),
  };
  const scopes = { project, namespace, queue, holder, priority, resourceConstraints };
  return { ...ref, ...scopes, ...(amount === undefined ? {} : { amount }), ...leaseField(lease) };
}

/** A single argument with white space in it is no program's name but a line for the shell. */
function commandOf(argv: readonly string[]): readonly string[] {
  const [first = ""] = argv;
  return argv.length === 1 && /\s/.test(first) ? ["sh", "-c", first] : argv;
}

/** One allocation from the command line, which a signal may end at any time. */
class Allocation {
  readonly #run: Run;
  readonly #request: TokenRequest;
  readonly #options: Options;
  readonly #stopped = new AbortController();
  #program: Program | null = null;

  constructor(run: Run, request: TokenRequest, options: Options) {
    this.#run = run;
    this.#request = request;
    this.#options = options;
  }

  async run(argv: readonly string[]): Promise<number> {
    // From here on a signal must not leave a token behind that nobody knows of.
    const giveSignalsBack = this.#run.deps.takeSignals((signal) => this.#onSignal(signal));
    try {
      const { exec, lease } = this.#options;
      const leaseMs = exec === true ? await leaseOf(this.#run, this.#request.resourceNamespace, lease) : null;
      const response = await this.#obtain();
      if (this.#stopped.signal.aborted) {
        if (!response.held) await giveBack(this.#run, this.#request);
        throw new CommandFailure(EXIT.interrupted, []);
      }
      if (response.status !== AllocationStatus.GRANTED) return this.#refused(response);
      if (exec !== true) return this.#granted(response);
      const say = (why: string) => this.#run.deps.stderr(`error: ${why}\n`);
      this.#program = this.#run.deps.startProgram(commandOf(argv), this.#variables(response), say);
      const held = { request: this.#request, leaseMs, renewNow: response.held };
      return await holdWhile(this.#run, held, this.#program);
    } finally {
      giveSignalsBack();
    }
  }

  #onSignal({ name, fromTerminal }: TakenSignal): void {
    if (this.#program === null) this.#stopped.abort();
    else if (!fromTerminal) this.#program.signal(name);
  }

  async #obtain(): Promise<AllocateResourceResponse> {
    const { wait } = this.#options;
    if (wait === undefined) return this.#run.client.call(ResourceManager.method.allocateResource, this.#request);
    const timeoutMs = wait === true ? null : wait;
    const stood = await standInLine(this.#run, this.#request, { timeoutMs, signal: this.#stopped.signal });
    if (stood.kind === "granted") return stood.response;
    if (stood.kind === "left") throw new CommandFailure(EXIT.interrupted, []);
    throw new CommandFailure(EXIT.waitedTooLong, ["error: waited too long: the token was not granted in time"]);
  }

  #granted(response: AllocateResourceResponse): number {
    const { output } = this.#options;
    const { resourceNamespace, allocationToken } = this.#request;
    const { expireTime, held, fence } = response;
    const leftMs = expireTime === undefined ? null : timestampMs(expireTime) - this.#run.deps.clock.nowMs();
    const lapses = leftMs === null ? "does not lapse" : `lapses in ${formatSpan(leftMs)}`;
    const line = `${resourceNamespace} ${allocationToken} ${held ? "held already" : "granted"}, fence ${fence}, ${lapses}`;
    if (output === "table") printLines(this.#run, [line]);
    else this.#show(response);
    return EXIT.ok;
  }

  #refused(response: AllocateResourceResponse): number {
    const { status, violated } = response;
    if (this.#options.exec !== true && this.#options.output !== "table") this.#show(response);
    const what = status === AllocationStatus.EXHAUSTED ? "exhausted" : "namespace quota exceeded";
    const why = violated === undefined ? "" : `: ${violationText(violated)}`;
    throw new CommandFailure(EXIT.refused, [`error: ${what}${why}`]);
  }

  #show(message: AllocateResourceResponse): void {
    const names = message.status === AllocationStatus.GRANTED ? [`allocation/${this.#request.allocationToken}`] : [];
    const table = { columns: [], rows: [], none: "" };
    show(this.#run, this.#options.output, { ...table, schema: AllocateResourceResponseSchema, message, names });
  }

  #variables({ fence }: AllocateResourceResponse): Readonly<Record<string, string>> {
    const { resourceNamespace, allocationToken } = this.#request;
    return { GANGWAY_POOL: resourceNamespace, GANGWAY_TOKEN: allocationToken, GANGWAY_FENCE: String(fence) };
  }
}

/** `gangway release`: gives a token back. */
export function registerRelease(registrar: Registrar): void {
  const command = registrar.program
    .command("release")
    .description("give a token back; one that nobody holds is no error")
    .argument("<pool>", "the pool, e.g. gpu/h100")
    .argument("<token>", "what names the grant")
    .option("--holder <name>", "who holds it (default: the caller's identity)")
    .option("--project <name>", "refuse if it is held under another project")
    .option("--namespace <name>", "refuse if it is held under another namespace")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway release ex:warehouse query-17"));
  type Scope = { holder?: string; project?: string; namespace?: string; output: OutputFormat };
  onRun<Scope>(registrar, command, async (run, [resourceNamespace = "", allocationToken = ""], options) => {
    const { holder = "", project = "", namespace = "", output } = options;
    const request = { resourceNamespace, allocationToken, holder, project, namespace };
    const message = await run.client.call(ResourceManager.method.releaseResource, request);
    const line = `${resourceNamespace} ${allocationToken} ${releaseWord(message.outcome)}`;
    const names = [`allocation/${allocationToken}`];
    showLine(run, output, { line, names, schema: ReleaseResourceResponseSchema, message });
    return EXIT.ok;
  });
}

function parsePriority(text: string): number {
  if (!/^-?\d{1,10}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

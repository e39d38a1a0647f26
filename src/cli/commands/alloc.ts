/** Serves callers of a shell: takes a token of a pool, waits for it, or holds it while a program runs. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  type AllocateResourceResponse,
  AllocateResourceResponseSchema,
  AllocationStatus,
  ResourceManager,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { formatSpan } from "../output/duration.ts";
import { printLines, printResponse } from "../output/print.ts";
import { violationText } from "../output/quota-text.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import type { ChildProgram, TakenSignal } from "../shell/deps.ts";
import { CommandFailure, EXIT, timeoutFailure, usageFailure } from "../shell/exit.ts";
import { durationOption, isTable, type OutputFormat, outputOption, parseCount, parseInt32 } from "../shell/options.ts";
import { type HeldTokenRequest, holdTokenWhile, leaseField, leaseOfToken, releaseToken } from "../tokens/hold-token.ts";
import { waitForToken } from "../tokens/wait-for-token.ts";

type AllocOptions = {
  readonly amount?: bigint;
  readonly project?: string;
  readonly projectCap?: bigint;
  readonly namespaceCap?: bigint;
  readonly queue?: string;
  readonly holder?: string;
  readonly lease?: number;
  readonly priority?: number;
  /** True: no timeout. */
  readonly wait?: number | true;
  readonly exec?: boolean;
  readonly output: OutputFormat;
};

/**
 * Scripts use `gangway alloc` to share a limited resource: they take a token of a pool, at once or after waiting in
 * line, and keep it for a lease or while a program runs.
 */
export function registerAlloc(registrar: Registrar): void {
  const command = registrar.program
    .command("alloc")
    .summary("Take a token of a pool, for a lease or while a program runs")
    .description(
      "Take a token of a pool.\n" +
        "Exit status: 0 if granted, 3 if refused, 4 if the service is unavailable, 124 after the timeout of " +
        "--wait.\n\n" +
        "With --exec, run a program while the token is held. The command renews the token in time, releases it at " +
        "the end, and returns the program's exit status. The program gets GANGWAY_POOL, GANGWAY_TOKEN and " +
        "GANGWAY_FENCE in its environment, and the signals that the command receives. If the token is lost, or its " +
        "lease is over before it could be renewed, the program gets SIGTERM, and SIGKILL 10 s later.",
    )
    .argument("<pool>", "name of the pool, e.g. gpu/h100")
    .argument("<token>", "name for the token; requesting a token again that you hold changes nothing")
    .argument("[command...]", "with --exec: the program and its arguments after --, or one line for the shell");
  addAllocOptions(command).addHelpText(
    "after",
    examples(
      "gangway alloc ex:warehouse query-17 --lease 10m",
      "gangway alloc gpu/h100 notebook-ann --amount 2 --project nlp --wait=30m",
      "gangway alloc ex:warehouse nightly --wait --exec -- ./nightly.sh --full",
      "gangway alloc ex:warehouse nightly --exec './prepare.sh && ./nightly.sh'",
    ),
  );
  onRun<AllocOptions>(registrar, command, async (run, [pool = "", token = "", ...argv], options) => {
    if (options.exec !== true && argv.length > 0) throw usageFailure("a program needs --exec");
    if (options.exec === true && argv.length === 0) throw usageFailure("--exec needs a program after --");
    const namespace = run.chosenNamespace ?? "";
    const request = requestOf({ resourceNamespace: pool, allocationToken: token, namespace }, options);
    return new AllocCommand(run, request, options).run(argv);
  });
}

function addAllocOptions(command: Command): Command {
  return command
    .option("--amount <count>", "amount of the pool (default: 1)", parseCount)
    .option("--project <name>", "project to charge (default: default)")
    .option("--project-cap <count>", "refuse if the project would then use more of the pool than this", parseCount)
    .option("--namespace-cap <count>", "refuse if the namespace would then use more of the pool than this", parseCount)
    .option("--queue <name>", "queue to charge (default: the pool's queue)")
    .option("--holder <name>", "name of the holder, who may renew and release it (default: the caller's identity)")
    .addOption(
      durationOption("--lease <duration>", "time until the token expires unless renewed (default: the pool's)"),
    )
    .option("--priority <number>", "priority in the waiting line; higher numbers are first (default: 0)", parseInt32)
    .addOption(durationOption("--wait [timeout]", "wait in the pool's waiting line (default: no timeout)"))
    .option("--exec", "hold the token while a program runs")
    .addOption(outputOption());
}

function requestOf(
  ref: { resourceNamespace: string; allocationToken: string; namespace: string },
  options: AllocOptions,
): HeldTokenRequest {
  const { amount, project = "", queue = "", holder = "", priority = 0, lease } = options;
  const { projectCap, namespaceCap } = options;
  const resourceConstraints = {
    ...(projectCap === undefined ? {} : { projectScope: { value: projectCap } }),
    ...(namespaceCap === undefined ? {} : { namespaceScope: { value: namespaceCap } }),
  };
  const scopes = { project, queue, holder, priority, resourceConstraints };
  return { ...ref, ...scopes, ...(amount === undefined ? {} : { amount }), ...leaseField(lease) };
}

/** Runs a single argument that contains white space with the shell. */
function shellArgv(argv: readonly string[]): readonly string[] {
  const [first = ""] = argv;
  return argv.length === 1 && /\s/.test(first) ? ["sh", "-c", first] : argv;
}

/** One run of `gangway alloc`. A signal may end it at any time. */
class AllocCommand {
  readonly #run: Run;
  readonly #request: HeldTokenRequest;
  readonly #options: AllocOptions;
  readonly #stopped = new AbortController();
  #program: ChildProgram | null = null;

  constructor(run: Run, request: HeldTokenRequest, options: AllocOptions) {
    this.#run = run;
    this.#request = request;
    this.#options = options;
  }

  async run(argv: readonly string[]): Promise<number> {
    // From here on, a signal must not end the process before a granted token is released.
    const stopTakingSignals = this.#run.deps.takeSignals((signal) => this.#onSignal(signal));
    try {
      const { exec, lease } = this.#options;
      const leaseMs = exec === true ? await leaseOfToken(this.#run, this.#request.resourceNamespace, lease) : null;
      const { response, sentMs } = await this.#allocate();
      if (this.#stopped.signal.aborted) {
        if (!response.held) await releaseToken(this.#run, this.#request);
        throw new CommandFailure(EXIT.interrupted, []);
      }
      if (response.status !== AllocationStatus.GRANTED) return this.#refuse(response);
      if (exec !== true) return this.#printGrant(response);
      const onFailure = (reason: string) => this.#run.deps.stderr(`error: ${reason}\n`);
      this.#program = this.#run.deps.startProgram(shellArgv(argv), this.#variables(response), onFailure);
      const token = { request: this.#request, leaseMs, leasedAtMs: sentMs, renewNow: response.held };
      return await holdTokenWhile(this.#run, token, this.#program);
    } finally {
      stopTakingSignals();
    }
  }

  #onSignal({ name, fromTerminal }: TakenSignal): void {
    if (this.#program === null) this.#stopped.abort();
    else if (!fromTerminal) this.#program.signal(name);
  }

  /** `sentMs`: a monotonic time, before which the lease did not begin. */
  async #allocate(): Promise<{ readonly response: AllocateResourceResponse; readonly sentMs: number }> {
    const { wait } = this.#options;
    const { clock } = this.#run.deps;
    if (wait === undefined) {
      const sentMs = clock.monotonicMs();
      return { sentMs, response: await this.#run.client.call(ResourceManager.method.allocateResource, this.#request) };
    }
    const timeoutMs = wait === true ? null : wait;
    const outcome = await waitForToken(this.#run, this.#request, { timeoutMs, signal: this.#stopped.signal });
    // The grant comes as soon as it is made.
    if (outcome.kind === "granted") return { sentMs: clock.monotonicMs(), response: outcome.response };
    if (outcome.kind === "interrupted") throw new CommandFailure(EXIT.interrupted, []);
    throw timeoutFailure("the token was not granted in time");
  }

  #printGrant(response: AllocateResourceResponse): number {
    const { output } = this.#options;
    const { resourceNamespace, allocationToken } = this.#request;
    const { expireTime, held, fence } = response;
    const leftMs = expireTime === undefined ? null : timestampMs(expireTime) - this.#run.deps.clock.nowMs();
    const expiry = leftMs === null ? "does not expire" : `expires in ${formatSpan(leftMs)}`;
    const result = held ? "already held" : "granted";
    const line = `${resourceNamespace} ${allocationToken} ${result}, fence ${fence}, ${expiry}`;
    if (isTable(output)) printLines(this.#run, [line]);
    else this.#printResponse(response);
    return EXIT.ok;
  }

  #refuse(response: AllocateResourceResponse): number {
    const { status, violated } = response;
    if (this.#options.exec !== true && !isTable(this.#options.output)) this.#printResponse(response);
    const refusal = status === AllocationStatus.EXHAUSTED ? "exhausted" : "namespace quota exceeded";
    const reason = violated === undefined ? "" : `: ${violationText(violated)}`;
    throw new CommandFailure(EXIT.refused, [`error: ${refusal}${reason}`]);
  }

  #printResponse(message: AllocateResourceResponse): void {
    const names = message.status === AllocationStatus.GRANTED ? [`allocation/${this.#request.allocationToken}`] : [];
    const response = { schema: AllocateResourceResponseSchema, message, names };
    printResponse(this.#run, this.#options.output, { ...response, columns: [], rows: [], none: "" });
  }

  #variables({ fence }: AllocateResourceResponse): Readonly<Record<string, string>> {
    const { resourceNamespace, allocationToken } = this.#request;
    return { GANGWAY_POOL: resourceNamespace, GANGWAY_TOKEN: allocationToken, GANGWAY_FENCE: String(fence) };
  }
}

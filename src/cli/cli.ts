import { Command, CommanderError } from "commander";
import { registerAlloc } from "./commands/alloc.ts";
import { registerCancel } from "./commands/cancel.ts";
import { registerCluster } from "./commands/cluster.ts";
import { registerDelete } from "./commands/delete.ts";
import { registerEvents } from "./commands/events.ts";
import { registerExplain } from "./commands/explain.ts";
import { registerGetAndList } from "./commands/get.ts";
import { registerKinds } from "./commands/kinds.ts";
import { registerLogs } from "./commands/logs.ts";
import { registerMigrate } from "./commands/migrate.ts";
import { registerNamespace } from "./commands/namespace.ts";
import { registerQueue } from "./commands/queue.ts";
import { registerQuota } from "./commands/quota.ts";
import { registerRelease } from "./commands/release.ts";
import { registerRerun } from "./commands/rerun.ts";
import { registerScale } from "./commands/scale.ts";
import { registerServe } from "./commands/serve.ts";
import { registerSubmit } from "./commands/submit.ts";
import { registerSuspendAndResume } from "./commands/suspend.ts";
import { registerUp } from "./commands/up.ts";
import { registerUpdate } from "./commands/update.ts";
import { registerWait } from "./commands/wait.ts";
import { registerWatch } from "./commands/watch.ts";
import type { CliDeps } from "./deps.ts";
import { CommandFailure, EXIT } from "./exit.ts";
import { examples, type Registrar } from "./run-command.ts";

/** The commands by the heading that the help shows above them. `gangway A B` is in commands/A/B.ts or commands/A.ts. */
const COMMAND_GROUPS: Readonly<Record<string, readonly ((registrar: Registrar) => void)[]>> = {
  "Run the service:": [registerUp, registerServe, registerMigrate],
  "Submit and change jobs:": [
    registerSubmit,
    registerRerun,
    registerUpdate,
    registerScale,
    registerSuspendAndResume,
    registerCancel,
    registerDelete,
  ],
  "See jobs:": [
    registerGetAndList,
    registerWatch,
    registerWait,
    registerExplain,
    registerEvents,
    registerLogs,
    registerKinds,
  ],
  "Share resources:": [registerQueue, registerNamespace, registerQuota, registerAlloc, registerRelease],
  "Manage clusters:": [registerCluster],
};

const EXIT_STATUSES = `
Exit status:
  0    the command succeeded
  1    a job that the command waited for did not succeed
  2    the command line is wrong
  3    the service or the command line refused the request
  4    the service is unavailable
  124  a wait reached its timeout
  130  the command was interrupted
`;

/**
 * Runs one command line (the arguments after the program's name) and resolves with its exit status. Prints failures on
 * stderr. Rejects only for a bug.
 */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = newProgram(deps);
  const registrar: Registrar = {
    program,
    deps,
    finish: (code) => {
      exitCode = code;
    },
  };
  for (const [heading, commands] of Object.entries(COMMAND_GROUPS)) {
    program.commandsGroup(heading);
    for (const register of commands) register(registrar);
  }
  try {
    await program.parseAsync([...argv], { from: "user" });
    return exitCode;
  } catch (error) {
    return report(error, deps);
  }
}

function newProgram(deps: CliDeps): Command {
  return new Command("gangway")
    .description(
      "Run distributed training jobs on Kubernetes clusters. Each job is admitted as a gang: with all the pods that " +
        "it needs, in one cluster, or not at all.",
    )
    .version(deps.version, "--version", "print the version of this program")
    .option("--address <host:port>", "address of the service (default: GANGWAY_ADDRESS, or 127.0.0.1:7443)")
    .option("-n, --namespace <name>", "namespace of jobs and tokens (default: default)")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "Print the help of a command")
    .configureHelp({ showGlobalOptions: true, subcommandTerm: (command) => command.name(), subcommandDescription })
    .configureOutput({
      writeOut: deps.stdout,
      writeErr: deps.stderr,
      getOutHelpWidth: () => deps.columns,
      getErrHelpWidth: () => deps.columns,
      getOutHasColors: () => deps.color,
      getErrHasColors: () => deps.color,
    })
    .showHelpAfterError("(use --help to see the arguments and options)")
    .exitOverride()
    .addHelpText(
      "after",
      examples(
        "gangway up",
        "gangway submit -f examples/ --wait",
        "gangway list --phase waiting",
        "gangway explain llama-pretrain",
      ) + EXIT_STATUSES,
    );
}

/** The summary of a command in the list of commands, with its other names. */
function subcommandDescription(command: Command): string {
  const aliases = command.aliases();
  const summary = command.summary() || command.description();
  return aliases.length === 0 ? summary : `${summary} (also: ${aliases.join(", ")})`;
}

function report(error: unknown, deps: CliDeps): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const failure = failureOf(error, deps);
  if (failure.lines.length > 0) deps.stderr(`${failure.lines.join("\n")}\n`);
  return failure.exitCode;
}

function failureOf(error: unknown, deps: CliDeps): CommandFailure {
  if (error instanceof CommandFailure) return error;
  if (deps.signal.aborted) return new CommandFailure(EXIT.interrupted, []);
  throw error;
}

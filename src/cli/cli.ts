import { Command, CommanderError } from "commander";
import { registerAlloc, registerRelease } from "./commands/alloc.ts";
import { registerCluster } from "./commands/cluster.ts";
import { registerEvents, registerExplain } from "./commands/explain.ts";
import { registerCancel, registerDelete, registerGet, registerWait } from "./commands/job-commands.ts";
import { registerKinds } from "./commands/kinds.ts";
import { registerList, registerWatch } from "./commands/list.ts";
import { registerLogs } from "./commands/logs.ts";
import { registerMigrate } from "./commands/migrate.ts";
import { registerNamespace } from "./commands/namespace.ts";
import { registerQueue } from "./commands/queue.ts";
import { registerQuota } from "./commands/quota.ts";
import { registerServe } from "./commands/serve.ts";
import { registerSubmit } from "./commands/submit.ts";
import { registerUp } from "./commands/up.ts";
import { registerResume, registerScale, registerSuspend, registerUpdate } from "./commands/update.ts";
import type { CliDeps } from "./deps.ts";
import { CommandFailure, EXIT } from "./exit.ts";
import { examples, type Registrar } from "./shell.ts";

const REGISTER = [
  registerUp,
  registerServe,
  registerMigrate,
  registerSubmit,
  registerGet,
  registerList,
  registerWatch,
  registerWait,
  registerUpdate,
  registerScale,
  registerSuspend,
  registerResume,
  registerCancel,
  registerDelete,
  registerExplain,
  registerEvents,
  registerLogs,
  registerKinds,
  registerQueue,
  registerQuota,
  registerAlloc,
  registerRelease,
  registerCluster,
  registerNamespace,
];

/**
 * Runs one command line (the arguments after the program's name) and resolves with its exit status: 0 ok, 1 a job failed, 2 usage,
 * 3 refused or invalid, 4 unavailable, 124 waited too long, 130 interrupted. What fails is said on stderr; only bugs reject.
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
  for (const register of REGISTER) register(registrar);
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
      "Submits distributed training jobs, which board a Kubernetes cluster as gangs: all together, or not at all.",
    )
    .version(deps.version, "--version", "show the version of this command line")
    .option("--address <host:port>", "the service (default: GANGWAY_ADDRESS, or 127.0.0.1:7443)")
    .configureOutput({
      writeOut: deps.stdout,
      writeErr: deps.stderr,
      getOutHelpWidth: () => deps.columns,
      getErrHelpWidth: () => deps.columns,
      getOutHasColors: () => deps.color,
      getErrHasColors: () => deps.color,
    })
    .showHelpAfterError("(--help says more)")
    .exitOverride()
    .addHelpText(
      "after",
      examples(
        "gangway up",
        "gangway submit -f examples/ --wait",
        "gangway list --phase waiting",
        "gangway explain llama-pretrain",
      ),
    );
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

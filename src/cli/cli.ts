import { Command, CommanderError } from "commander";
import { terminalDeps } from "./output/terminal.ts";
import { type CalledVerb, wordsOfObject } from "./run/other-objects.ts";
import { examples, type Registrar } from "./run/run-command.ts";
import { nearOption, refuseUnknownCommand } from "./run/unknown-words.ts";
import type { CliDeps } from "./shell/deps.ts";
import { CommandFailure, EXIT } from "./shell/exit.ts";

/** Loads the module of a command, and returns the function that registers it. */
type LoadCommand = () => Promise<(registrar: Registrar) => void>;

/**
 * The commands by the heading that the help shows above them, each under all its names. `gangway A B` is in
 * commands/A/B.ts or commands/A.ts. Loading takes longer than most calls, so a command line loads only its command.
 */
const COMMAND_GROUPS: Readonly<Record<string, Readonly<Record<string, LoadCommand>>>> = {
  "Run the service:": {
    up: async () => (await import("./commands/up.ts")).registerUp,
    serve: async () => (await import("./commands/serve.ts")).registerServe,
    migrate: async () => (await import("./commands/migrate.ts")).registerMigrate,
  },
  "Submit and change jobs:": {
    "submit apply create": async () => (await import("./commands/submit.ts")).registerSubmit,
    "can-run": async () => (await import("./commands/can-run.ts")).registerCanRun,
    rerun: async () => (await import("./commands/rerun.ts")).registerRerun,
    update: async () => (await import("./commands/update.ts")).registerUpdate,
    edit: async () => (await import("./commands/edit.ts")).registerEdit,
    scale: async () => (await import("./commands/scale.ts")).registerScale,
    "suspend resume": async () => (await import("./commands/suspend.ts")).registerSuspendAndResume,
    cancel: async () => (await import("./commands/cancel.ts")).registerCancel,
    delete: async () => (await import("./commands/delete.ts")).registerDelete,
  },
  "See jobs:": {
    "get list ls": async () => (await import("./commands/get.ts")).registerGetAndList,
    count: async () => (await import("./commands/count.ts")).registerCount,
    watch: async () => (await import("./commands/watch.ts")).registerWatch,
    wait: async () => (await import("./commands/wait.ts")).registerWait,
    "explain describe": async () => (await import("./commands/explain.ts")).registerExplain,
    events: async () => (await import("./commands/events.ts")).registerEvents,
    "pods pod": async () => (await import("./commands/pods.ts")).registerPods,
    top: async () => (await import("./commands/top.ts")).registerTop,
    logs: async () => (await import("./commands/logs.ts")).registerLogs,
    kinds: async () => (await import("./commands/kinds.ts")).registerKinds,
  },
  "Share resources:": {
    queue: async () => (await import("./commands/queue.ts")).registerQueue,
    "priority-class": async () => (await import("./commands/priority-class.ts")).registerPriorityClass,
    namespace: async () => (await import("./commands/namespace.ts")).registerNamespace,
    runtime: async () => (await import("./commands/runtime.ts")).registerRuntime,
    limits: async () => (await import("./commands/tenant-limits.ts")).registerTenantLimits,
    quota: async () => (await import("./commands/quota.ts")).registerQuota,
    alloc: async () => (await import("./commands/alloc.ts")).registerAlloc,
    release: async () => (await import("./commands/release.ts")).registerRelease,
  },
  "Manage clusters:": {
    cluster: async () => (await import("./commands/cluster.ts")).registerCluster,
    "nodes node": async () => (await import("./commands/nodes.ts")).registerNodes,
    keys: async () => (await import("./commands/keys.ts")).registerKeys,
  },
  "Manage access:": {
    robot: async () => (await import("./commands/robot.ts")).registerRobot,
    role: async () => (await import("./commands/role.ts")).registerRole,
    binding: async () => (await import("./commands/binding.ts")).registerBinding,
    audit: async () => (await import("./commands/audit.ts")).registerAudit,
    "can-i": async () => (await import("./commands/can-i.ts")).registerCanI,
    login: async () => (await import("./commands/login.ts")).registerLogin,
    logout: async () => (await import("./commands/login.ts")).registerLogout,
    whoami: async () => (await import("./commands/whoami.ts")).registerWhoAmI,
  },
  "Set up the command line:": {
    completion: async () => (await import("./commands/completion.ts")).registerCompletion,
    version: async () => (await import("./commands/version.ts")).registerVersion,
    context: async () => (await import("./commands/context.ts")).registerContext,
  },
};

/** Global options whose value is the next argument. */
const WITH_VALUE: readonly string[] = [
  ...["--address", "-n", "--namespace", "--context"],
  ...["--ca-file", "--client-cert", "--client-key", "--tls-server-name", "--token-file"],
];

const EXIT_STATUSES = `
Exit status:
  0    the command succeeded
  1    a job that the command waited for did not succeed or could never run, or can-i says no
  2    the command line is wrong
  3    the service or the command line refused the request
  4    the service is unavailable
  5    the cluster is registered, but a check of it found errors
  124  a wait reached its timeout
  130  the command was interrupted
`;

/**
 * Runs one command line (the arguments after the program's name) and resolves with its exit status. Prints failures on
 * stderr. Rejects only for a bug.
 */
export async function runCli(argv: readonly string[], given: CliDeps): Promise<number> {
  const deps = terminalDeps(given);
  let exitCode: number = EXIT.ok;
  const program = newProgram(deps);
  const registrar: Registrar = {
    program,
    deps,
    argv,
    finish: (code) => {
      exitCode = code;
    },
  };
  if (argv[0] === COMPLETE) {
    await registerCommands(registrar, null);
    return printCompletions(program, argv.slice(1), deps);
  }
  try {
    const words = await wordsOfCommand(registrar);
    // The version of this program needs no command.
    if (argv[0] !== "--version") await registerCommands({ ...registrar, argv: words }, verbOf(words)?.verb ?? null);
    await program.parseAsync([...words], { from: "user" });
    return exitCode;
  } catch (error) {
    return report(error, registrar);
  }
}

/** The words that this program understands: those for objects that are not jobs lead to the object's command. */
async function wordsOfCommand(registrar: Registrar): Promise<readonly string[]> {
  const called = verbOf(registrar.argv);
  const argv = called !== null && WAITING.includes(called.verb) ? plainWait(registrar.argv) : registrar.argv;
  const load = called === null ? undefined : commandOf(called.verb)?.load;
  if (called === null || load === undefined) return argv;
  return wordsOfObject(argv, called, { registrar, load });
}

/** The scripts of `gangway completion` call this. */
const COMPLETE = "__complete";

/** Prints a word on each line. A shell shows no errors: there are no words then. */
async function printCompletions(program: Command, words: readonly string[], deps: CliDeps): Promise<number> {
  const { completions } = await import("./run/complete.ts");
  const found = await completions(program, words, deps).catch(() => []);
  deps.stdout(found.map((word) => `${word}\n`).join(""));
  return EXIT.ok;
}

/** Commands whose --wait has no value. */
const WAITING: readonly string[] = ["delete", "submit", "apply", "create", "rerun"];

/** kubectl's users write `--wait=true` and `--wait=false`. */
function plainWait(argv: readonly string[]): readonly string[] {
  return argv.map((word) => ({ "--wait=true": "--wait", "--wait=false": "--no-wait" })[word] ?? word);
}

/** The first argument that is no global option, and its place; null if there is none. */
function verbOf(argv: readonly string[]): CalledVerb | null {
  const at = argv.findIndex((word, at) => !word.startsWith("-") && !WITH_VALUE.includes(argv[at - 1] ?? ""));
  const verb = argv[at];
  return verb === undefined ? null : { verb, at };
}

type Loadable = { readonly names: readonly string[]; readonly load: LoadCommand };

const GROUPS: readonly { readonly heading: string; readonly commands: readonly Loadable[] }[] = Object.entries(
  COMMAND_GROUPS,
).map(([heading, commands]) => ({
  heading,
  commands: Object.entries(commands).map(([names, load]) => ({ names: names.split(" "), load })),
}));

/** The command that has this name. */
function commandOf(verb: string): Loadable | undefined {
  return GROUPS.flatMap(({ commands }) => commands).find(({ names }) => names.includes(verb));
}

/** Registers the command that has this name. Registers all commands if there is none, as for the help. */
async function registerCommands(registrar: Registrar, verb: string | null): Promise<void> {
  const { program } = registrar;
  const called = commandOf(verb ?? "");
  for (const { heading, commands } of GROUPS) {
    program.commandsGroup(heading);
    for (const command of commands) {
      if (called === undefined || command === called) (await command.load())(registrar);
    }
  }
  for (const group of [program, ...program.commands.filter(({ commands }) => commands.length > 0)]) {
    group.on("command:*", ([word = ""]: readonly string[]) => refuseUnknownCommand(group, word));
  }
}

function newProgram(deps: CliDeps): Command {
  return new Command("gangway")
    .description(
      "Run distributed training jobs on Kubernetes clusters. Each job is admitted as a gang: with all the pods that " +
        "it needs, in one cluster, or not at all.",
    )
    .version(deps.version, "--version", "print the version of this program")
    .option("--address <host:port>", "address of the service, or several with commas (default: 127.0.0.1:7443)")
    .option("-n, --namespace <name>", "namespace of jobs and tokens (default: default)")
    .option("--context <name>", "context of the configuration file for this command (default: the current one)")
    .option("--tls", "encrypt calls; so does each of the next four options")
    .option("--ca-file <file>", "PEM file of the authorities that sign the service's certificate")
    .option("--client-cert <file>", "PEM file of the certificate that this command shows to the service")
    .option("--client-key <file>", "PEM file of that certificate's private key")
    .option("--tls-server-name <name>", "name in the service's certificate (default: the host of the address)")
    .option("--token-file <file>", "file of the bearer token that this command shows to the service")
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
    .showSuggestionAfterError(false)
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

function report(error: unknown, { program, deps, argv }: Registrar): number {
  if (error instanceof CommanderError) {
    const [, flag = ""] = /unknown option '(.*)'/.exec(error.message) ?? [];
    const near = nearOption(flag, commandOfWords(program, argv), program);
    if (near !== null) deps.stderr(`(did you mean ${near}?)\n`);
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  const failure = failureOf(error, deps);
  if (failure.lines.length > 0) deps.stderr(`${failure.lines.join("\n")}\n`);
  return failure.exitCode;
}

/** The command that words lead to, or the group. */
function commandOfWords(program: Command, words: readonly string[]): Command {
  let command = program;
  for (const word of words) {
    command = command.commands.find((one) => [one.name(), ...one.aliases()].includes(word)) ?? command;
  }
  return command;
}

function failureOf(error: unknown, deps: CliDeps): CommandFailure {
  if (error instanceof CommandFailure) return error;
  if (deps.signal.aborted) return new CommandFailure(EXIT.interrupted, []);
  throw error;
}

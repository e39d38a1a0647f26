import type { Command } from "commander";
import type { CliDeps } from "./deps.ts";
import { usageFailure } from "./exit.ts";
import type { TemplateSource } from "./options.ts";
import type { GangwayClient } from "./rpc/client.ts";

/** Registers one command with the program. */
export type Registrar = {
  /** The parent: `gangway` itself, or a group such as `gangway queue`. */
  readonly program: Command;
  readonly deps: CliDeps;
  /** Takes the exit status of the command that ran. */
  readonly finish: (exitCode: number) => void;
};

/** What a command that calls the service gets: the dependencies, an open client, and the namespace of its jobs. */
export type Run = {
  readonly deps: CliDeps;
  readonly client: GangwayClient;
  /** The namespace of --namespace, else the default one. */
  readonly namespace: string;
  /** True: the user gave --namespace. */
  readonly isNamespaceGiven: boolean;
};

/** The options of every command, before or after its name. */
export type GlobalOptions = { readonly address?: string; readonly namespace?: string };

const DEFAULT_ADDRESS = "127.0.0.1:7443";
const DEFAULT_NAMESPACE = "default";
const ADDRESS = /^(?:\[[0-9a-fA-F:.]+\]|[^:[\]/\s]+):\d{1,5}$/;
const PORT_MAX = 65_535;

/** Runs `body` when the user calls `command`, with a client that is closed afterwards. Options include global ones. */
export function onRun<O extends object>(
  { deps, finish }: Registrar,
  command: Command,
  body: (run: Run, args: readonly string[], options: O) => Promise<number>,
): void {
  command.action(async () => {
    const options = await compileOutput(command.optsWithGlobals<O & GlobalOptions>());
    // What commands that call the service share takes long to load: the others do without it.
    const { connect } = await import("./rpc/client.ts");
    const { isServiceError, rpcFailure } = await import("./rpc/rpc-failure.ts");
    const client = connect(addressOf(options.address, deps), deps.signal);
    const { namespace } = options;
    const run = { deps, client, namespace: namespace ?? DEFAULT_NAMESPACE, isNamespaceGiven: namespace !== undefined };
    try {
      finish(await body(run, command.args, options));
    } catch (error) {
      throw isServiceError(error) ? rpcFailure(error, client.address) : error;
    } finally {
      client.close();
    }
  });
}

/** Replaces the source of an output template by the template. Loads the evaluator only then. */
async function compileOutput<O extends object>(options: O & { output?: unknown }): Promise<O> {
  const { output } = options;
  if (typeof output !== "object" || output === null) return options;
  const { compileTemplate } = await import("./output/template.ts");
  return { ...options, output: compileTemplate(output as TemplateSource) };
}

function addressOf(option: string | undefined, deps: CliDeps): string {
  const [address, origin] =
    option === undefined ? [deps.address || DEFAULT_ADDRESS, "GANGWAY_ADDRESS"] : [option, "--address"];
  if (!isAddress(address)) throw usageFailure(`${origin} must be HOST:PORT, not ${address}`);
  return address;
}

/** True for HOST:PORT and [IPV6]:PORT. Port 0 is valid: a service listens on any free port then. */
export function isAddress(text: string): boolean {
  return ADDRESS.test(text) && Number(text.slice(text.lastIndexOf(":") + 1)) <= PORT_MAX;
}

/** The examples below a command's help. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}\n`;
}

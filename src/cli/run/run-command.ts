import type { Command } from "commander";
import type { Security } from "../../config/client-config.ts";
import { chosenContext, readContexts } from "../auth/contexts.ts";
import { callSecurity, mergeSecurity, NO_SECURITY } from "../auth/security.ts";
import type { TerminalDeps } from "../output/terminal.ts";
import { CallError } from "../rpc/call-error.ts";
import type { ChannelSecurity } from "../rpc/channel.ts";
import type { GangwayClient } from "../rpc/client.ts";
import type { CliDeps } from "../shell/deps.ts";
import { usageFailure } from "../shell/exit.ts";
import { isAddress, splitCommas, type TemplateSource } from "../shell/options.ts";

/** Registers one command with the program. */
export type Registrar = {
  /** The parent: `gangway` itself, or a group such as `gangway queue`. */
  readonly program: Command;
  readonly deps: TerminalDeps;
  /** The words after the program's name. */
  readonly argv: readonly string[];
  /** Takes the exit status of the command that ran. */
  readonly finish: (exitCode: number) => void;
};

/** A command that calls the service gets the dependencies, an open client, and the namespace of its jobs. */
export type Run = {
  readonly deps: TerminalDeps;
  readonly client: GangwayClient;
  /** The namespace of --namespace, of the environment or of the context, else the default one. */
  readonly namespace: string;
  /** The same. Null: none of them says one. For commands that mean all namespaces then, or the installation. */
  readonly chosenNamespace: string | null;
  /** True: the user gave --namespace. */
  readonly isNamespaceGiven: boolean;
  /** True: the user gave an option of the command, and not only global ones. */
  readonly hasOwnOptions: boolean;
  /** False: the user gave --no-headers. Omitted: true. */
  readonly hasHeadings?: boolean;
};

/** The options of every command, before or after its name. */
export type GlobalOptions = {
  readonly address?: string;
  readonly namespace?: string;
  readonly context?: string;
  readonly tls?: boolean;
  readonly caFile?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly tlsServerName?: string;
  readonly tokenFile?: string;
};

const DEFAULT_ADDRESS = "127.0.0.1:7443";
const DEFAULT_NAMESPACE = "default";

/** Runs `body` when the user calls `command`, with a client that is closed afterwards. Options include global ones. */
export function onRun<O extends object>(
  { deps, finish }: Registrar,
  command: Command,
  body: (run: Run, args: readonly string[], options: O) => Promise<number>,
): void {
  command.action(async () => {
    deps.listen();
    const options = await compileOutput(command.optsWithGlobals<O & GlobalOptions>());
    // Only commands that call the service load this code, because it takes long.
    const { connect } = await import("../rpc/client.ts");
    const { addresses, security, ...namespaces } = await calledService(options, deps);
    const client = connect(addresses.join(","), deps.signal, security);
    const hasOwnOptions = Object.keys(command.opts()).length > 0;
    const run = { deps, client, ...namespaces, isNamespaceGiven: options.namespace !== undefined, hasOwnOptions };
    const hasHeadings = (options as { headers?: boolean }).headers !== false;
    try {
      finish(await body({ ...run, hasHeadings }, command.args, options));
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      const { rpcFailure } = await import("../rpc/rpc-failure.ts");
      throw rpcFailure(error, client.address);
    } finally {
      client.close();
    }
  });
}

/** Replaces the source of an output template by the template. Loads the evaluator only then. */
async function compileOutput<O extends object>(options: O & { output?: unknown }): Promise<O> {
  const { output } = options;
  if (typeof output !== "object" || output === null) return options;
  const { compileTemplate } = await import("../output/template.ts");
  return { ...options, output: compileTemplate(output as TemplateSource) };
}

/**
 * The service and the namespace of a command: options come before the environment, and that before the context. What a
 * context says of security holds for the context's own addresses alone.
 */
export async function calledService(
  options: GlobalOptions,
  deps: CliDeps,
): Promise<
  { readonly addresses: readonly string[]; readonly security: ChannelSecurity } & Pick<
    Run,
    "namespace" | "chosenNamespace"
  >
> {
  const given = options.address ?? deps.address;
  const origin = options.address === undefined ? "GANGWAY_ADDRESS" : "--address";
  const context = chosenContext(await readContexts(deps.configFile), options.context);
  const ofContext = context?.addresses.length ? context.addresses : [DEFAULT_ADDRESS];
  const own = mergeSecurity(securityOf(options), deps.security);
  const security = given ? own : mergeSecurity(own, context?.security ?? NO_SECURITY);
  const addresses = given ? addressesOf(given, origin) : ofContext;
  const chosenNamespace = options.namespace ?? (deps.namespace || context?.namespace || null);
  return {
    addresses,
    namespace: chosenNamespace ?? DEFAULT_NAMESPACE,
    chosenNamespace,
    security: await callSecurity(security, addresses, deps),
  };
}

/** What the options of a command say of security. */
export function securityOf(options: GlobalOptions): Security {
  const { tls, caFile, clientCert, clientKey, tlsServerName, tokenFile } = options;
  return {
    tls: tls === true,
    caFile: caFile ?? "",
    clientCertFile: clientCert ?? "",
    clientKeyFile: clientKey ?? "",
    tlsServerName: tlsServerName ?? "",
    tokenFile: tokenFile ?? "",
  };
}

/** Reads one HOST:PORT or several with commas. `origin` names the option or variable in an error. */
export function addressesOf(text: string, origin: string): readonly string[] {
  const addresses = splitCommas(text);
  const wrong = addresses.length === 0 ? text : addresses.find((address) => !isAddress(address));
  if (wrong !== undefined) throw usageFailure(`${origin} must be HOST:PORT, not ${wrong}`);
  return addresses;
}

/** The examples below a command's help. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}\n`;
}

import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import { connect, type GangwayClient } from "./client.ts";
import type { CliDeps } from "./deps.ts";
import { parseDurationMs } from "./duration.ts";
import { usageFailure } from "./exit.ts";
import { isServiceError, rpcFailure } from "./rpc-failure.ts";

/** What every command is registered with. */
export type Registrar = {
  readonly program: Command;
  readonly deps: CliDeps;
  /** Takes the exit status of the command that ran. */
  readonly finish: (exitCode: number) => void;
};

/** What a command that talks to the service runs with. */
export type Run = { readonly deps: CliDeps; readonly client: GangwayClient };

const DEFAULT_ADDRESS = "127.0.0.1:7443";
const ADDRESS = /^(?:\[[0-9a-fA-F:.]+\]|[^:[\]/\s]+):\d{1,5}$/;
const PORT_MAX = 65_535;

/** Gives a command its body; the client it gets is closed after it. Options include the program's own. */
export function onRun<O extends object>(
  { deps, finish }: Registrar,
  command: Command,
  body: (run: Run, args: readonly string[], options: O) => Promise<number>,
): void {
  command.action(async () => {
    const options = command.optsWithGlobals<O & { address?: string }>();
    const client = connect(addressOf(options.address, deps), deps.signal);
    try {
      finish(await body({ deps, client }, command.args, options));
    } catch (error) {
      throw isServiceError(error) ? rpcFailure(error, client.address) : error;
    } finally {
      client.close();
    }
  });
}

function addressOf(option: string | undefined, deps: CliDeps): string {
  const [address, origin] =
    option === undefined ? [deps.address || DEFAULT_ADDRESS, "GANGWAY_ADDRESS"] : [option, "--address"];
  if (!isAddress(address)) throw usageFailure(`${origin} must be HOST:PORT, not ${address}`);
  return address;
}

/** True of HOST:PORT and [IPV6]:PORT; a service also listens at port 0, which is any that is free. */
export function isAddress(text: string): boolean {
  return ADDRESS.test(text) && Number(text.slice(text.lastIndexOf(":") + 1)) <= PORT_MAX;
}

export type OutputFormat = "table" | "json" | "yaml" | "name";

/** `-o` of commands that show something. */
export function outputOption(): Option {
  return new Option("-o, --output <format>", "how to show it")
    .choices(["table", "json", "yaml", "name"])
    .default("table");
}

/** `-n` of commands about jobs. */
export function namespaceOption(): Option {
  return new Option("-n, --namespace <name>", "the jobs' namespace").default("default");
}

/** `--timeout` of commands that wait; its value is in milliseconds. */
export function timeoutOption(): Option {
  return durationOption("--timeout <duration>", "wait no longer than, e.g. 90s, 10m or 1h30m");
}

/** An option whose value is a duration, in milliseconds; `words` are values that stand for one. */
export function durationOption(flags: string, description: string, words: Readonly<Record<string, number>> = {}) {
  return new Option(flags, description).argParser((text) => {
    const spanMs = words[text] ?? parseDurationMs(text);
    if (spanMs === null) {
      const also = Object.keys(words).map((word) => `${word}, or `);
      throw new InvalidArgumentError(`It must be ${also.join("")}a duration with its unit, e.g. 90s, 10m or 1h30m.`);
    }
    return spanMs;
  });
}

/** Reads a whole number of 0 or more. */
export function parseCount(text: string): bigint {
  if (!/^\d{1,16}$/.test(text)) throw new InvalidArgumentError("It must be a whole number, 0 or more.");
  return BigInt(text);
}

/** Collects an option that may be given more than once. */
export function repeated(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

/** Examples below a command's help. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}\n`;
}

/** Refuses a `--timeout` of a command that would not wait: whoever gives one believes that it does. */
export function checkTimeout({ wait, timeout }: { readonly wait?: boolean; readonly timeout?: number }): void {
  if (timeout !== undefined && wait !== true) throw usageFailure("--timeout is for --wait");
}

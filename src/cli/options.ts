import { InvalidArgumentError, Option } from "commander";
import { usageFailure } from "./exit.ts";
import { parseDurationMs } from "./output/duration.ts";

export type OutputFormat = "table" | "json" | "yaml" | "name";

/** `-o` of commands that print objects. */
export function outputOption(): Option {
  return new Option("-o, --output <format>", "output format")
    .choices(["table", "json", "yaml", "name"])
    .default("table");
}

/** `-n` of commands about jobs. */
export function namespaceOption(): Option {
  return new Option("-n, --namespace <name>", "namespace of the jobs").default("default");
}

/** `--limit` of commands that list. */
export function limitOption(): Option {
  return new Option("--limit <count>", "print at most this many").default(1000).argParser((text) => {
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a positive number.");
    return Number(text);
  });
}

/** `--timeout` of commands that wait; its value is in milliseconds. */
export function timeoutOption(): Option {
  return durationOption("--timeout <duration>", "wait at most this long, e.g. 90s, 10m or 1h30m (default: no timeout)");
}

/** Refuses `--timeout` without `--wait`: the command would not wait. */
export function checkTimeout({ wait, timeout }: { readonly wait?: boolean; readonly timeout?: number }): void {
  if (timeout !== undefined && wait !== true) throw usageFailure("--timeout needs --wait");
}

/** An option whose value is a duration, in milliseconds. `words` maps words that it accepts to their milliseconds. */
export function durationOption(flags: string, description: string, words: Readonly<Record<string, number>> = {}) {
  return new Option(flags, description).argParser((text) => {
    const spanMs = words[text] ?? parseDurationMs(text);
    if (spanMs === null) {
      const accepted = Object.keys(words).map((word) => `"${word}" or `);
      throw new InvalidArgumentError(
        `It must be ${accepted.join("")}a duration with its unit, e.g. 90s, 10m or 1h30m.`,
      );
    }
    return spanMs;
  });
}

/** Reads a whole number of 0 or more. */
export function parseCount(text: string): bigint {
  if (!/^\d{1,16}$/.test(text)) throw new InvalidArgumentError("It must be a whole number, 0 or more.");
  return BigInt(text);
}

/** Reads a whole number that fits 32 bits with a sign. */
export function parseInt32(text: string): number {
  if (/^-?\d{1,10}$/.test(text) && Math.abs(Number(text)) < 2 ** 31) return Number(text);
  throw new InvalidArgumentError("It must be a whole number between -2147483647 and 2147483647.");
}

/** Collects the values of an option that may be repeated. */
export function repeated(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

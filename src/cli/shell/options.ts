import { InvalidArgumentError, Option } from "commander";
import { parseDurationMs } from "../../runtime/duration.ts";
import type { Json } from "../../runtime/json.ts";
import { usageFailure } from "./exit.ts";

/** An output that the user describes by expressions over the JSON of the response. */
export type TemplateSource = { readonly kind: "jsonpath" | "custom-columns"; readonly text: string };
/** Renders a response by such expressions. `items` are those of a list; null for a single object. */
export type Template = { readonly render: (json: Json, items: readonly Json[] | null) => string };

/** `wide` is a table with more columns where a command has more, and `table` elsewhere. */
export type OutputFormat = "table" | "wide" | "json" | "yaml" | "name" | Template;

const FORMATS = ["table", "wide", "json", "yaml", "name"] as const;

/** The beginnings that a value of `-o` can have. */
export const OUTPUT_WORDS: readonly string[] = [...FORMATS, "jsonpath=", "custom-columns="];

/** `-o` of commands that print objects. */
export function outputOption(): Option {
  return new Option(
    "-o, --output <format>",
    "table, wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…",
  )
    .default("table")
    .argParser(parseOutput);
}

/** `--no-headers` of commands that print tables. */
export function noHeadersOption(): Option {
  return new Option("--no-headers", "print tables without their headings");
}

function parseOutput(given: string): (typeof FORMATS)[number] | TemplateSource {
  const format = FORMATS.find((one) => one === given);
  if (format !== undefined) return format;
  const [, kind, text = ""] = /^(jsonpath|custom-columns)=(.+)$/s.exec(given) ?? [];
  if (kind === "jsonpath" || kind === "custom-columns") return { kind, text };
  throw new InvalidArgumentError(
    "Allowed choices are table, wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=TITLE:PATH,….",
  );
}

/** True for the formats that print a table, or a line of text where a command has no table. */
export function isTable(output: OutputFormat): output is "table" | "wide" {
  return output === "table" || output === "wide";
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

export const INT32_MAX = 2_147_483_647;

/** Reads a whole number that fits 32 bits with a sign. */
export function parseInt32(text: string): number {
  return parseInt32Or([], text) as number;
}

/** The same, or one of these words. `least`: what the error says; the service refuses numbers below it. */
export function parseInt32Or<Word extends string>(
  words: readonly Word[],
  text: string,
  least = -INT32_MAX,
): number | Word {
  const word = words.find((one) => one === text);
  if (word !== undefined) return word;
  if (/^-?\d{1,10}$/.test(text) && Math.abs(Number(text)) <= INT32_MAX) return Number(text);
  const range = least === -INT32_MAX ? `between ${least} and ${INT32_MAX}` : `from ${least} to ${INT32_MAX}`;
  throw new InvalidArgumentError(`It must be ${words.map((one) => `"${one}" or `).join("")}a whole number ${range}.`);
}

const ADDRESS = /^(?:\[[0-9a-fA-F:.]+\]|[^:[\]/\s]+):\d{1,5}$/;
const PORT_MAX = 65_535;

/** True for HOST:PORT and [IPV6]:PORT. Port 0 is valid: a service listens on any free port then. */
export function isAddress(text: string): boolean {
  return ADDRESS.test(text) && Number(text.slice(text.lastIndexOf(":") + 1)) <= PORT_MAX;
}

/** Collects the values of an option that may be repeated. */
export function repeated(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

/** Collects the values of an option that may be repeated, or be a list with commas. */
export function commaList(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), ...splitCommas(value)];
}

/** The parts of a list with commas, without empty ones. */
export function splitCommas(list: string): readonly string[] {
  return list
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

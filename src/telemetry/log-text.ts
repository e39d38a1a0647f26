/** Serves people at a terminal: log lines as text instead of JSON. */
import type { LogFormat } from "../runtime/log-format.ts";
import { visibleText } from "../runtime/visible-text.ts";
import type { LogOutput } from "./log-output.ts";

/** The log for an output in this format, of lines that come as JSON. */
export function formatted(output: LogOutput, format: LogFormat): LogOutput {
  if (format === "json") return output;
  return { write: (line) => output.write(`${logText(line)}\n`) };
}

const LEVELS: Readonly<Record<number, string>> = { 10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR" };
const LEVEL_WIDTH = 5;
/** The member of an error that has lines of its own. It begins with the message, which is shown. */
const STACK = /(^|\.)stack$/;
/** Objects in objects deeper than this are shown as JSON. */
const DEPTH_MAX = 4;

/**
 * A line of JSON as one line of text: its time, level and message, then its members as `name=value`, those of objects
 * with dots. Characters that act on a terminal are shown as escapes. A text that is no such line is shown as it is.
 */
export function logText(line: string): string {
  const { time, level, msg, ...members } = parsed(line);
  const at = typeof time === "number" ? new Date(time).toISOString() : "";
  const name = level === undefined ? "" : (LEVELS[Number(level)] ?? String(level)).padEnd(LEVEL_WIDTH);
  const words = [at, name, oneLine(String(msg ?? "")), ...Object.entries(members).flatMap(shown(1))];
  return words.filter((word) => word !== "").join(" ");
}

function parsed(line: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>;
  } catch {
    return { msg: line.trimEnd() };
  }
}

function shown(depth: number): (member: readonly [string, unknown]) => readonly string[] {
  return ([name, value]) => {
    if (STACK.test(name)) return [];
    const isOpened = typeof value === "object" && value !== null && !isWords(value) && depth < DEPTH_MAX;
    if (!isOpened) return [`${oneLine(name)}=${valueText(value)}`];
    return Object.entries(value).flatMap(([inner, of]) => shown(depth + 1)([`${name}.${inner}`, of]));
  };
}

/** A word that needs no quotes to be told from its neighbours. */
const WORD = /^[^\s"=,[\]{}]+$/;

function valueText(value: unknown): string {
  if (value === null) return "-";
  if (isWords(value)) return oneLine(value.join(","));
  return oneLine(isWord(value) ? value : JSON.stringify(value));
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && WORD.test(value);
}

function isWords(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isWord);
}

/** Tabs and ends of lines are escapes too: a line of the log is one line. */
function oneLine(text: string): string {
  return visibleText(text.replaceAll("\t", "\\t").replaceAll("\n", "\\n"));
}

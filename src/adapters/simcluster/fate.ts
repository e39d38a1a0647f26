import { FAILINGS, type Failing } from "./failing.ts";

/** What a pod's annotations say about its life in the simulated cluster. */
export type Fate = {
  readonly pullMs: number;
  readonly startMs: number;
  /** How long a run of its containers lasts; null: until it is deleted. */
  readonly runMs: number | null;
  /** The exit code of each run in turn; the last one repeats. */
  readonly exitCodes: readonly number[];
  /** How long it takes to stop when deleted; its grace period cuts that short. */
  readonly stopMs: number;
  /** How often a running container writes a line; null: only at its start and end. */
  readonly logEveryMs: number | null;
  /** Exit code 137 is a lack of memory. */
  readonly oom: boolean;
  /** How each run in turn fails; null, as after the last: not but by its exit code. */
  readonly failings: readonly (Failing | null)[];
  /** Annotations that could not be read and count as absent. */
  readonly malformed: readonly string[];
};

export const FATE_PREFIX = "sim.gangway.dev/";

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Reads a pod's annotations. Defaults: pull 300 ms, start 200 ms, run 3 s, exit 0, stop 200 ms, a line of log every second. */
export function readFate(annotations: Readonly<Record<string, string>>): Fate {
  const malformed: string[] = [];
  const read = <T>(name: string, parse: (text: string) => T | undefined, absent: T): T => {
    const text = annotations[FATE_PREFIX + name];
    if (text === undefined) return absent;
    const value = parse(text);
    if (value === undefined) malformed.push(FATE_PREFIX + name);
    return value === undefined ? absent : value;
  };
  return {
    pullMs: read("pull", parseDuration, 300),
    startMs: read("start", parseDuration, 200),
    runMs: read<number | null>("run", (text) => (text === "forever" ? null : parseDuration(text)), 3000),
    exitCodes: read<readonly number[]>("exit-code", parseExitCodes, [0]),
    stopMs: read("termination-grace", parseDuration, 200),
    logEveryMs: read<number | null>("log-every", parseInterval, 1000),
    oom: read("oom", (text) => (text === "true" ? true : text === "false" ? false : undefined), false),
    failings: read<readonly (Failing | null)[]>("fails", parseFailings, []),
    malformed,
  };
}

/** How the `run`-th run fails, counted from 0; null where nothing but its exit code says. */
export function failingOf(fate: Fate, run: number): Failing | null {
  return fate.failings[run] ?? null;
}

/** The exit code of the `run`-th run, counted from 0. */
export function exitCodeOf(fate: Fate, run: number): number {
  return fate.exitCodes[Math.min(run, fate.exitCodes.length - 1)] ?? 0;
}

/** `300ms`, `2s`, `1m30s` in milliseconds, as Go writes durations; undefined for anything else. */
function parseDuration(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|s|m|h))+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, digits, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    sum += Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
  }
  return Math.round(sum);
}

/** A duration of at least a millisecond, or `never`. */
function parseInterval(text: string): number | null | undefined {
  const ms = text === "never" ? null : parseDuration(text);
  return ms === 0 ? undefined : ms;
}

function parseExitCodes(text: string): readonly number[] | undefined {
  const codes = text.split(",").map((part) => part.trim());
  if (!codes.every((code) => /^\d{1,3}$/.test(code) && Number(code) <= 255)) return undefined;
  return codes.map(Number);
}

/** Words of `FAILINGS`, with commas between them; `none` for a run that does not fail. */
function parseFailings(text: string): readonly (Failing | null)[] | undefined {
  const words = text.split(",").map((part) => part.trim());
  if (!words.every((word) => word === "none" || Object.hasOwn(FAILINGS, word))) return undefined;
  return words.map((word) => FAILINGS[word] ?? null);
}

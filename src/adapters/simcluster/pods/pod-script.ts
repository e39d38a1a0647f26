import { SCRIPTED_FAILURES, type ScriptedFailure } from "./scripted-failure.ts";

/** How a pod behaves in the simulated cluster. Manifests set it by annotations, e.g. `sim.gangway.dev/run: 10s`. */
export type PodScript = {
  readonly pullMs: number;
  readonly startMs: number;
  /** How long a run of its containers takes. Null: until the pod is deleted. */
  readonly runMs: number | null;
  /** The exit code of each run in turn. Later runs repeat the last one. */
  readonly exitCodes: readonly number[];
  /** How long it takes to stop when it is deleted, at most its grace period. */
  readonly stopMs: number;
  /** How often a running container writes a line to its log. Null: only at its start and end. */
  readonly logEveryMs: number | null;
  /** True: exit code 137 has the reason OOMKilled. */
  readonly oom: boolean;
  /** The failure of each run in turn. Null, and for later runs: only the exit code decides. */
  readonly failures: readonly (ScriptedFailure | null)[];
  /** Annotations that could not be read and are ignored. */
  readonly malformed: readonly string[];
};

const ANNOTATION_PREFIX = "sim.gangway.dev/";

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * Reads a pod's annotations. Defaults: pull 300 ms, start 200 ms, run 3 s, exit 0, stop 200 ms, a line of log every
 * second.
 */
export function readPodScript(annotations: Readonly<Record<string, string>>): PodScript {
  const malformed: string[] = [];
  const read = <T>(name: string, parse: (text: string) => T | undefined, otherwise: T): T => {
    const text = annotations[ANNOTATION_PREFIX + name];
    if (text === undefined) return otherwise;
    const value = parse(text);
    if (value === undefined) malformed.push(ANNOTATION_PREFIX + name);
    return value === undefined ? otherwise : value;
  };
  return {
    pullMs: read("pull", parseDuration, 300),
    startMs: read("start", parseDuration, 200),
    runMs: read<number | null>("run", (text) => (text === "forever" ? null : parseDuration(text)), 3000),
    exitCodes: read<readonly number[]>("exit-code", parseExitCodes, [0]),
    stopMs: read("termination-grace", parseDuration, 200),
    logEveryMs: read<number | null>("log-every", parseInterval, 1000),
    oom: read("oom", (text) => (text === "true" ? true : text === "false" ? false : undefined), false),
    failures: read<readonly (ScriptedFailure | null)[]>("fails", parseFailures, []),
    malformed,
  };
}

/** Returns the failure of a run, counted from 0. Null: only its exit code decides. */
export function scriptedFailureOf(script: PodScript, run: number): ScriptedFailure | null {
  return script.failures[run] ?? null;
}

/** Returns the exit code of a run, counted from 0. */
export function exitCodeOf(script: PodScript, run: number): number {
  return script.exitCodes[Math.min(run, script.exitCodes.length - 1)] ?? 0;
}

/** Reads a duration as Go writes it: `300ms`, `2s`, `1m30s`. Undefined for other text. */
function parseDuration(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|s|m|h))+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, digits, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/gy)) {
    sum += Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
  }
  return Math.round(sum);
}

/** Reads a duration of at least a millisecond, or `never`. */
function parseInterval(text: string): number | null | undefined {
  const ms = text === "never" ? null : parseDuration(text);
  return ms === 0 ? undefined : ms;
}

function parseExitCodes(text: string): readonly number[] | undefined {
  const codes = text.split(",").map((part) => part.trim());
  if (!codes.every((code) => /^\d{1,3}$/.test(code) && Number(code) <= 255)) return undefined;
  return codes.map(Number);
}

/** Reads names of `SCRIPTED_FAILURES`, separated by commas; `none` for a run without one. */
function parseFailures(text: string): readonly (ScriptedFailure | null)[] | undefined {
  const words = text.split(",").map((part) => part.trim());
  if (!words.every((word) => word === "none" || Object.hasOwn(SCRIPTED_FAILURES, word))) return undefined;
  return words.map((word) => SCRIPTED_FAILURES[word] ?? null);
}

/**
 * Reads the answer of a plugin's `handle`, which may be any value. It serves authors of plugins, who learn which member
 * is wrong, and keeps wrong values out of the records of jobs.
 */

import { foreignText } from "../../runtime/foreign-text.ts";
import { isJsonObject, type JsonObject } from "../../runtime/json.ts";
import type { FailureKind } from "../job/status.ts";
import {
  CACHE_STATUSES,
  type ExternalResource,
  type LogLink,
  type PluginState,
  type ReasonInfo,
  TASK_PHASES,
  type TaskInfo,
  type TaskPhase,
} from "../job/task-info.ts";
import { checkInputs } from "../pods/inputs.ts";
import type { TaskFailure } from "./plugin.ts";

/** The answer of a plugin's `handle`, with defaults for omitted members. */
export type ReadTransition = {
  readonly phase: TaskPhase;
  readonly version: number;
  readonly reason: string;
  readonly task: TaskInfo;
  /** Null if the phase is not a failure. */
  readonly failure: TaskFailure | null;
  readonly cleanup: boolean;
  /** Null: unchanged. */
  readonly state: PluginState | null;
  /** Null: unchanged. */
  readonly outputs: JsonObject | null;
  readonly recheckAfterMs: number;
};

type TransitionOutcome =
  | { readonly kind: "read"; readonly transition: ReadTransition }
  | { readonly kind: "wrong"; readonly message: string };

const FAILURES: readonly TaskPhase[] = ["RETRYABLE_FAILURE", "PERMANENT_FAILURE", "ABORTED"];
const RECHECK_MS = 5_000;
const RECHECK_MS_MAX = 3_600_000;
const VERSION_MAX = 2 ** 32 - 1;
const TEXT_BYTES_MAX = 4_096;
const ITEMS_MAX = 1_000;
/** State and info are stored in the job's record and in every entry of the event log. */
const JSON_CHARS_MAX = 65_536;

/** An error that names the wrong value. `readTransition` catches it. */
class Wrong extends Error {}

/** Reads the value that `handle` returned, which may be anything. Never throws: a wrong value is an outcome. */
export function readTransition(value: unknown): TransitionOutcome {
  try {
    // Reads the value as the record would return it: without functions, getters and cycles.
    const text = jsonOf(value);
    if (text === undefined) throw new Wrong("handle returned nothing");
    if (text.length > JSON_CHARS_MAX) {
      throw new Wrong(
        `handle returned ${text.length} characters of JSON; state and info together may have ${JSON_CHARS_MAX}`,
      );
    }
    return { kind: "read", transition: transitionOf(JSON.parse(text)) };
  } catch (error) {
    const message = error instanceof Error ? error.message : "the result of handle is not JSON";
    return { kind: "wrong", message };
  }
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // For a cycle, the message has several lines.
    const why = error instanceof Error ? error.message.replace(/\s+/g, " ") : "it cannot be read";
    throw new Wrong(`the result of handle is not JSON: ${why}`);
  }
}

/** Unknown members are refused, because they would be lost silently: a misspelt `recheckAfterMs`, a bare state. */
const MEMBERS = {
  transition: ["info", "state", "outputs", "recheckAfterMs"],
  info: ["phase", "version", "reason", "task", "failure", "cleanupOnFailure"],
  failure: ["code", "kind", "message"],
  state: ["version", "value"],
  task: ["logs", "externalResources", "occurredAtMs", "reportedAtMs", "additionalReasons", "customInfo"],
} as const;

function transitionOf(value: unknown): ReadTransition {
  const members = object(value, "the result of handle", MEMBERS.transition);
  const info = object(members["info"], "info", MEMBERS.info);
  const phase = word(info["phase"], "info.phase", TASK_PHASES);
  const isFailure = FAILURES.includes(phase);
  return {
    phase,
    version: whole(info["version"], "info.version", { absent: 0, max: VERSION_MAX }),
    reason: text(info["reason"], "info.reason"),
    task: taskOf(info["task"]),
    failure: isFailure ? failureOf(info["failure"]) : null,
    cleanup: isFailure && info["cleanupOnFailure"] === true,
    state: members["state"] === undefined ? null : stateOf(members["state"]),
    outputs: members["outputs"] === undefined ? null : outputsOf(members["outputs"]),
    recheckAfterMs: whole(members["recheckAfterMs"], "recheckAfterMs", { absent: RECHECK_MS, max: RECHECK_MS_MAX }),
  };
}

function failureOf(value: unknown): TaskFailure {
  const failure = object(value, "info.failure", MEMBERS.failure);
  const code = text(failure["code"], "info.failure.code");
  if (!/^[A-Za-z][A-Za-z0-9:._-]{0,127}$/.test(code))
    throw new Wrong("info.failure.code must be a letter, then up to 127 letters, digits and : . _ -");
  const kinds: readonly FailureKind[] = ["USER", "SYSTEM"];
  const kind = word(failure["kind"] ?? "USER", "info.failure.kind", kinds);
  return { code, kind, message: text(failure["message"], "info.failure.message") };
}

function stateOf(value: unknown): PluginState {
  const state = object(value, "state", MEMBERS.state);
  const version = whole(state["version"], "state.version", { absent: 0, max: 255 });
  const inner = state["value"] ?? null;
  return { version, value: inner === null ? null : object(inner, "state.value") };
}

/** Outputs are as inputs may be, so that those of one job can be those of another. */
function outputsOf(value: unknown): JsonObject {
  const outputs = object(value, "outputs");
  const [wrong] = checkInputs(outputs);
  if (wrong === undefined) return outputs;
  const path = wrong.path === "" ? "outputs" : `outputs.${wrong.path}`;
  throw new Wrong(`${path} ${wrong.message.replace(" inputs", " outputs")}`);
}

function taskOf(value: unknown): TaskInfo {
  const task = object(value ?? {}, "info.task", MEMBERS.task);
  return {
    logs: logsOf(task["logs"], "info.task.logs"),
    externalResources: list(task["externalResources"], "info.task.externalResources").map(resourceOf),
    occurredAtMs: timeOf(task["occurredAtMs"], "info.task.occurredAtMs"),
    reportedAtMs: timeOf(task["reportedAtMs"], "info.task.reportedAtMs"),
    additionalReasons: list(task["additionalReasons"], "info.task.additionalReasons").map(reasonOf),
    customInfo: (task["customInfo"] ?? null) === null ? null : object(task["customInfo"], "info.task.customInfo"),
  };
}

function resourceOf(value: unknown, at: number): ExternalResource {
  const path = `info.task.externalResources[${at}]`;
  const { externalId, index, retryAttempt, phase, cacheStatus, logs } = object(value, path);
  return {
    externalId: text(externalId, `${path}.externalId`),
    index: whole(index, `${path}.index`, { absent: at, max: VERSION_MAX }),
    retryAttempt: whole(retryAttempt, `${path}.retryAttempt`, { absent: 0, max: VERSION_MAX }),
    phase: (phase ?? null) === null ? null : word(phase, `${path}.phase`, TASK_PHASES),
    cacheStatus: (cacheStatus ?? null) === null ? null : word(cacheStatus, `${path}.cacheStatus`, CACHE_STATUSES),
    logs: logsOf(logs, `${path}.logs`),
  };
}

function reasonOf(value: unknown, at: number): ReasonInfo {
  const path = `info.task.additionalReasons[${at}]`;
  const { reason, occurredAtMs } = object(value, path);
  return { reason: text(reason, `${path}.reason`), occurredAtMs: timeOf(occurredAtMs, `${path}.occurredAtMs`) };
}

function logsOf(value: unknown, path: string): readonly LogLink[] {
  return list(value, path).map((link, at) => {
    const { name, uri } = object(link, `${path}[${at}]`);
    return { name: text(name, `${path}[${at}].name`), uri: text(uri, `${path}[${at}].uri`) };
  });
}

function object(value: unknown, path: string, members: readonly string[] | null = null): JsonObject {
  if (!isJsonObject(value)) throw new Wrong(`${path} must be an object`);
  const unknown = Object.keys(value).find((member) => members !== null && !members.includes(member));
  if (unknown === undefined) return value;
  throw new Wrong(`${path} has ${unknown.slice(0, 100)}; it may have ${members?.join(", ")}`);
}

function list(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Wrong(`${path} must be a list`);
  if (value.length > ITEMS_MAX) throw new Wrong(`${path} has ${value.length} items, more than ${ITEMS_MAX}`);
  return value;
}

/** Reads omitted text as empty, and cuts text that is too long: only people read it. */
function text(value: unknown, path: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new Wrong(`${path} must be text`);
  return foreignText(value, TEXT_BYTES_MAX);
}

function word<T extends string>(value: unknown, path: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new Wrong(`${path} must be one of ${allowed.join(", ")}`);
}

function whole(value: unknown, path: string, of: { readonly absent: number; readonly max: number }): number {
  if (value === undefined || value === null) return of.absent;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= of.max) return value;
  throw new Wrong(`${path} must be a whole number from 0 to ${of.max}`);
}

/** The latest time that a date can hold. */
const TIME_MS_MAX = 8_640_000_000_000_000;

function timeOf(value: unknown, path: string): number | null {
  if (value === undefined || value === null) return null;
  return whole(value, path, { absent: 0, max: TIME_MS_MAX });
}

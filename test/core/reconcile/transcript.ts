import { stringify } from "yaml";
import type { Job } from "../../../src/core/job/job.ts";
import type { Action, Decision } from "../../../src/core/reconcile/decision.ts";
import { type JsonObject, objectAt, stringAt, stringMapAt } from "../../../src/runtime/json.ts";
import { assertRecorded } from "../../support/recorded-text.ts";
import { START_MS } from "./world.ts";

const FIELDS = ["status", "admissions", "deleteTimeMs"] as const;
/** Every record has it: the time of its decision, which the transcript says at its head. */
const SAID = "status.lastReconcileMs";

/** What some decisions record and do, as text. It shows only what changes, and times since the start of the job. */
export class Transcript {
  readonly #lines: string[] = [];

  /** Adds a sentence about what happens before the next decision. */
  note(sentence: string): void {
    this.#lines.push(`# ${sentence}`);
  }

  decision(before: Job, decision: Decision, nowMs: number): void {
    this.#lines.push(`at ${since(nowMs)}`);
    const { record, actions, recheckAtMs, forget } = decision;
    const lines = [
      ...actions.map(actionText),
      ...(record?.events ?? []).map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
      ...(record === null ? [] : FIELDS.flatMap((field) => changes(field, before[field], record[field]))),
      ...(recheckAtMs === null ? [] : [`look again at ${since(recheckAtMs)}`]),
      ...(forget ? ["forget"] : []),
    ];
    this.#lines.push(...lines.map((line) => `  ${line}`));
  }

  /** Adds the whole of an object. */
  manifest(object: JsonObject): void {
    this.#lines.push(`---\n${stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd()}`);
  }

  /** Compares the text with a file of the folder `transcripts`. */
  check(name: string): void {
    const file = new URL(`transcripts/${name.replaceAll(" ", "-")}.txt`, import.meta.url);
    assertRecorded(file, `${this.#lines.join("\n")}\n`);
  }
}

function actionText(action: Action): string {
  const { kind, cluster } = action;
  if (!("manifest" in action)) {
    const force = "force" in action && action.force ? " by force" : "";
    return `${kind} ${cluster} ${action.name} ${action.uid}${force}`;
  }
  const metadata = objectAt(action.manifest, "metadata");
  const labels = stringMapAt(metadata, "labels");
  const attempt = labels["gangway.dev/attempt"];
  return `${kind} ${cluster} ${stringAt(metadata, "name")}${attempt === undefined ? "" : ` attempt ${attempt}`}`;
}

/** Conditions by their type, since their order says nothing; all else by name or place. */
function byName(value: unknown): Record<string, unknown> {
  const isTyped = Array.isArray(value) && value.every((one) => typeof one?.type === "string");
  return isTyped ? Object.fromEntries(value.map((one) => [one.type, one])) : (value as Record<string, unknown>);
}

/** The members of a value that have changed, each on a line. */
function changes(path: string, before: unknown, after: unknown): readonly string[] {
  if (path === SAID || JSON.stringify(before) === JSON.stringify(after)) return [];
  const isRecord = (value: unknown) => typeof value === "object" && value !== null;
  if (!isRecord(before) || !isRecord(after)) return [`${path} = ${text(after)}`];
  const [was, is] = [byName(before), byName(after)];
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  return names.flatMap((name) => changes(`${path}.${name}`, was[name], is[name]));
}

function text(value: unknown): string {
  return JSON.stringify(value, (_key, inner) => (isTime(inner) ? since(inner) : inner)) ?? "absent";
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value - START_MS) < 1e9;
}

function since(ms: number): string {
  return `${(ms - START_MS) / 1000} s`;
}

/**
 * The settings of a job that a manifest of another system has no member for, or that a command sets in its place. Each
 * has a field of the API, an annotation `gangway.dev/NAME` of the manifest, and an option `--NAME` of `submit`.
 */
import { parseDurationMs } from "../../../runtime/duration.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../runtime/json.ts";
import type { SentSpec } from "../../job/request/sent.ts";
import { notShown } from "../../job/request/shown-value.ts";
import { CLEAN_POD_POLICIES, PARTIAL_POLICIES, RESTART_SCOPES } from "../../job/spec.ts";
import { SentReader } from "./sent-reader.ts";

/** How the text of a setting is read. */
type SettingType =
  | { readonly of: "text" }
  | { readonly of: "number"; readonly least?: number }
  /** Seconds, or a duration with its unit. `least`: in seconds. */
  | { readonly of: "seconds"; readonly least: number }
  | { readonly of: "duration" }
  | { readonly of: "flag" }
  | { readonly of: "word"; readonly words: readonly string[] }
  /** Separated by commas. */
  | { readonly of: "texts" }
  /** `KEY=VALUE`, separated by commas. */
  | { readonly of: "map" };

export type Setting = {
  /** The name of the annotation, without `gangway.dev/`, and of the option, without `--`. */
  readonly name: string;
  /** The member of a manifest's spec in Gangway's own form, such as `runPolicy.schedulingPolicy.queue`. */
  readonly field: string;
  readonly type: SettingType;
  /** What it is, for the help of commands. */
  readonly help: string;
  /** True: UpdateJob can change it. */
  readonly isMutable?: true;
};

const SCHEDULING = "runPolicy.schedulingPolicy";

export const SETTINGS: readonly Setting[] = [
  { name: "queue", field: `${SCHEDULING}.queue`, type: { of: "text" }, help: "queue" },
  {
    name: "priority",
    field: "priority",
    type: { of: "number" },
    help: "priority in the queue; higher numbers are admitted first",
    isMutable: true,
  },
  {
    name: "priority-class",
    field: "priorityClassName",
    type: { of: "text" },
    help: "priority class, whose value becomes the priority",
    isMutable: true,
  },
  {
    name: "clusters",
    field: "placement.clusters",
    type: { of: "texts" },
    help: "clusters that the job may run in, e.g. east,west",
  },
  {
    name: "cluster-selector",
    field: "placement.clusterSelector",
    type: { of: "map" },
    help: "labels that the cluster must have, e.g. region=eu,tier=prod",
  },
  {
    name: "gpu-model",
    field: "placement.gpuModels",
    type: { of: "texts" },
    help: "GPU models that the job may use, e.g. h100,gpu/a100",
  },
  {
    name: "required-topology",
    field: "placement.topology.required",
    type: { of: "text" },
    help: "level of which one domain must have room for all pods, e.g. rack",
  },
  {
    name: "preferred-topology",
    field: "placement.topology.preferred",
    type: { of: "text" },
    help: "level of which one domain should have room for all pods, e.g. rack; else a coarser one",
  },
  {
    name: "min-available",
    field: `${SCHEDULING}.minAvailable`,
    type: { of: "number", least: 1 },
    help: "pods that must be admitted together; default: all",
  },
  {
    name: "schedule-timeout",
    field: `${SCHEDULING}.scheduleTimeoutSeconds`,
    type: { of: "seconds", least: 0 },
    help: "undo an admission whose pods do not start within this time, e.g. 10m; 0: never",
  },
  {
    name: "partial",
    field: `${SCHEDULING}.partial`,
    type: { of: "word", words: PARTIAL_POLICIES },
    help: "KEEP or RESTART: what a gang that was admitted in part does until it is whole",
  },
  {
    name: "max-preemptions",
    field: `${SCHEDULING}.maxPreemptions`,
    type: { of: "number", least: 0 },
    help: "how often the job may be preempted; 0: never; the queue may say less",
  },
  {
    name: "max-runtime",
    field: "runPolicy.maxRuntime",
    type: { of: "duration" },
    help: "end the job this long after its admission, e.g. 90m or 12h",
  },
  {
    name: "move-after",
    field: "runPolicy.moveAfter",
    type: { of: "duration" },
    help: "leave a cluster that has been lost for so long, e.g. 5m; 0s: never; default: as queue or namespace say",
  },
  {
    name: "backfill",
    field: "runPolicy.backfill",
    type: { of: "flag" },
    help: "let the job run on what is kept for a reservation, and be taken back at once for it",
  },
  {
    name: "interruptible",
    field: "runPolicy.interruptible",
    type: { of: "flag" },
    help: "let the pods run where the platform takes pods away",
  },
  {
    name: "interruptible-failure-threshold",
    field: "runPolicy.interruptibleFailureThreshold",
    type: { of: "number", least: 1 },
    help: "failures of the system after which later attempts are not interruptible",
  },
  {
    name: "restart-scope",
    field: "runPolicy.restartScope",
    type: { of: "word", words: RESTART_SCOPES },
    help: "REPLICA or GANG: what a failed pod restarts",
  },
  {
    name: "backoff-limit",
    field: "runPolicy.backoffLimit",
    type: { of: "number", least: 0 },
    help: "fail the job at this many failures of its program",
  },
  {
    name: "system-backoff-limit",
    field: "runPolicy.systemBackoffLimit",
    type: { of: "number", least: 0 },
    help: "fail the job at this many failures that the system caused",
  },
  {
    name: "start-backoff-limit",
    field: "runPolicy.startBackoffLimit",
    type: { of: "number", least: 1 },
    help: "fail the job after this many starts in a row that failed for one permanent reason",
  },
  {
    name: "active-deadline",
    field: "runPolicy.activeDeadlineSeconds",
    type: { of: "seconds", least: 1 },
    help: "fail the job this long after its pods were started, e.g. 12h",
  },
  {
    name: "ttl-after-finished",
    field: "runPolicy.ttlSecondsAfterFinished",
    type: { of: "seconds", least: 0 },
    help: "delete the job this long after its end, e.g. 7d",
  },
  {
    name: "clean-pod-policy",
    field: "runPolicy.cleanPodPolicy",
    type: { of: "word", words: CLEAN_POD_POLICIES },
    help: "None, Running or All: which pods are deleted at the end",
  },
  {
    name: "clean-pod-policy-at-limit",
    field: "runPolicy.cleanPodPolicyAtLimit",
    type: { of: "word", words: CLEAN_POD_POLICIES },
    help: "the same if a limit ends the job",
  },
  {
    name: "cache-key",
    field: "runPolicy.cacheKey",
    type: { of: "text" },
    help: "reuse the result of an identical job with this key",
  },
];

const BY_NAME: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((setting) => [setting.name, setting]));

export function settingOf(name: string): Setting | undefined {
  return BY_NAME.get(name);
}

/** What a text says: the value as a member of a SentSpec has it, or what is wrong. */
export type SettingOutcome =
  | { readonly kind: "value"; readonly value: Json }
  | { readonly kind: "refused"; readonly message: string };

/** Reads the text of an annotation or option. Never throws. */
export function readSetting({ type }: Setting, text: string): SettingOutcome {
  const reader = new SentReader();
  const value = readText(reader, type, text.trim());
  const [error] = reader.errors;
  if (error !== undefined) return { kind: "refused", message: error.message };
  return { kind: "value", value: value ?? null };
}

const WHOLE_NUMBER = /^-?\d{1,16}$/;

function readText(reader: SentReader, type: SettingType, text: string): Json | undefined {
  if (text === "") return reader.fail("", "must not be empty");
  switch (type.of) {
    case "text":
      return text;
    case "number":
      return readNumber(reader, text, type.least ?? -INT32_MAX);
    case "seconds":
      return readSeconds(reader, text, type.least);
    case "duration":
      return reader.durationMs(text, "");
    case "flag":
      if (text !== "true" && text !== "false") return reader.fail("", `must be true or false${notShown(text)}`);
      return text === "true";
    case "word":
      return reader.word(text, "", type.words);
    case "texts":
      return listOf(text);
    case "map":
      return mapOf(reader, text);
    default:
      return type satisfies never;
  }
}

const INT32_MAX = 2 ** 31 - 1;

function readNumber(reader: SentReader, text: string, least: number, sent = text): number | undefined {
  const number = WHOLE_NUMBER.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= INT32_MAX) return number;
  return reader.fail("", `must be a whole number from ${least} to ${INT32_MAX}${notShown(sent)}`);
}

/** A number without a unit is seconds, as in the manifest. */
function readSeconds(reader: SentReader, text: string, least: number): number | undefined {
  if (WHOLE_NUMBER.test(text)) return readNumber(reader, text, least);
  const spanMs = parseDurationMs(text);
  if (spanMs !== null && spanMs % 1000 === 0) return readNumber(reader, String(spanMs / 1000), least, text);
  const allowed = "must be whole seconds, or a duration with its unit, such as 90s, 10m or 1h30m";
  return reader.fail("", `${allowed}${notShown(text)}`);
}

function listOf(text: string): string[] {
  const items = text.split(",").map((item) => item.trim());
  return items.filter((item) => item !== "");
}

function mapOf(reader: SentReader, text: string): JsonObject | undefined {
  const pairs: [string, string][] = [];
  for (const item of listOf(text)) {
    const at = item.indexOf("=");
    if (at <= 0) return reader.fail("", `must be KEY=VALUE, with commas between several${notShown(text)}`);
    pairs.push([item.slice(0, at).trim(), item.slice(at + 1).trim()]);
  }
  return Object.fromEntries(pairs);
}

/** The values of settings by name. */
export type SettingValues = ReadonlyMap<string, Json>;

/**
 * The spec with these values in place of its own. A priority class replaces a priority, and a priority replaces a
 * class: both together would have to be equal. So do a required and a preferred level: a wish has one of them.
 */
export function withSettings(spec: SentSpec, values: SettingValues): SentSpec {
  let changed: JsonObject = spec as unknown as JsonObject;
  for (const name of replacedBy(values)) changed = withMember(changed, pathOf(name), undefined);
  for (const [name, value] of values) changed = withMember(changed, pathOf(name), value);
  return changed as unknown as SentSpec;
}

const RIVALS: readonly (readonly [string, string])[] = [
  ["priority", "priority-class"],
  ["priority-class", "priority"],
  ["required-topology", "preferred-topology"],
  ["preferred-topology", "required-topology"],
];

/** The settings that lose their value because of these: they are not among them. */
export function replacedBy(values: { readonly has: (name: string) => boolean }): readonly string[] {
  return RIVALS.filter(([set, rival]) => values.has(set) && !values.has(rival)).map(([, rival]) => rival);
}

/** The members of a SentSpec. It has durations as milliseconds. */
function pathOf(name: string): readonly string[] {
  const setting = BY_NAME.get(name);
  if (setting === undefined) throw new Error(`there is no setting ${name}`);
  const suffix = setting.type.of === "duration" ? "Ms" : "";
  return `${setting.field}${suffix}`.split(".");
}

function withMember(object: JsonObject, [first = "", ...rest]: readonly string[], value: Json | undefined): JsonObject {
  const { [first]: member, ...others } = object;
  if (rest.length === 0) return value === undefined ? others : { ...object, [first]: value };
  if (value === undefined && !isJsonObject(member)) return object;
  return { ...object, [first]: withMember(isJsonObject(member) ? member : {}, rest, value) };
}

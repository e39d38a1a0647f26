/**
 * Reads the wish for topology that the annotations of Kueue in a pod template make. It serves users who bring manifests
 * of Kueue as they are. Source: `ValidateTASPodSetRequest` of Kueue, and its KEP 2724.
 */
import { isJsonObject, type Json, type JsonObject, objectAt, stringMapAt } from "../../../runtime/json.ts";
import { keptWish, SLICES_MAX, type TopologySlice, type TopologyWish } from "../../job/placement/topology-wish.ts";
import type { FieldError } from "../../job/request/sent.ts";
import { notShown } from "../../job/request/shown-value.ts";
import { annotationPath } from "../../pods/pod-annotations.ts";
import { SentReader } from "../manifest/sent-reader.ts";

const PREFIX = "kueue.x-k8s.io/podset-";
const KEYS = {
  required: `${PREFIX}required-topology`,
  preferred: `${PREFIX}preferred-topology`,
  unconstrained: `${PREFIX}unconstrained-topology`,
  sliceLevel: `${PREFIX}slice-required-topology`,
  sliceSize: `${PREFIX}slice-size`,
  slices: `${PREFIX}slice-required-topology-constraints`,
  group: `${PREFIX}group-name`,
} as const;
/** The three that Kueue takes one of. */
const EXCLUSIVE = [KEYS.required, KEYS.preferred, KEYS.unconstrained];
/** The texts that Kueue takes for true and false. */
const TRUE = ["1", "t", "T", "true", "TRUE", "True"];
const FALSE = ["0", "f", "F", "false", "FALSE", "False"];
/** Enough for the most slices with the longest labels. */
const JSON_CHARS_MAX = 8_192;

export type KueueTopology = {
  /** Undefined: the annotations make none. */
  readonly wish: TopologyWish | undefined;
  /** Paths start at the template. */
  readonly errors: readonly FieldError[];
  readonly warnings: readonly FieldError[];
  /**
   * What a member of the wish is called in the template, such as `slices[0].size`. `within`: the place inside of the
   * annotation's text, for a message. Empty: it is the whole text.
   */
  readonly placeOf: (member: string) => { readonly path: string; readonly within: string };
};

/** `sliceSize`: the size of slices where the template names none. Null: it must. */
export function kueueTopology(template: JsonObject, sliceSize: () => number | null): KueueTopology {
  const texts = annotationsOf(template);
  if (texts.size === 0) return NONE;
  const errors: FieldError[] = [];
  const fail = (key: string, message: string) => {
    errors.push({ path: annotationPath(key), message });
    return undefined;
  };
  const named = EXCLUSIVE.filter((key) => texts.has(key));
  for (const key of named.slice(1)) fail(key, `must be omitted beside ${named[0]}`);
  const unconstrained = texts.get(KEYS.unconstrained);
  if (unconstrained !== undefined && ![...TRUE, ...FALSE].includes(unconstrained)) {
    fail(KEYS.unconstrained, `must be "true" or "false"${notShown(unconstrained)}`);
  }
  for (const key of [KEYS.required, KEYS.preferred]) if (texts.get(key) === "") fail(key, "must not be empty");
  const slices = slicesOf(texts, fail, sliceSize);
  const [required, preferred] = [texts.get(KEYS.required), texts.get(KEYS.preferred)];
  return {
    wish: errors.length > 0 ? undefined : keptWish({ required, preferred, slices }),
    errors,
    warnings: texts.has(KEYS.group) ? [{ path: annotationPath(KEYS.group), message: GROUP_IGNORED }] : [],
    placeOf: (member) => placeIn(texts, member),
  };
}

const NONE: KueueTopology = {
  wish: undefined,
  errors: [],
  warnings: [],
  placeOf: (member) => placeIn(new Map(), member),
};
const GROUP_IGNORED =
  "is ignored: Gangway does not serve groups of pod sets yet; " +
  "to keep all pods of the job together, name a level by the annotation gangway.dev/required-topology of the job";

type Texts = ReadonlyMap<string, string>;

/** The texts of Kueue's annotations for topology alone. */
function annotationsOf(template: JsonObject): Texts {
  const annotations = stringMapAt(objectAt(template, "metadata"), "annotations");
  const known = Object.values(KEYS);
  return new Map(known.flatMap((key) => (annotations[key] === undefined ? [] : [[key, annotations[key]]])));
}

/** True if the annotations of two templates make the same wish, in the same words. */
export function haveEqualTopology(one: JsonObject, other: JsonObject): boolean {
  return JSON.stringify([...annotationsOf(one)]) === JSON.stringify([...annotationsOf(other)]);
}

type Fail = (key: string, message: string) => undefined;

/** Without entries that are wrong. */
function slicesOf(texts: Texts, fail: Fail, sliceSize: () => number | null): readonly TopologySlice[] {
  const several = texts.get(KEYS.slices);
  if (several !== undefined) {
    const beside = [KEYS.sliceLevel, KEYS.sliceSize].filter((key) => texts.has(key));
    for (const key of beside) fail(key, `must be omitted beside ${KEYS.slices}`);
    return constraintsOf(several, (message) => fail(KEYS.slices, message)) ?? [];
  }
  const level = texts.get(KEYS.sliceLevel);
  const text = texts.get(KEYS.sliceSize);
  if (level === undefined) {
    if (text !== undefined) fail(KEYS.sliceSize, `must be omitted without ${KEYS.sliceLevel}`);
    return [];
  }
  if (level === "") fail(KEYS.sliceLevel, "must not be empty");
  const size = text === undefined ? sliceSize() : numberIn(text);
  if (size !== null) return [{ level, size }];
  if (text === undefined) fail(KEYS.sliceLevel, `needs ${KEYS.sliceSize} beside it`);
  else fail(KEYS.sliceSize, `must be a whole number${notShown(text)}`);
  return [];
}

/** Null: the text is no number. */
function numberIn(text: string): number | null {
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : null;
}

const FORM = 'must be JSON such as [{"topology": "rack", "size": "4"}]';

function constraintsOf(text: string, fail: (message: string) => undefined): readonly TopologySlice[] | undefined {
  if (text.length > JSON_CHARS_MAX) return fail(`must have at most ${JSON_CHARS_MAX} characters`);
  const list = parsed(text);
  if (!Array.isArray(list) || list.length === 0) return fail(FORM);
  if (list.length > SLICES_MAX) return fail(`must have at most ${SLICES_MAX} entries, not ${list.length}`);
  const reader = new SentReader();
  const slices = list.map((entry: Json, at) => sliceOf(reader, entry, `[${at}]`));
  for (const { path, message } of reader.errors) fail(`${path} ${message}`);
  return slices;
}

function sliceOf(reader: SentReader, entry: Json, at: string): TopologySlice {
  const slice = isJsonObject(entry) ? entry : {};
  reader.onlyKnown(slice, at, ["topology", "size"]);
  const level = reader.text(slice["topology"], `${at}.topology`) ?? "";
  const size = reader.wholeNumber(slice["size"], `${at}.size`, { wide: true, least: 1 });
  if ((slice["topology"] ?? "") === "") reader.fail(`${at}.topology`, "must be a level, such as rack");
  if ((slice["size"] ?? null) === null) reader.fail(`${at}.size`, "is required");
  return { level, size: size ?? 0 };
}

/** Undefined: the text is no JSON. */
function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function placeIn(texts: Texts, member: string): { readonly path: string; readonly within: string } {
  const at = (key: string, within = "") => ({ path: annotationPath(key), within });
  if (member === "required" || member === "preferred") return at(KEYS[member]);
  const within = member.slice("slices".length).replace(/\.level$/, ".topology");
  if (texts.has(KEYS.slices)) return at(KEYS.slices, within);
  return at(member.endsWith(".size") && texts.has(KEYS.sliceSize) ? KEYS.sliceSize : KEYS.sliceLevel);
}

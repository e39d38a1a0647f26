/**
 * Filters of jobs as people write them: `phase:waiting queue:nlp+ owner:me reason:NoCapacity label:team=x age:>1d`. The
 * command line and the console read them alike, so this file runs in browsers too.
 */
import { parseDurationMs } from "../../../runtime/duration.ts";
import type { JobPhase } from "../status.ts";

/** What a text selects. A job must pass every member; omitted ones pass every job. */
export type TextFilter = {
  readonly namePrefix?: string;
  readonly names?: readonly string[];
  readonly namespaces?: readonly string[];
  readonly phases?: readonly JobPhase[];
  readonly reasons?: readonly string[];
  readonly kinds?: readonly string[];
  readonly queues?: readonly string[];
  /** A queue and all below it. */
  readonly queueSubtree?: string;
  /** The creators; `OWNER_ME` is the caller, whose name the text does not know. */
  readonly createdBy?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly project?: string;
  readonly cluster?: string;
  readonly flavor?: string;
  readonly node?: string;
  readonly createdSinceMs?: number;
  readonly createdBeforeMs?: number;
  readonly endedSinceMs?: number;
};

/** A text's filter, or what is wrong with the text: a sentence for its author. */
export type ReadFilter =
  | { readonly kind: "filter"; readonly filter: TextFilter }
  | { readonly kind: "wrong"; readonly problem: string };

/** The owner that means the caller. */
export const OWNER_ME = "me";
/** Longer than any filter that a person writes. */
export const FILTER_TEXT_MAX = 4_096;
/** As many values as the API takes of the lists that it bounds the most. */
export const TERM_VALUES_MAX = 64;

const PHASES: Readonly<Record<JobPhase, true>> = {
  WAITING: true,
  ADMITTED: true,
  STARTING: true,
  RUNNING: true,
  RESTARTING: true,
  SUSPENDED: true,
  SUCCEEDED: true,
  FAILED: true,
  CANCELLED: true,
};

/** One term: its values, and the whole of it for messages. */
type Term = { readonly key: string; readonly values: readonly string[]; readonly nowMs: number };

/** Thrown for a text that is wrong; `readFilterText` returns it. */
class Wrong extends Error {}

const KEYS: Readonly<Record<string, (term: Term) => TextFilter>> = {
  phase: ({ values }) => ({ phases: values.map(phaseOf) }),
  reason: ({ values }) => ({ reasons: values }),
  queue: queueOf,
  owner: ({ values }) => ({ createdBy: values }),
  namespace: ({ values }) => ({ namespaces: values }),
  name: ({ values }) => ({ names: values }),
  kind: ({ values }) => ({ kinds: values }),
  label: ({ values }) => ({ labels: labelsOf(values) }),
  project: (term) => ({ project: only(term) }),
  cluster: (term) => ({ cluster: only(term) }),
  flavor: (term) => ({ flavor: only(term) }),
  node: (term) => ({ node: only(term) }),
  age: ageOf,
  ended: endedOf,
};

/** The keys that a term can have. */
export const FILTER_KEYS: readonly string[] = Object.keys(KEYS);

/** Reads terms that blanks separate: `key:value,value`, or a word with which names begin. All of them must hold. */
export function readFilterText(text: string, nowMs: number): ReadFilter {
  try {
    if (text.length > FILTER_TEXT_MAX) throw new Wrong(`a filter has at most ${FILTER_TEXT_MAX} characters`);
    const terms = text.split(/\s/).filter((word) => word !== "");
    return { kind: "filter", filter: terms.reduce((filter, word) => joined(filter, memberOf(word, nowMs)), {}) };
  } catch (error) {
    if (error instanceof Wrong) return { kind: "wrong", problem: error.message };
    throw error;
  }
}

function memberOf(word: string, nowMs: number): TextFilter {
  const colon = word.indexOf(":");
  if (colon < 0) return { namePrefix: prefixOf(word) };
  const key = word.slice(0, colon);
  const read = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
  if (read === undefined)
    throw new Wrong(`there is no key "${key}" in "${word}"; use one of ${FILTER_KEYS.join(", ")}`);
  const values = word.slice(colon + 1).split(",");
  if (values.includes("")) throw new Wrong(`a value is missing in "${word}"; write ${key}:VALUE or ${key}:VALUE,VALUE`);
  if (values.length > TERM_VALUES_MAX)
    throw new Wrong(`${key} has ${values.length} values; at most ${TERM_VALUES_MAX}`);
  return read({ key, values, nowMs });
}

/** Both filters. Labels of several terms must all hold; any other member is given once. */
function joined(one: TextFilter, other: TextFilter): TextFilter {
  const twice = Object.keys(other).find((member) => member !== "labels" && Object.hasOwn(one, member));
  if (twice !== undefined) throw new Wrong(TWICE[twice as keyof TextFilter] ?? `${twice} is given twice`);
  const isBoth = one.queues !== undefined && other.queueSubtree !== undefined;
  if (isBoth || (one.queueSubtree !== undefined && other.queues !== undefined)) throw new Wrong(TWICE.queues ?? "");
  const labels = { ...one.labels, ...other.labels };
  for (const [key, value] of Object.entries(one.labels ?? {})) {
    if (labels[key] !== value) throw new Wrong(`the label ${key} cannot be both ${value} and ${labels[key]}`);
  }
  return { ...one, ...other, ...(Object.keys(labels).length === 0 ? {} : { labels }) };
}

const listOnce = (key: string) => `${key} is given twice; write all values in one term: ${key}:VALUE,VALUE`;
const valueOnce = (key: string) => `${key} is given twice`;

/** What is wrong with a member that two terms give. */
const TWICE: Readonly<Partial<Record<keyof TextFilter, string>>> = {
  namePrefix: "a filter has one word with which names begin; other terms are key:value",
  names: listOnce("name"),
  namespaces: listOnce("namespace"),
  phases: listOnce("phase"),
  reasons: listOnce("reason"),
  kinds: listOnce("kind"),
  queues: listOnce("queue"),
  queueSubtree: "a filter has one queue with +",
  createdBy: listOnce("owner"),
  createdSinceMs: valueOnce("age:<"),
  createdBeforeMs: valueOnce("age:>"),
  endedSinceMs: valueOnce("ended"),
};

function prefixOf(word: string): string {
  if (/^[-a-z0-9]{1,63}$/.test(word)) return word;
  throw new Wrong(
    `"${word}" is neither key:value nor the beginning of a name: at most 63 lower-case letters, digits and '-'`,
  );
}

function phaseOf(value: string): JobPhase {
  const phase = value.toUpperCase();
  if (Object.hasOwn(PHASES, phase)) return phase as JobPhase;
  throw new Wrong(`there is no phase ${value}; use one of ${Object.keys(PHASES).join(", ").toLowerCase()}`);
}

/** A `+` after the name means the queue and all below it. */
function queueOf({ values }: Term): TextFilter {
  const [first = "", ...others] = values;
  if (!values.some((value) => value.endsWith("+"))) return { queues: values };
  if (others.length > 0) throw new Wrong("a queue with + stands alone in its term: queue:NAME+");
  if (first === "+") throw new Wrong("the name of the queue is missing before +");
  return { queueSubtree: first.slice(0, -1) };
}

function labelsOf(values: readonly string[]): Readonly<Record<string, string>> {
  const labels = new Map<string, string>();
  for (const value of values) {
    const [, key, wanted] = /^([^=]+)=([^=]*)$/.exec(value) ?? [];
    if (key === undefined || wanted === undefined) throw new Wrong(`"${value}" is no label; write label:KEY=VALUE`);
    const before = labels.get(key) ?? wanted;
    if (before !== wanted) throw new Wrong(`the label ${key} cannot be both ${before} and ${wanted}`);
    labels.set(key, wanted);
  }
  return Object.fromEntries(labels);
}

function only({ key, values }: Term): string {
  const [value = "", ...others] = values;
  if (others.length > 0) throw new Wrong(`${key} takes one value`);
  return value;
}

/** Created longer ago than `>1d`, or not as long ago as `<1d`. */
function ageOf(term: Term): TextFilter {
  const { isLonger, atMs } = spanOf(term, "age:>1d or age:<90m");
  return isLonger ? { createdBeforeMs: atMs } : { createdSinceMs: atMs };
}

function endedOf(term: Term): TextFilter {
  const { isLonger, atMs } = spanOf(term, "ended:<1d: within the last day");
  if (isLonger) throw new Wrong("ended takes < only, such as ended:<1d: within the last day");
  return { endedSinceMs: atMs };
}

function spanOf(term: Term, example: string): { readonly isLonger: boolean; readonly atMs: number } {
  const value = only(term);
  const spanMs = parseDurationMs(value.slice(1));
  const isSpan = spanMs !== null && Number.isSafeInteger(term.nowMs - spanMs);
  if (!isSpan || !"<>".includes(value.charAt(0))) throw new Wrong(`"${value}" is no span; write ${example}`);
  // Before 1970 there are no jobs.
  return { isLonger: value.startsWith(">"), atMs: Math.max(0, term.nowMs - spanMs) };
}

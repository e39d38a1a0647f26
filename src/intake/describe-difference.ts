import type { SentJob } from "../core/job/request/sent.ts";
import { cutText } from "../runtime/cut-text.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../runtime/json.ts";
import { type PathStep, requestPath } from "./request-path.ts";

const DIFFERENCES_MAX = 3;
const VALUE_CHARS_MAX = 60;

/** Names the first differences between an existing job and a sent one: the field and both values. */
export function describeDifference(there: SentJob, here: SentJob): string {
  const found: Difference[] = [];
  compare({ there, here, steps: [] }, found);
  const described = found.slice(0, DIFFERENCES_MAX).map((difference) => {
    const [there, here] = [shown(difference.there), shown(difference.here)];
    return `${requestPath(difference.steps)} is ${there} in the existing job and ${here} in this one`;
  });
  const more = found.length > DIFFERENCES_MAX ? ["and more"] : [];
  return [...described, ...more].join("; ");
}

type Difference = { readonly there: unknown; readonly here: unknown; readonly steps: readonly PathStep[] };

/** Collects differences; stops after one more than is shown. */
function compare(pair: Difference, found: Difference[]): void {
  const { there, here, steps } = pair;
  if (found.length > DIFFERENCES_MAX || canonicalJson(there) === canonicalJson(here)) return;
  if (isJsonObject(there) && isJsonObject(here)) {
    const keys = [...new Set([...Object.keys(there), ...Object.keys(here)])].sort();
    for (const key of keys) compare({ there: own(there, key), here: own(here, key), steps: [...steps, key] }, found);
  } else if (Array.isArray(there) && Array.isArray(here) && there.length === here.length) {
    for (const at of there.keys()) compare({ there: there[at], here: here[at], steps: [...steps, at] }, found);
  } else {
    found.push(pair);
  }
}

/** Reads an own property, not an inherited one such as `valueOf`. */
function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function shown(value: unknown): string {
  if (value === undefined) return "not set";
  return cutText(canonicalJson(value), VALUE_CHARS_MAX);
}

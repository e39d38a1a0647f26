import type { SentJob } from "../core/job/sent.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../runtime/json.ts";
import { type PathStep, requestPath } from "./request-path.ts";

const DIFFERENCES_MAX = 3;
const VALUE_CHARS_MAX = 60;

/** Names the first differences of two jobs as they were sent: where, and what stands there and here. */
export function describeDifference(there: SentJob, here: SentJob): string {
  const found: Difference[] = [];
  compare({ there, here, steps: [] }, found);
  const described = found.slice(0, DIFFERENCES_MAX).map((difference) => {
    return `${requestPath(difference.steps)} is ${shown(difference.there)} there and ${shown(difference.here)} here`;
  });
  const more = found.length > DIFFERENCES_MAX ? ["and more"] : [];
  return [...described, ...more].join("; ");
}

type Difference = { readonly there: unknown; readonly here: unknown; readonly steps: readonly PathStep[] };

/** Collects one difference more than is shown, then stops. */
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

/** Not what every object inherits, such as `valueOf`. */
function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function shown(value: unknown): string {
  if (value === undefined) return "absent";
  const text = canonicalJson(value);
  return text.length <= VALUE_CHARS_MAX ? text : `${text.slice(0, VALUE_CHARS_MAX - 1)}…`;
}

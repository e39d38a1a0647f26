/** Completes the text of a filter. */
import { FILTER_KEYS } from "../../../../src/core/job/request/filter-text.ts";

/** Values that are the same in every installation. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  phase: [
    ...["waiting", "admitted", "starting", "running", "restarting"],
    ...["suspended", "succeeded", "failed", "cancelled"],
  ],
  reason: ["QuotaExhausted", "AboveQuota", "NoCapacity", "TooLarge", "BehindHead", "QueueStopped", "Backoff"],
  owner: ["me"],
  age: [">1h", ">1d", "<1h", "<1d"],
  ended: ["<1h", "<24h"],
};

/** Texts that continue this one: its last word is the beginning of a key, or of a value. */
export function completedFilters(text: string): readonly string[] {
  const start = text.lastIndexOf(" ") + 1;
  const before = text.slice(0, start);
  const word = text.slice(start);
  const [key = "", value] = word.split(/:(.*)/s);
  if (value === undefined) return FILTER_KEYS.filter((one) => one.startsWith(key)).map((one) => `${before}${one}:`);
  const known = Object.hasOwn(VALUES, key) ? (VALUES[key] ?? []) : [];
  return known.filter((one) => one.startsWith(value) && one !== value).map((one) => `${before}${key}:${one}`);
}

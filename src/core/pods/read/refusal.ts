import { parseMilli } from "../quantity.ts";
import type { Resources } from "../resources.ts";

/** Why an API server refused a pod, and what to do. Codes are Flyte's. */
export type PodRefusal =
  /** The quota of the namespace is used up. Pods below these ceilings may still fit. Names are those of quotas. */
  | { readonly kind: "quota"; readonly ceilings: Resources }
  /** The API server would always refuse this pod. */
  | { readonly kind: "permanent"; readonly code: "BadTaskFormat" | "EntityTooLarge" }
  /** A retry may succeed: too many requests, an error of the server, a missing permission. */
  | { readonly kind: "transient" };

/** The words of a refusal by a quota, in order, before the amounts that each names. */
const QUOTA_WORDS = ["exceeded quota: ", "requested: ", ", used: ", ", limited: "] as const;

/** Reads the answer of an API server to the creation of a pod. Never throws, whatever the answer says. */
export function readRefusal({ reason, message }: { readonly reason: string; readonly message: string }): PodRefusal {
  if (reason === "RequestEntityTooLarge" || message.includes("request is too large"))
    return { kind: "permanent", code: "EntityTooLarge" };
  if (reason === "Invalid" || reason === "BadRequest") return { kind: "permanent", code: "BadTaskFormat" };
  if (reason !== "Forbidden" || !message.includes("exceeded quota")) return { kind: "transient" };
  const [, requested = "", used = "", limited = ""] = piecesAfter(message, QUOTA_WORDS);
  return { kind: "quota", ceilings: ceilingsOf(readAmounts(requested), readAmounts(used), readAmounts(limited)) };
}

/** The text after each of these words, up to the next of them. Empty if the text lacks one of them in this order. */
function piecesAfter(text: string, words: readonly string[]): readonly string[] {
  const starts: { readonly at: number; readonly end: number }[] = [];
  for (const word of words) {
    const at = text.indexOf(word, starts.at(-1)?.end ?? 0);
    if (at < 0) return [];
    starts.push({ at, end: at + word.length });
  }
  return starts.map(({ end }, index) => text.slice(end, starts[index + 1]?.at));
}

/**
 * The amount that is left of each requested resource. If the answer does not contain it, the ceiling is just below the
 * refused amount.
 */
function ceilingsOf(requested: Resources, used: Resources, limited: Resources): Resources {
  const ceilings: Record<string, number> = {};
  for (const [name, amount] of Object.entries(requested)) {
    const left = (limited[name] ?? Number.NaN) - (used[name] ?? 0);
    ceilings[name] = left < amount ? Math.max(left, 0) : Math.max(amount - 1, 0);
  }
  return ceilings;
}

/** Reads `requests.cpu=2,requests.nvidia.com/gpu=8`. Skips texts that are not quantities. */
function readAmounts(text: string): Resources {
  const amounts: Record<string, number> = {};
  for (const part of text.split(",")) {
    const at = part.lastIndexOf("=");
    const milli = at > 0 ? parseMilli(part.slice(at + 1).trim()) : null;
    if (milli !== null) amounts[part.slice(0, at).trim()] = Number(milli);
  }
  return amounts;
}

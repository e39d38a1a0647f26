import { parseMilli } from "./quantity.ts";
import type { Resources } from "./resources.ts";

/** Why an API server did not make a pod, and what follows. Codes are Flyte's. */
export type Refusal =
  /** The namespace's quota is used up: pods that ask for no more than this may still be made, by the names that quotas use. */
  | { readonly kind: "quota"; readonly ceilings: Resources }
  /** The same pod would always be refused. */
  | { readonly kind: "permanent"; readonly code: "BadTaskFormat" | "EntityTooLarge" }
  /** Too many requests, a server's error, a right that is missing: it may do later what it does not do now. */
  | { readonly kind: "transient" };

const QUOTA = /exceeded quota: .*?requested: (.*?), used: (.*?), limited: (.*)$/s;

/** Reads the answer of an API server that was asked to make a pod; never throws, whatever it says. */
export function readRefusal({ reason, message }: { readonly reason: string; readonly message: string }): Refusal {
  if (reason === "RequestEntityTooLarge" || message.includes("request is too large"))
    return { kind: "permanent", code: "EntityTooLarge" };
  if (reason === "Invalid" || reason === "BadRequest") return { kind: "permanent", code: "BadTaskFormat" };
  if (reason !== "Forbidden" || !message.includes("exceeded quota")) return { kind: "transient" };
  const [, requested = "", used = "", limited = ""] = QUOTA.exec(message) ?? [];
  return { kind: "quota", ceilings: ceilingsOf(readAmounts(requested), readAmounts(used), readAmounts(limited)) };
}

/** What is left of each resource that was asked for; where that is not said, anything less than what was refused. */
function ceilingsOf(requested: Resources, used: Resources, limited: Resources): Resources {
  const ceilings: Record<string, number> = {};
  for (const [name, asked] of Object.entries(requested)) {
    const left = (limited[name] ?? Number.NaN) - (used[name] ?? 0);
    ceilings[name] = left < asked ? Math.max(left, 0) : Math.max(asked - 1, 0);
  }
  return ceilings;
}

/** `requests.cpu=2,requests.nvidia.com/gpu=8`; what is no quantity is left out. */
function readAmounts(text: string): Resources {
  const amounts: Record<string, number> = {};
  for (const part of text.split(",")) {
    const at = part.lastIndexOf("=");
    const milli = at > 0 ? parseMilli(part.slice(at + 1).trim()) : null;
    if (milli !== null) amounts[part.slice(0, at).trim()] = Number(milli);
  }
  return amounts;
}

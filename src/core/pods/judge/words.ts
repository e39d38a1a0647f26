import { restText } from "../../job/request/notes.ts";
import type { FieldError } from "../../job/request/sent.ts";
import type { Finding, PodFindings } from "./finding.ts";
import { placeText } from "./place.ts";

/** Longer values are cut in messages. */
const SHOWN_MAX = 80;

/** Findings as errors that a user reads: each with its path, the value, and what is allowed. */
export function findingErrors({ kept, more }: PodFindings): readonly FieldError[] {
  const errors = kept.map(findingError);
  return more === 0 ? errors : [...errors, { path: "", message: restText(more), more }];
}

function findingError(finding: Finding): FieldError {
  return { path: placeText(finding.place), message: messageOf(finding) };
}

function messageOf({ kind, value, detail, allowed = detail }: Finding): string {
  switch (kind) {
    case "required":
      return allowed === "" ? "is required" : `is required: ${allowed}`;
    case "forbidden":
      return `is not allowed: ${allowed}`;
    case "type":
      return `is ${shown(value)}: ${allowed}${quoteHint(value, detail)}`;
    default:
      return allowed.startsWith("is ") ? allowed : `is ${shown(value)}: ${allowed}`;
  }
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "").slice(0, SHOWN_MAX);
}

/** YAML reads `value: 3` as a number. */
function quoteHint(value: unknown, type: string): string {
  const isBare = typeof value === "number" || typeof value === "boolean";
  return type === "string" && isBare ? `, so write "${value}" in quotes` : "";
}

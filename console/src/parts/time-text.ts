/** Words for times. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { formatSpan } from "../../../src/cli/output/duration.ts";

export function msOf(time: Timestamp | undefined): number | null {
  return time === undefined ? null : timestampMs(time);
}

/** `3 min ago`, `2 d ago`, `now`; `in 3 min` for a time to come. */
export function agoText(atMs: number, nowMs: number): string {
  const span = nowMs - atMs;
  if (Math.abs(span) < 1_000) return "now";
  return span < 0 ? `in ${largest(-span)}` : `${largest(span)} ago`;
}

/** `3 min`: the largest unit of a span. */
function largest(spanMs: number): string {
  const seconds = Math.floor(spanMs / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

/** `3m12s`, as the command line prints ages. */
export function ageText(fromMs: number, toMs: number): string {
  return formatSpan(toMs - fromMs);
}

/** `2026-11-30 08:15:48 UTC`. */
export function exactText(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

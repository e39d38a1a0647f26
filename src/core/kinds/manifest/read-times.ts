/** Reads the times of a job that a run policy and a spec of Kubernetes have under the same names. */
import type { JsonObject } from "../../../runtime/json.ts";
import type { SentReader } from "./sent-reader.ts";

const CENTURY_SECONDS = 3_153_600_000;

/** How long the job may run, in seconds. `at`: the path of the object that says it. */
export function readDeadline(reader: SentReader, of: JsonObject, at: string): number | undefined {
  const bounds = { wide: true, least: 1, most: CENTURY_SECONDS };
  return reader.wholeNumber(of["activeDeadlineSeconds"], `${at}.activeDeadlineSeconds`, bounds);
}

/** How long the record of the job stays after its end, in seconds. */
export function readTtl(reader: SentReader, of: JsonObject, at: string): number | undefined {
  return reader.wholeNumber(of["ttlSecondsAfterFinished"], `${at}.ttlSecondsAfterFinished`, { least: 0 });
}

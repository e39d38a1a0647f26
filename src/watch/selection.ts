import type { Job } from "../core/job/job.ts";
import type { LoggedChange } from "../core/job/request/event-log.ts";
import { type JobFilter, matchesFilter } from "../core/job/request/filter.ts";
import { encodeCursor } from "./cursor.ts";

/** A change as the readers with one filter get it. */
export type SelectedChange = {
  readonly position: number;
  readonly type: LoggedChange["type"];
  readonly job: Job;
  readonly cursor: string;
};

/** The change for readers with this filter. Null: the filter drops it. */
export function select(
  { type: logged, job, previous, position }: LoggedChange,
  { filter, incarnation }: { readonly filter: JobFilter; readonly incarnation: string },
) {
  const was = previous !== null && matchesFilter(filter, job, previous);
  const is = logged !== "DELETED" && matchesFilter(filter, job);
  if (!was && !is) return null;
  const type = was ? (is ? "MODIFIED" : "DELETED") : "ADDED";
  return { position, type, job, cursor: encodeCursor({ incarnation, position }) } satisfies SelectedChange;
}

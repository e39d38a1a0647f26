import type { PluginRecord } from "./task-info.ts";

/** The admission of which a record ends an attempt that another follows: what the attempt still held is given back. Null where it ends none. */
export function endedAttempt(before: PluginRecord | undefined, after: PluginRecord | undefined): number | null {
  if (before?.stage !== "finalize" || after?.stage !== "handle" || after.admission !== before.admission) return null;
  return after.attempt > before.attempt ? after.admission : null;
}

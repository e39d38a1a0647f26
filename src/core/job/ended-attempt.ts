import type { PluginRecord } from "./task-info.ts";

/** The admission whose attempt a record ends before another attempt: its remaining tokens are released. Null: none. */
export function endedAttempt(before: PluginRecord | undefined, after: PluginRecord | undefined): number | null {
  if (before?.stage !== "finalize" || after?.stage !== "handle" || after.admission !== before.admission) return null;
  return after.attempt > before.attempt ? after.admission : null;
}

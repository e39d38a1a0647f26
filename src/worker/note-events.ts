import type { JobEvent } from "../core/job/event.ts";
import type { Job } from "../core/job/job.ts";
import { anchorName } from "../core/job/names.ts";
import type { JobMemory } from "./job-memory.ts";
import type { WorkerPorts } from "./ports.ts";

/**
 * Stores events about what was done and what failed, and writes them to the job's cluster if that is wanted. A repeated
 * warning is stored only once a minute.
 */
export async function noteEvents(
  ports: WorkerPorts,
  memory: JobMemory,
  { job, events }: { readonly job: Job; readonly events: readonly JobEvent[] },
): Promise<void> {
  const { store, clock } = ports;
  const fresh = events.filter(
    ({ type, reason, message }) =>
      type === "Normal" || memory.mayNote(job.uid, `${reason} ${message}`, clock.monotonicMs()),
  );
  if (fresh.length === 0) return;
  await store.note(job, fresh, clock.nowMs());
  writeClusterEvents(ports, job, fresh);
}

/** Writes events to the cluster of the job's last admission. Does nothing if that is not wanted. */
export function writeClusterEvents(
  { writeClusterEvents: write }: Pick<WorkerPorts, "writeClusterEvents">,
  job: Job,
  events: readonly JobEvent[],
): void {
  const { number, cluster = null } = job.admissions.at(-1) ?? {};
  if (write === undefined || number === undefined || cluster === null || events.length === 0) return;
  const anchor = anchorName(job.name, number);
  write({ cluster, namespace: job.namespace, anchor, jobUid: job.uid, events });
}

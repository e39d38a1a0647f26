/**
 * Whether a queue, and all queues below it, admit jobs, in the words of Kueue. `HOLD`: no gang is admitted or grows.
 * `HOLD_AND_DRAIN`: admissions are undone, too.
 */
export type StopPolicy = "NONE" | "HOLD" | "HOLD_AND_DRAIN";

/** The part of a queue that decides whether queues are stopped. */
export type StoppableQueue = {
  readonly name: string;
  /** Null: the queue is the root of a tree. */
  readonly parent: string | null;
  /** Omitted: `NONE`. */
  readonly stopPolicy?: StopPolicy;
};

/** The reason of a job that waits because its queue is stopped. */
export const QUEUE_STOPPED = "QueueStopped";

/** What stops a queue: itself, or a queue above it. */
export type QueueStop = { readonly queue: string; readonly drains: boolean };

/**
 * What stops a queue: the nearest queue on its path to the root that drains, else the nearest that holds. Null: jobs of
 * the queue are admitted.
 */
export function stopOf(name: string, queues: ReadonlyMap<string, StoppableQueue>): QueueStop | null {
  let held: QueueStop | null = null;
  let at = queues.get(name);
  // A tree that changes meanwhile may be read as a circle.
  for (let steps = 0; at !== undefined && steps <= queues.size; steps += 1) {
    if (at.stopPolicy === "HOLD_AND_DRAIN") return { queue: at.name, drains: true };
    if (at.stopPolicy === "HOLD") held ??= { queue: at.name, drains: false };
    at = at.parent === null ? undefined : queues.get(at.parent);
  }
  return held;
}

/** Why the jobs of a queue wait: `queue nlp is stopped`. */
export function stopWords(queue: string, { queue: stopped }: QueueStop): string {
  return stopped === queue ? `queue ${queue} is stopped` : `queue ${stopped}, above queue ${queue}, is stopped`;
}

import { type Freeze, freezeWords } from "../../quota/freeze.ts";

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
  /** Omitted or null: the queue itself is not frozen. */
  readonly freeze?: Freeze | null;
};

/** The reason of a job that waits because its queue is stopped. */
export const QUEUE_STOPPED = "QueueStopped";

/** The reason of a job that waits because its queue is frozen. */
export const QUEUE_FROZEN = "QueueFrozen";

/** What stops a queue: itself, or a queue above it. */
export type QueueStop = {
  readonly queue: string;
  readonly drains: boolean;
  /** Nothing is taken from the queue's jobs either. Omitted: the stop is a matter of policy. */
  readonly freeze?: Freeze;
};

/**
 * What stops a queue by its policy: the nearest queue on its path to the root that drains, else the nearest that holds.
 * Null: policies let jobs of the queue be admitted.
 */
export function stopOf(name: string, queues: ReadonlyMap<string, StoppableQueue>): QueueStop | null {
  let held: QueueStop | null = null;
  for (const at of pathToRoot(name, queues)) {
    if (at.stopPolicy === "HOLD_AND_DRAIN") return { queue: at.name, drains: true };
    if (at.stopPolicy === "HOLD") held ??= { queue: at.name, drains: false };
  }
  return held;
}

/** The nearest queue on the path of a queue to the root that is frozen, itself first. Null: none is. */
export function freezerOf(name: string, queues: ReadonlyMap<string, StoppableQueue>): QueueStop | null {
  for (const at of pathToRoot(name, queues)) {
    if (at.freeze) return { queue: at.name, drains: false, freeze: at.freeze };
  }
  return null;
}

/** What keeps a queue from admitting jobs. A freeze counts more than a policy: nothing drains. */
export function haltOf(name: string, queues: ReadonlyMap<string, StoppableQueue>): QueueStop | null {
  return freezerOf(name, queues) ?? stopOf(name, queues);
}

/** A queue, then the queues above it, up to the root of its tree. */
export function* pathToRoot<Queue extends { readonly parent: string | null }>(
  name: string,
  queues: ReadonlyMap<string, Queue>,
): Generator<Queue> {
  let at = queues.get(name);
  // A tree that changes meanwhile may be read as a circle.
  for (let steps = 0; at !== undefined && steps <= queues.size; steps += 1) {
    yield at;
    at = at.parent === null ? undefined : queues.get(at.parent);
  }
}

/** True if a queue is stopped by the same queue in the same way. */
export function isSameStop(one: QueueStop | null, other: QueueStop | null): boolean {
  const isSameFreeze = one?.freeze?.atMs === other?.freeze?.atMs;
  return one?.queue === other?.queue && one?.drains === other?.drains && isSameFreeze;
}

export function stopReason({ freeze }: QueueStop): string {
  return freeze === undefined ? QUEUE_STOPPED : QUEUE_FROZEN;
}

/** Why the jobs of a queue wait: `queue nlp is stopped`, `queue nlp is frozen by alice: maintenance`. */
export function stopMessage(queue: string, { queue: stopped, freeze }: QueueStop): string {
  const how = freeze === undefined ? "stopped" : `frozen${freezeWords(freeze)}`;
  return stopped === queue ? `queue ${queue} is ${how}` : `queue ${stopped}, above queue ${queue}, is ${how}`;
}

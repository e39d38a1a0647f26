import type { Job } from "../job/job.ts";
import { isElastic, mayGrow } from "./board.ts";
import { queueOf } from "./quota-book.ts";
import type { PlanSnapshot } from "./snapshot.ts";

/** Who stands in one queue; the plan takes from the front. */
export type QueueLine = {
  readonly queue: string;
  readonly strict: boolean;
  readonly growing: Job[];
  readonly waiting: Job[];
  /** Gangs that grow as there is room, once nobody else of the queue can board. */
  readonly stretching: Job[];
};

/** One line for each queue that somebody stands in, by name; in it higher priority first, then the older job, then by uid. */
export function openLines(snapshot: PlanSnapshot): readonly QueueLine[] {
  const strategies = new Map(snapshot.queues.map((queue) => [queue.name, queue.strategy]));
  const lines = new Map<string, QueueLine>();
  const lineOf = (job: Job): QueueLine => {
    const queue = queueOf(job);
    const line = lines.get(queue) ?? {
      queue,
      strict: strategies.get(queue) === "STRICT_FIFO",
      growing: [],
      waiting: [],
      stretching: [],
    };
    lines.set(queue, line);
    return line;
  };
  for (const job of [...snapshot.admitted].filter(mayGrow).sort(compareJobs)) {
    const line = lineOf(job);
    (isElastic(job) ? line.stretching : line.growing).push(job);
  }
  for (const job of [...snapshot.waiting].sort(compareJobs)) lineOf(job).waiting.push(job);
  return [...lines.values()].sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

function compareJobs(a: Job, b: Job): number {
  return b.spec.priority - a.spec.priority || a.createTimeMs - b.createTimeMs || (a.uid < b.uid ? -1 : 1);
}

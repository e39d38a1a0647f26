import { compareText } from "../../runtime/compare-text.ts";
import type { Job } from "../job/job.ts";
import type { Registry } from "../kinds/registry.ts";
import { type GrowingGang, growingGang, isElastic } from "./grow-gang.ts";
import { queueOf } from "./quota-book.ts";
import type { PlanSnapshot } from "./snapshot.ts";

/** The gangs of one queue in their order; the plan takes them from the front. */
export type QueuedGangs = {
  /** The name of the queue. */
  readonly name: string;
  readonly strict: boolean;
  /** Gangs that run with fewer members than their jobs have. */
  readonly growing: GrowingGang[];
  readonly waiting: Job[];
  /** Elastic gangs, which grow once no other gang of the queue can be admitted. */
  readonly stretching: GrowingGang[];
};

/** One list for each queue that has gangs, by the queue's name. In it: higher priority first, then age, then uid. */
export function queuedGangs(snapshot: PlanSnapshot, kinds: Registry): readonly QueuedGangs[] {
  const strategies = new Map(snapshot.queues.map((queue) => [queue.name, queue.strategy]));
  const queues = new Map<string, QueuedGangs>();
  const gangsOf = (job: Job): QueuedGangs => {
    const name = queueOf(job);
    const gangs = queues.get(name) ?? {
      name,
      strict: strategies.get(name) === "STRICT_FIFO",
      growing: [],
      waiting: [],
      stretching: [],
    };
    queues.set(name, gangs);
    return gangs;
  };
  for (const job of [...snapshot.admitted].sort(compareJobs)) {
    const gang = growingGang(job);
    if (gang === null) continue;
    const gangs = gangsOf(job);
    (isElastic(job, kinds) ? gangs.stretching : gangs.growing).push(gang);
  }
  for (const job of [...snapshot.waiting].sort(compareJobs)) gangsOf(job).waiting.push(job);
  return [...queues.values()].sort((a, b) => compareText(a.name, b.name));
}

function compareJobs(a: Job, b: Job): number {
  return b.spec.priority - a.spec.priority || a.createTimeMs - b.createTimeMs || compareText(a.uid, b.uid);
}

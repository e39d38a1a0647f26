import { compareText } from "../../runtime/compare-text.ts";
import { type GrowingGang, growingGang } from "./grow-gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { PlanSnapshot } from "./snapshot.ts";

/** The gangs of one queue in their order; the plan takes them from the front. */
export type QueuedGangs = {
  /** The name of the queue. */
  readonly name: string;
  readonly strict: boolean;
  /** Gangs that run with fewer members than their jobs have. */
  readonly growing: GrowingGang[];
  readonly waiting: PlanGang[];
  /** Elastic gangs, which grow once no other gang of the queue can be admitted. */
  readonly stretching: GrowingGang[];
};

/** One list for each queue that has gangs, by the queue's name. In it: higher priority first, then age, then uid. */
export function queuedGangs(snapshot: PlanSnapshot): readonly QueuedGangs[] {
  const strategies = new Map(snapshot.queues.map((queue) => [queue.name, queue.strategy]));
  const queues = new Map<string, QueuedGangs>();
  const gangsOf = ({ queue: name }: PlanGang): QueuedGangs => {
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
  for (const gang of [...snapshot.admitted].sort(compareGangs)) {
    const growing = growingGang(gang);
    if (growing === null) continue;
    const gangs = gangsOf(gang);
    (gang.ask.elastic ? gangs.stretching : gangs.growing).push(growing);
  }
  for (const gang of [...snapshot.waiting].sort(compareGangs)) gangsOf(gang).waiting.push(gang);
  return [...queues.values()].sort((a, b) => compareText(a.name, b.name));
}

function compareGangs(a: PlanGang, b: PlanGang): number {
  return b.priority - a.priority || a.createTimeMs - b.createTimeMs || compareText(a.uid, b.uid);
}

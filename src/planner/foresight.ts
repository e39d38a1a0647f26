import type { Job } from "../core/job/job.ts";
import type { HashedAsk } from "../core/plan/model/ask.ts";
import type { NeverRuns } from "../core/plan/model/simulation.ts";
import type { Clock } from "../runtime/clock.ts";
import { SharedCalls } from "../runtime/shared-calls.ts";
import type { FleetNow, FollowedFleet } from "./followed-fleet.ts";

/** A submit waits no longer for the fleet, which is loaded by the first question. */
export const WAIT_MS_MAX = 1_000;
/** Jobs alike are judged once in this time: those that can run, and those of one caller that never can. */
const FINE_MS = 5_000;
const NEVER_MS = 1_000;
/** How many judgements run at once: they share what they read of the fleet. */
const JUDGED_AT_ONCE = 16;
/** How many answers of each sort are remembered. */
const ANSWERS_MAX = 1_000;

type ForesightPorts = {
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly fleet: FollowedFleet;
};

export type ForeseeOptions = {
  /** Who asks. Its answer may name other queues than that of another caller. */
  readonly caller: string;
  /** The queues that may be named to the caller. */
  readonly mayUse: (queue: string) => boolean;
  /** True: waits for the answer of this moment whatever it takes, and throws the errors of the store. */
  readonly mustKnow: boolean;
  readonly signal: AbortSignal;
};

/** Says why a job that is about to be submitted can never run. Null: it can, or that is not known in time. */
export type Foresight = (job: Job, asked: HashedAsk, options: ForeseeOptions) => Promise<NeverRuns | null>;

export function createForesight({ clock, fleet }: ForesightPorts): Foresight {
  // By what a plan reads of a job. A limit that was lowered counts a few seconds later here, for a warning alone.
  const fine = new Answers<null>(clock, FINE_MS);
  const never = new Answers<NeverRuns>(clock, NEVER_MS);
  const judgements = new SharedCalls(JUDGED_AT_ONCE);
  // Others may wait for the same judgement, so no caller ends it.
  const { signal: unending } = new AbortController();

  return async (job, asked, { caller, mayUse, mustKnow, signal }) => {
    const key = JSON.stringify([asked.hash, job.spec.runPolicy.schedulingPolicy.queue, job.project, job.namespace]);
    const own = JSON.stringify([caller, key]);
    if (fine.get(key) === null) return null;
    const known = mustKnow ? undefined : never.get(own);
    if (known !== undefined) return known;
    const judge = ({ planner }: FleetNow) => {
      const found = planner.foresee(job, asked, mayUse);
      if (found === null) fine.set(key, null);
      else never.set(own, found);
      return found;
    };
    const judged = judgements.run(own, () => fleet.read(judge, unending), signal);
    return mustKnow ? judged : inTime(judged, clock);
  };
}

/** Answers that are good for some time. */
class Answers<T> {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #goodMs: number;
  readonly #byKey = new Map<string, { readonly answer: T; readonly atMs: number }>();

  constructor(clock: Pick<Clock, "monotonicMs">, goodMs: number) {
    this.#clock = clock;
    this.#goodMs = goodMs;
  }

  /** Undefined: there is none that is still good. */
  get(key: string): T | undefined {
    const known = this.#byKey.get(key);
    return known !== undefined && this.#clock.monotonicMs() - known.atMs < this.#goodMs ? known.answer : undefined;
  }

  set(key: string, answer: T): void {
    if (this.#byKey.size >= ANSWERS_MAX) this.#byKey.clear();
    this.#byKey.set(key, { answer, atMs: this.#clock.monotonicMs() });
  }
}

/** Null: the answer came too late, or not at all. A job that can be recorded must not fail for a warning. */
async function inTime<T>(answer: Promise<T | null>, clock: Pick<Clock, "sleep">): Promise<T | null> {
  const ended = new AbortController();
  const late = clock.sleep(WAIT_MS_MAX, ended.signal).then(() => null);
  try {
    return await Promise.race([answer.catch(() => null), late]);
  } finally {
    ended.abort();
  }
}

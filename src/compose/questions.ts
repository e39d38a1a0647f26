/** Connects the answers to questions about jobs with the fleet that this process follows for them. */
import { createExplainer } from "../planner/explainer.ts";
import { createFollowedFleet } from "../planner/followed-fleet.ts";
import { createForesight } from "../planner/foresight.ts";
import { createSimulator } from "../planner/simulator.ts";
import type { Base } from "./base.ts";

/** Reads of jobs that say why a job waits, and the judges of jobs that were not submitted. */
export function startQuestions({ clock, kinds, store, parts }: Pick<Base, "clock" | "kinds" | "store" | "parts">) {
  const { reads, explain } = store;
  const fleet = createFollowedFleet({ clock, followTakers: explain.followTakers });
  parts.defer(async () => fleet.close());
  return {
    reads: { ...reads, refusalOf: createExplainer({ store: explain, fleet }) },
    simulate: createSimulator({ kinds, fleet, firstWaiting: explain.firstWaiting }),
    foresee: createForesight({ clock, fleet }),
  };
}

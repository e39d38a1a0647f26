import { canonicalJson, isJsonObject, type Json, type JsonObject } from "../../../../src/runtime/json.ts";
import type { Case } from "../case.ts";
import { runAvailable } from "./available.ts";
import { runMinRuntime } from "./min-runtime.ts";
import { runQueueOrder, runTargetQueueOrder, runVictimOrder } from "./orders.ts";
import { runPlace } from "./place.ts";
import { runSession } from "./session.ts";
import { runBorrowingOn, runShare } from "./share.ts";
import { runVictims } from "./victims.ts";

/**
 * Runs one case on the planner's production functions, and returns what they found in the form of the expectations. It
 * may take from the expectations only which values are asked for.
 */
export type PlannerFunction = (one: never, expected: object) => object;

const FUNCTIONS: Readonly<Record<string, PlannerFunction>> = {
  available: runAvailable,
  share: runShare,
  borrowingOn: runBorrowingOn,
  victims: runVictims,
  minRuntime: runMinRuntime,
  session: runSession,
  victimOrder: runVictimOrder,
  targetQueueOrder: runTargetQueueOrder,
  queueOrder: runQueueOrder,
  place: runPlace,
};

/** Members of the expectations that do not count. A round's queues keep no such lists. */
const UNCOUNTED: Readonly<Record<string, readonly string[]>> = { session: ["left", "inadmissible"] };
/** Members of the parts of expectations that do not count: sentences of another system. */
const UNCOUNTED_INSIDE: Readonly<Record<string, readonly string[]>> = { place: ["reason"] };

export function plannerFunction(fn: string | undefined): PlannerFunction | null {
  return fn === undefined || !Object.hasOwn(FUNCTIONS, fn) ? null : (FUNCTIONS[fn] as PlannerFunction);
}

/** The differences between what a case expects and what a function finds. Compares the members that the case names. */
export function runPlanner(run: PlannerFunction, one: Case): readonly string[] {
  const found = run({ config: {}, ...one } as never, one.expected) as JsonObject;
  const counted = Object.entries(one.expected).filter(([name]) => !UNCOUNTED[one.fn ?? ""]?.includes(name));
  return counted.flatMap(([name, wanted]) => {
    const [expected, actual] = [withoutInside(wanted as Json, one), found[name] ?? null].map(canonicalJson);
    return expected === actual ? [] : [`${name}: expected ${expected}, found ${actual}`];
  });
}

/** What a case expects of the parts of a list, without their members that do not count. */
function withoutInside(wanted: Json, { fn = "" }: Case): Json {
  const names = UNCOUNTED_INSIDE[fn];
  if (names === undefined || !Array.isArray(wanted)) return wanted;
  return wanted.map((part: Json) => {
    return isJsonObject(part)
      ? Object.fromEntries(Object.entries(part).filter(([name]) => !names.includes(name)))
      : part;
  });
}

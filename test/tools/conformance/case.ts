import { setCondition } from "../../../src/core/job/conditions.ts";
import type { Condition, ConditionType } from "../../../src/core/job/status.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import { podSlices } from "../../../src/core/reconcile/arrange-gang.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, numberAt, objectAt, stringAt, stringMapAt } from "../../../src/runtime/json.ts";
import { claim } from "./claim.ts";
import { equalLoosely } from "./compare.ts";
import { runKind } from "./kinds/run-kind.ts";
import { minResources } from "./min-resources.ts";
import { runPass } from "./pass.ts";
import { plannerFunction, runPlanner } from "./planner/functions.ts";
import { podStatus } from "./pod-status.ts";
import { buildPods, runsOnPods } from "./pods.ts";

/** One case of a suite, in the format of its file. */
export type Case = {
  readonly id: string;
  readonly fn?: string;
  /** What the case is about, so that differences can be declared for all cases of a feature. */
  readonly features?: readonly string[];
  readonly config?: JsonObject;
  readonly input: JsonObject;
  readonly expected: JsonObject;
};

/**
 * Runs a case on the production functions. Returns the differences; none if it passed. Null: the case names a function
 * or an operation that the runner does not know.
 */
export async function runCase(one: Case): Promise<readonly string[] | null> {
  if (one.fn !== undefined && runsOnPods(one.fn)) {
    return buildPods(one.fn, one.config ?? {}, one.input, one.expected);
  }
  const ofPlanner = plannerFunction(one.fn);
  if (ofPlanner !== null) return runPlanner(ofPlanner, one);
  if (one.input["manifest"] !== undefined) return runKind(one);
  const op = stringAt(one.input, "op");
  if (op === "claim") return claim(one.input, one.expected);
  if (op === "minResources") return minResources(one.input, one.expected);
  if (op === "slices") return slices(one);
  if (op === "conditions") return conditions(one);
  const ofStatus = podStatus(one);
  if (ofStatus !== null) return ofStatus;
  if (op !== undefined || one.fn !== undefined || stringAt(one.input, "kind") === undefined) return null;
  return runPass(one.input, one.expected);
}

function slices({ input, expected }: Case): readonly string[] {
  const pods = arrayAt(input, "pods").map((pod) => podView(objectAt({ pod }, "pod")));
  const found = podSlices(pods, numberAt(input, "replicas") ?? 0);
  const result: JsonObject = { size: found.length, slices: found.map((slice) => slice.map(({ name }) => name)) };
  return Object.entries(objectAt(expected, "result")).flatMap(([name, wanted]) =>
    equalLoosely(wanted || null, result[name] || null)
      ? []
      : [`${name}: expected ${JSON.stringify(wanted)}, found ${JSON.stringify(result[name])}`],
  );
}

function conditions({ input, expected }: Case): readonly string[] {
  const read = (value: unknown): Condition => ({
    type: stringAt(value, "type") as ConditionType,
    status: stringAt(value, "status") === "True" ? "True" : "False",
    reason: stringAt(value, "reason") ?? "",
    message: stringAt(value, "message") ?? "",
    lastUpdateMs: 0,
    lastTransitionMs: 0,
  });
  let list: readonly Condition[] = arrayAt(input, "start").map(read);
  for (const step of arrayAt(input, "steps")) list = setCondition(list, read(step), 1);
  const found = list.map(({ type, status, reason }) => ({ type, status, reason }));
  const wanted = arrayAt(expected, "conditions").map((one) => stringMapAt({ one }, "one"));
  return equalLoosely(byType(found), byType(wanted))
    ? []
    : [`conditions: expected ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`];
}

function byType(list: readonly { readonly type?: string }[]): JsonObject {
  return Object.fromEntries(list.map((one) => [one.type ?? "", { ...one } as JsonObject]));
}

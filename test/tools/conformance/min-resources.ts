import { minResources as sum } from "../../../src/core/pods/build/min-resources.ts";
import { parseMilli } from "../../../src/core/pods/quantity.ts";
import { type JsonObject, numberAt, objectAt } from "../../../src/runtime/json.ts";

/** Sums a partial gang. Compares quantities by value; zero and a missing quantity are equal. */
export function minResources(input: JsonObject, expected: JsonObject): readonly string[] {
  const roles = Object.entries(objectAt(input, "replicaSpecs")).map(([role, spec]) => ({
    role,
    replicas: numberAt(spec, "replicas") ?? 0,
    template: objectAt(spec, "template"),
  }));
  const classes = objectAt(input, "priorityClasses") as Readonly<Record<string, number>>;
  const found = sum(numberAt(input, "minMember") ?? 0, roles, classes);
  const wanted = objectAt(expected, "result");
  return [...new Set([...Object.keys(found), ...Object.keys(wanted)])]
    .filter((name) => parseMilli(String(found[name] ?? "0")) !== parseMilli(String(wanted[name] ?? "0")))
    .map((name) => `${name}: expected ${JSON.stringify(wanted[name])}, found ${JSON.stringify(found[name])}`);
}

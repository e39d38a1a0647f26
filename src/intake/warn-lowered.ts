import { NoteList } from "../core/job/request/notes.ts";
import type { FieldError } from "../core/job/request/sent.ts";
import { nanoOf, resourceOfContainer } from "../core/pods/platform-resources.ts";
import { arrayAt, type Json, type JsonObject, objectAt, stringAt } from "../runtime/json.ts";

/**
 * Warns of requests above the limit of the same container, which the platform's settings lower to the limit. `built`:
 * the template with these settings. Paths start at the template.
 */
export function warnLowered(sent: JsonObject, built: JsonObject, gpuResourceName: string): readonly FieldError[] {
  const notes = new NoteList<FieldError>();
  for (const list of ["containers", "initContainers"] as const) {
    const byName = new Map(arrayAt(objectAt(built, "spec"), list).map((one) => [stringAt(one, "name"), one]));
    for (const [index, container] of arrayAt(objectAt(sent, "spec"), list).entries()) {
      const made = byName.get(stringAt(container, "name"));
      for (const { resource, request, limit, given } of aboveLimits(container, made, gpuResourceName)) {
        const path = `spec.${list}[${index}].resources.requests["${resource}"]`;
        notes.add(() => ({ path, message: `is ${request}, above the limit ${limit}: pods request ${given}` }));
      }
    }
  }
  return notes.list((rest) => ({ path: "", ...rest }));
}

type Lowered = {
  readonly resource: string;
  readonly request: string;
  readonly limit: string;
  readonly given: string;
};

function aboveLimits(container: Json, made: Json | undefined, gpuResourceName: string): readonly Lowered[] {
  const { requests, limits } = listsOf(container);
  const given = listsOf(made).requests;
  return Object.entries(requests).flatMap(([resource, request]) => {
    const limit = limits[resource];
    if (limit === undefined || amountOf(request) <= amountOf(limit) || amountOf(limit) === 0n) return [];
    const got = given[resourceOfContainer(resource, gpuResourceName) ?? ""];
    if (got === undefined || amountOf(got) >= amountOf(request)) return [];
    return [{ resource: resource.slice(0, 80), request: String(request), limit: String(limit), given: String(got) }];
  });
}

function listsOf(container: Json | undefined) {
  const resources = objectAt(container, "resources");
  return { requests: objectAt(resources, "requests"), limits: objectAt(resources, "limits") };
}

function amountOf(quantity: Json | undefined): bigint {
  return nanoOf(String(quantity ?? "0"));
}

/** The flavors that a gang gets together, as plans handle them: a list by resource, which is short and has a key. */
import { roleKey } from "../../job/flavor-labels.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import { type AskShape, unitsOf } from "../queues/ask-shape.ts";
import type { GangClass } from "../queues/records.ts";

/** The part of a gang class that flavors are chosen for. */
export type ClassAsk = Pick<GangClass, "shape" | "account" | "priority">;

/**
 * The flavors of each flavored resource that a gang requests, in the order of the resources: one if all replica types
 * have the same, else one for each of the ask's types in their order, empty for those that do not request it.
 */
export type Flavors = readonly (string | readonly string[])[];

/** The flavors by resource, and by replica type where types have different ones. */
export function choiceOf(
  { shape }: { readonly shape: AskShape },
  flavors: Flavors,
  resources: readonly string[],
): FlavorChoice {
  const requested = Object.keys(unitsOf(shape.all, resources));
  const all = requested.flatMap((resource, at): readonly (readonly [string, string])[] => {
    const own = flavors[at] ?? "";
    if (typeof own === "string") return [[resource, own]];
    const named = shape.ask.roles.map(({ role }, place) => [roleKey(role, resource), own[place] ?? ""] as const);
    return named.filter(([, flavor]) => flavor !== "");
  });
  return Object.fromEntries(all);
}

/** The flavors that a choice names, in the order of the resources. A flavor that it does not name is empty. */
export function flavorsIn(
  { shape }: { readonly shape: AskShape },
  choice: FlavorChoice,
  resources: readonly string[],
): Flavors {
  return Object.keys(unitsOf(shape.all, resources)).map((resource) => {
    return choice[resource] ?? together(shape.ask.roles.map(({ role }) => choice[roleKey(role, resource)] ?? ""));
  });
}

/** The flavors of one resource by replica type: just one if all types that request it have the same. */
export function together(flavors: readonly string[]): string | readonly string[] {
  const named = new Set(flavors.filter((flavor) => flavor !== ""));
  const [only = ""] = named;
  return named.size > 1 ? flavors : only;
}

/** Equal for equal flavors of one ask. */
export function flavorsKey(flavors: Flavors): string {
  const [only] = flavors;
  return flavors.length === 1 && typeof only === "string" ? only : JSON.stringify(flavors);
}

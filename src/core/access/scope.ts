/** Scopes: the parts of an installation that a role is bound at, and the places that a call is about. */

/** `installation` is everything, and has no name. A pool is a prefix: the pool of the name and those below it. */
export type ScopeKind = "installation" | "project" | "namespace" | "queue" | "pool" | "cluster";

export type BoundScope = { readonly kind: ScopeKind; readonly name: string };

/** What a call is about. A `share` is what a namespace of a project may use of pools; `name` is the namespace. */
export type Place = BoundScope | { readonly kind: "share"; readonly project: string; readonly name: string };

export const INSTALLATION: BoundScope = { kind: "installation", name: "" };

/** Where the things are that scopes contain. */
export type Directory = {
  readonly namespaces: ReadonlyMap<string, { readonly project: string; readonly defaultQueue: string }>;
  /** The queue above each queue. Null: the queue is a root. */
  readonly parents: ReadonlyMap<string, string | null>;
};

export const EMPTY_DIRECTORY: Directory = { namespaces: new Map(), parents: new Map() };

/** True if a place is within a scope. */
export function covers(scope: BoundScope, place: Place, directory: Directory): boolean {
  switch (scope.kind) {
    case "installation":
      return true;
    case "project":
      return projectOf(place, directory) === scope.name;
    case "namespace":
      return isInNamespace(place, scope.name, directory);
    case "queue":
      return place.kind === "queue" && isAtOrBelow(place.name, scope.name, directory);
    case "pool":
      return place.kind === "pool" && isPoolWithin(place.name, scope.name);
    case "cluster":
      return place.kind === "cluster" && place.name === scope.name;
  }
}

function projectOf(place: Place, { namespaces }: Directory): string | null {
  switch (place.kind) {
    case "project":
      return place.name;
    case "share":
      return place.project;
    case "namespace":
      return namespaces.get(place.name)?.project ?? null;
    default:
      return null;
  }
}

/** Another project may use the name of a namespace for a share of its own. */
function isInNamespace(place: Place, name: string, { namespaces }: Directory): boolean {
  if (place.kind === "namespace") return place.name === name;
  return place.kind === "share" && place.name === name && namespaces.get(name)?.project === place.project;
}

function isAtOrBelow(name: string, top: string, { parents }: Directory): boolean {
  let at: string | null = name;
  // A tree that changes meanwhile may be read as a circle.
  for (let steps = 0; at !== null && steps <= parents.size; steps += 1) {
    if (at === top) return true;
    at = parents.get(at) ?? null;
  }
  return false;
}

/** `ex:team` contains `ex:team` and `ex:team:adhoc`, but not `ex:team2`. */
export function isPoolWithin(name: string, prefix: string): boolean {
  return name === prefix || name.startsWith(`${prefix}:`) || name.startsWith(`${prefix}/`);
}

/** `namespace nlp`, `the installation`. */
export function placeText(place: Place): string {
  if (place.kind === "installation") return "the installation";
  if (place.kind === "share") return `namespace ${place.name} of project ${place.project}`;
  return `${place.kind} ${place.name}`;
}

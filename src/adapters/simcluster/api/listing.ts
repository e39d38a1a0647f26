import { compareText } from "../../../runtime/compare-text.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import { isJsonObject, numberAt, stringAt } from "../../../runtime/json.ts";
import type { SimModel } from "../model.ts";
import type { KubeObject } from "../objects/kube-object.ts";
import { keyOf, without } from "../objects/kube-object.ts";
import type { ResourceKind } from "../objects/resource-kinds.ts";
import { badRequest, expired } from "../objects/status-error.ts";
import type { ObjectMatcher } from "./selectors.ts";
import { fieldMatcher, labelMatcher } from "./selectors.ts";

/** The objects that a list or a watch is about. */
export type ObjectSelection = {
  readonly kind: ResourceKind;
  readonly namespace: string | null;
  readonly matches: ObjectMatcher;
};

/** Reads `labelSelector` and `fieldSelector`. Throws a 400 for an invalid selector. */
export function selectionOf(kind: ResourceKind, namespace: string | null, query: URLSearchParams): ObjectSelection {
  const byLabel = labelMatcher(query.get("labelSelector") ?? "");
  const byField = fieldMatcher(kind.resource, query.get("fieldSelector") ?? "");
  const inside: ObjectMatcher = ({ metadata }) => namespace === null || metadata.namespace === namespace;
  return { kind, namespace, matches: (object) => inside(object) && byLabel(object) && byField(object) };
}

/** Returns the selected objects, in the order of their keys. */
export function selected(model: SimModel, { kind, matches }: ObjectSelection): KubeObject[] {
  return inOrder([...model.store.objects(kind.resource)].filter(matches));
}

function inOrder(objects: KubeObject[]): KubeObject[] {
  return objects
    .map((object) => ({ object, key: keyOf(object.metadata) }))
    .sort((a, b) => compareText(a.key, b.key))
    .map(({ object }) => object);
}

/** Lists one page. The continue token keeps the version of the first page, so that all pages show the same version. */
export function listObjects(model: SimModel, selection: ObjectSelection, query: URLSearchParams): JsonObject {
  const token = query.get("continue") ?? "";
  const from = token === "" ? { version: exactVersion(model, query), after: "" } : parseToken(token);
  const all =
    from.version === model.store.version ? selected(model, selection) : objectsAtVersion(model, selection, from);
  const rest = from.after === "" ? all : all.filter((object) => keyOf(object.metadata) > from.after);
  const limit = Number(query.get("limit") ?? "0") || rest.length;
  const page = rest.slice(0, limit);
  const left = rest.length - page.length;
  return {
    kind: `${selection.kind.kind}List`,
    apiVersion: selection.kind.apiVersion,
    metadata: { resourceVersion: String(from.version), ...continuation(from.version, page.at(-1), left, query) },
    // The items of a list do not repeat their kind.
    items: page.map((object) => without(object, "apiVersion", "kind") as JsonObject),
  };
}

/** Like kube-apiserver, tells the remaining count only without selectors: a selector would need a whole list. */
function continuation(version: number, last: KubeObject | undefined, left: number, query: URLSearchParams): JsonObject {
  if (left === 0 || last === undefined) return {};
  const token = { continue: makeToken(version, keyOf(last.metadata)) };
  const selective = ["labelSelector", "fieldSelector"].some((name) => (query.get(name) ?? "") !== "");
  return selective ? token : { ...token, remainingItemCount: left };
}

const CONTINUE_EXPIRED =
  "The provided continue parameter is too old to display a consistent list result. " +
  "You can start a new list without the continue parameter, " +
  "or use the continue token in this response to retrieve the remainder of the results. " +
  "Continuing with the provided token results in an inconsistent list - " +
  "objects that were created, modified, or deleted between the time the first chunk was returned and now " +
  "may show up in the list.";

function objectsAtVersion(
  model: SimModel,
  { kind, matches }: ObjectSelection,
  from: { version: number; after: string },
): KubeObject[] {
  const objects = model.store.history.objectsAt(kind.resource, from.version, model.store.objects(kind.resource));
  if (objects === null && from.after !== "") {
    throw expired(CONTINUE_EXPIRED, { continue: makeToken(model.store.version, from.after) });
  }
  if (objects === null) throw tooOld(from.version, model);
  return inOrder(objects.filter(matches));
}

/** The error for a version that the history has forgotten. */
export function tooOld(version: number, model: SimModel): Error & { body(): JsonObject } {
  return expired(`too old resource version: ${version} (${model.store.history.floor})`);
}

function exactVersion(model: SimModel, query: URLSearchParams): number {
  const version = query.get("resourceVersion") ?? "";
  if (query.get("resourceVersionMatch") !== "Exact") return model.store.version;
  return Math.min(Number(version) || 0, model.store.version);
}

function makeToken(version: number, after: string): string {
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: version, start: after })).toString("base64url");
}

function parseToken(token: string): { version: number; after: string } {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(token, "base64url").toString());
    const version = numberAt(parsed, "rv");
    const after = stringAt(parsed, "start");
    if (isJsonObject(parsed) && version !== undefined && after !== undefined) return { version, after };
  } catch {
    // An invalid token gets the error below.
  }
  throw badRequest("invalid continue token: continue key is not valid");
}

/** Serves clients of the simulated API: finds the resource, verb and options that the path of a request names. */
import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import type { SimModel } from "../model.ts";
import { kindAt } from "../objects/custom-kinds.ts";
import type { Propagation } from "../objects/deletion.ts";
import type { KubeObject } from "../objects/kube-object.ts";
import { without } from "../objects/kube-object.ts";
import type { ObjectStore } from "../objects/object-store.ts";
import type { ResourceKind } from "../objects/resource-kinds.ts";
import { badRequest, StatusError } from "../objects/status-error.ts";
import { listObjects, selected, selectionOf } from "./listing.ts";
import { jsonPatch, mergePatch } from "./patch.ts";
import { createObject, getObject, removeObject, replaceObject } from "./verbs.ts";

/** The parts of an API path. `name` is null for a collection. */
export type Route = {
  readonly kind: ResourceKind;
  readonly namespace: string | null;
  readonly name: string | null;
  readonly part: "main" | "status" | "log";
};

export type SimRequest = {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly body: Json;
};

const PATCH_TYPES = ["json-patch", "merge-patch", "strategic-merge-patch"].map((type) => `application/${type}+json`);

type SimResponse = { readonly code: number; readonly body: JsonObject };

const NO_PATH = new StatusError(404, "NotFound", "the server could not find the requested resource", {});

/** Parses a path below `/api/v1` or `/apis/GROUP/VERSION`. Throws a 404 for a path that is not served. */
export function parseRoute(path: string, store: ObjectStore): Route {
  const { apiVersion, rest } = splitVersion(path.split("/").map(decodeSegment));
  // `namespaces/x/pods` is in a namespace; `namespaces/x/status` is a part of one.
  const inside = rest[0] === "namespaces" && kindAt(store, apiVersion, rest[2] ?? "")?.namespaced === true;
  const namespace = inside ? (rest[1] ?? "") : null;
  const [resource = "", name = null, sub = null, ...more] = inside ? rest.slice(2) : rest;
  const kind = kindAt(store, apiVersion, resource);
  if (kind === undefined || more.length > 0 || name === "") throw NO_PATH;
  if (name !== null && kind.namespaced !== inside) throw NO_PATH;
  return { kind, namespace, name, part: partOf(kind, sub) };
}

function splitVersion([empty, api, ...rest]: readonly string[]): { apiVersion: string; rest: readonly string[] } {
  if (empty === "" && api === "api" && rest[0] === "v1") return { apiVersion: "v1", rest: rest.slice(1) };
  if (empty === "" && api === "apis") return { apiVersion: rest.slice(0, 2).join("/"), rest: rest.slice(2) };
  throw NO_PATH;
}

function partOf(kind: ResourceKind, sub: string | null): Route["part"] {
  if (sub === null) return "main";
  if (sub === "status" && kind.hasStatus) return "status";
  if (sub === "log" && kind.resource === "pods") return "log";
  throw NO_PATH;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw NO_PATH;
  }
}

/** Handles every request except watches and logs. Throws a StatusError for a refusal. */
export function handleRequest(model: SimModel, route: Route, request: SimRequest): SimResponse {
  return route.name === null
    ? handleCollection(model, route, request)
    : handleObject(model, { ...route, name: route.name }, request);
}

function handleCollection(model: SimModel, route: Route, request: SimRequest): SimResponse {
  const { kind, namespace } = route;
  switch (request.method) {
    case "GET":
      return { code: 200, body: listObjects(model, selectionOf(kind, namespace, request.query), request.query) };
    case "POST":
      if (kind.namespaced && namespace === null) throw notAllowed();
      return { code: 201, body: createObject(model, route, request.body, isDryRun(request)) };
    case "DELETE":
      if (kind.namespaced && namespace === null) throw notAllowed();
      return { code: 200, body: deleteCollection(model, route, request) };
    default:
      throw notAllowed();
  }
}

function handleObject(model: SimModel, target: Route & { readonly name: string }, request: SimRequest): SimResponse {
  if (target.part === "log") throw notAllowed();
  const options = { part: target.part, dryRun: isDryRun(request) };
  switch (request.method) {
    case "GET":
      return { code: 200, body: getObject(model, target).object };
    case "PUT":
      return { code: 200, body: replaceObject(model, target, request.body, options) };
    case "PATCH":
      if (!PATCH_TYPES.includes(request.contentType)) {
        throw new StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
      }
      return {
        code: 200,
        body: replaceObject(model, target, patched(getObject(model, target).object, request), options),
      };
    case "DELETE":
      if (target.part === "status") throw notAllowed();
      return { code: 200, body: deleted(model, target, request) };
    default:
      throw notAllowed();
  }
}

/** Applies a patch. A merge patch without a version applies to any version. */
function patched(object: KubeObject, { body, contentType }: SimRequest): Json {
  const metadata = without(object.metadata, "resourceVersion");
  switch (contentType) {
    case "application/json-patch+json":
      return jsonPatch(object, body);
    default:
      if (!isJsonObject(body)) throw badRequest("a merge patch must be an object");
      return mergePatch({ ...object, metadata }, body) ?? null;
  }
}

function deleted(model: SimModel, target: Route & { readonly name: string }, request: SimRequest): JsonObject {
  const { kind, name } = target;
  const preconditions = objectAt(request.body, "preconditions");
  const last = removeObject(model, target, {
    ...deletionOptions(request),
    preconditions: {
      uid: stringAt(preconditions, "uid"),
      resourceVersion: stringAt(preconditions, "resourceVersion"),
    },
  });
  const isStillThere = last.metadata.deletionTimestamp !== undefined;
  if (kind.returnsDeleted || isStillThere) return last;
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name, kind: kind.resource, uid: last.metadata.uid },
  };
}

function deleteCollection(model: SimModel, { kind, namespace }: Route, request: SimRequest): JsonObject {
  const objects = selected(model, selectionOf(kind, namespace, request.query));
  const options = { ...deletionOptions(request), preconditions: {} };
  const items = objects.map(({ metadata }) => {
    return removeObject(model, { kind, namespace: metadata.namespace ?? null, name: metadata.name }, options);
  });
  const metadata = { resourceVersion: String(model.store.version) };
  return { kind: `${kind.kind}List`, apiVersion: kind.apiVersion, metadata, items };
}

function deletionOptions(request: SimRequest) {
  const { query, body } = request;
  const queried = query.get("gracePeriodSeconds");
  const orphan = isJsonObject(body) && body["orphanDependents"] === true;
  const propagation = stringAt(body, "propagationPolicy") ?? query.get("propagationPolicy") ?? undefined;
  if (propagation !== undefined && !["Background", "Foreground", "Orphan"].includes(propagation)) {
    throw badRequest(`invalid propagation policy ${propagation}`);
  }
  return {
    graceSeconds: numberAt(body, "gracePeriodSeconds") ?? (queried === null ? undefined : Number(queried) || 0),
    propagation: orphan ? ("Orphan" as const) : (propagation as Propagation | undefined),
    dryRun: isDryRun(request),
  };
}

function isDryRun({ query, body, method }: SimRequest): boolean {
  return query.getAll("dryRun").includes("All") || (method === "DELETE" && arrayAt(body, "dryRun").includes("All"));
}

function notAllowed(): StatusError {
  return new StatusError(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
  );
}

import type { Json, JsonObject } from "../../../runtime/json.ts";
import { canonicalJson, isJsonObject, stringAt } from "../../../runtime/json.ts";
import { badRequest, StatusError } from "../objects/status-error.ts";

/** Applies a JSON merge patch (RFC 7396). Null removes a member; an array replaces the old one. */
export function mergePatch(target: Json | undefined, patch: Json | undefined): Json | undefined {
  if (!isJsonObject(patch)) return patch;
  const merged: Record<string, Json | undefined> = isJsonObject(target) ? { ...target } : {};
  for (const [member, value] of Object.entries(patch)) {
    if (value === null) delete merged[member];
    else merged[member] = mergePatch(merged[member], value);
  }
  return merged;
}

type Mutable = { [member: string]: unknown } | unknown[];

/**
 * Applies all operations of a JSON patch (RFC 6902), or none. Throws a 422 for a failed test or a missing path, as
 * Kubernetes does.
 */
export function jsonPatch(target: JsonObject, operations: Json): Json {
  if (!Array.isArray(operations))
    throw badRequest("json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  const root: { value: unknown } = { value: structuredClone(target) };
  for (const operation of operations as readonly Json[]) applyOperation(root, operation);
  return root.value as Json;
}

function applyOperation(root: { value: unknown }, operation: Json): void {
  const path = stringAt(operation, "path");
  if (!isJsonObject(operation) || path === undefined) throw badRequest("a JSON patch operation needs op and path");
  const from = stringAt(operation, "from") ?? "";
  const value = structuredClone(operation["value"]);
  switch (operation["op"]) {
    case "add":
      write(root, path, value, "insert");
      break;
    case "replace":
      read(root, path);
      write(root, path, value, "set");
      break;
    case "remove":
      remove(root, path);
      break;
    case "test":
      if (canonicalJson(read(root, path)) !== canonicalJson(value)) throw patchRefused(`testing path ${path} failed`);
      break;
    case "copy":
      write(root, path, structuredClone(read(root, from)), "insert");
      break;
    case "move": {
      const moved = read(root, from);
      remove(root, from);
      write(root, path, moved, "insert");
      break;
    }
    default:
      throw badRequest(`unexpected kind: ${String(operation["op"])}`);
  }
}

function patchRefused(reason: string): StatusError {
  return new StatusError(422, "Invalid", `the server rejected our request due to an error in our request: ${reason}`);
}

function tokens(path: string): readonly string[] {
  if (path === "") return [];
  if (!path.startsWith("/")) throw badRequest(`invalid JSON pointer: ${path}`);
  return path
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function read(root: { value: unknown }, path: string): unknown {
  let at: unknown = root.value;
  for (const token of tokens(path)) at = child(at, token, path);
  return at;
}

function child(parent: unknown, token: string, path: string): unknown {
  const inner =
    isContainer(parent) && Object.hasOwn(parent, token) ? (parent as Record<string, unknown>)[token] : undefined;
  if (inner === undefined) throw patchRefused(`path ${path} does not exist`);
  return inner;
}

function isContainer(value: unknown): value is Mutable {
  return typeof value === "object" && value !== null;
}

function parentOf(root: { value: unknown }, path: string): { parent: Mutable; last: string } {
  const parts = tokens(path);
  let parent: unknown = root.value;
  for (const token of parts.slice(0, -1)) parent = child(parent, token, path);
  if (!isContainer(parent)) throw patchRefused(`path ${path} does not exist`);
  return { parent, last: parts.at(-1) ?? "" };
}

function write(root: { value: unknown }, path: string, value: unknown, mode: "insert" | "set"): void {
  if (path === "") {
    root.value = value;
    return;
  }
  const { parent, last } = parentOf(root, path);
  if (Array.isArray(parent)) {
    const at = last === "-" ? parent.length : Number(last);
    if (!Number.isInteger(at) || at < 0 || at > parent.length) throw patchRefused(`index ${last} is out of bounds`);
    parent.splice(at, mode === "set" ? 1 : 0, value);
  } else if (last !== "__proto__") {
    parent[last] = value;
  }
}

function remove(root: { value: unknown }, path: string): void {
  read(root, path);
  const { parent, last } = parentOf(root, path);
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
}

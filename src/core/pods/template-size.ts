import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import type { FieldError } from "../job/request/sent.ts";

/** How large a template may be: in all, and each of its members. docs/api.md lists it. */
export const TEMPLATE_BOUNDS = {
  /** Of its JSON. */
  bytesMax: 1024 * 1024,
  /** Members, items, texts and numbers. */
  valuesMax: 100_000,
  /** Lists and objects within each other. Those of Kubernetes are less deep. */
  depthMax: 32,
  /** Of a list that is not named below: variables, arguments, members that are unknown. */
  itemsMax: 50_000,
  /** Of an object that is not named below. Members that are unknown are warnings, however many they are. */
  membersMax: 50_000,
  /** Of the name of a member: a label has at most 317. */
  nameBytesMax: 1_024,
  /** Pods have a handful of each. A pod policy compares each one with up to hundreds of entries. */
  lists: {
    "spec.containers": 128,
    "spec.initContainers": 128,
    "spec.volumes": 1_000,
    "spec.tolerations": 1_000,
    /** The labels of a pod's flavors join each of these terms. */
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms": 1_000,
  } as Readonly<Record<string, number>>,
  /**
   * Of lists and objects of this name, wherever they are. Real pods have a handful of each, but for the values of a
   * term, which may be the names of nodes. Each member costs more than its bytes.
   */
  named: {
    labels: 1_000,
    annotations: 1_000,
    nodeSelector: 1_000,
    limits: 1_000,
    requests: 1_000,
    overhead: 1_000,
    matchLabels: 1_000,
    hostAliases: 1_000,
    imagePullSecrets: 1_000,
    volumeMounts: 1_000,
    values: 10_000,
  } as Readonly<Record<string, number>>,
};

/** The first error of a template that is too large to be checked any further. Paths start at the template. */
export function checkTemplateSize(template: JsonObject): readonly FieldError[] {
  const walk = new SizeWalk();
  const error = walk.value(template, "", 1);
  if (error !== null) return [error];
  const { bytesMax } = TEMPLATE_BOUNDS;
  const bytes = Buffer.byteLength(JSON.stringify(template));
  return bytes <= bytesMax
    ? []
    : [{ path: "", message: `must be at most ${bytesMax} bytes of JSON, but has ${bytes}` }];
}

const PATH_SHOWN_MAX = 200;

/** Stops at the first bound that is passed. */
class SizeWalk {
  #values = 0;

  value(value: Json | undefined, path: string, depth: number): FieldError | null {
    this.#values += 1;
    const { valuesMax, depthMax } = TEMPLATE_BOUNDS;
    if (this.#values > valuesMax) return { path: "", message: `must have at most ${valuesMax} values in all` };
    if (typeof value !== "object" || value === null) return null;
    if (depth > depthMax)
      return tooLarge(path, `must not have more than ${depthMax} lists and objects within each other`);
    return isJsonObject(value) ? this.#members(value, path, depth) : this.#items(value, path, depth);
  }

  #items(list: readonly Json[], path: string, depth: number): FieldError | null {
    const max = TEMPLATE_BOUNDS.lists[path] ?? namedMax(path) ?? TEMPLATE_BOUNDS.itemsMax;
    if (list.length > max) return tooLarge(path, `must have at most ${max} items, but has ${list.length}`);
    for (const [at, item] of list.entries()) {
      const error = this.value(item, `${path}[${at}]`, depth + 1);
      if (error !== null) return error;
    }
    return null;
  }

  #members(object: JsonObject, path: string, depth: number): FieldError | null {
    const { nameBytesMax } = TEMPLATE_BOUNDS;
    const membersMax = namedMax(path) ?? TEMPLATE_BOUNDS.membersMax;
    let members = 0;
    for (const name in object) {
      members += 1;
      if (members > membersMax) return tooLarge(path, `must have at most ${membersMax} members`);
      if (Buffer.byteLength(name) > nameBytesMax) {
        return tooLarge(path, `must not have a member whose name has more than ${nameBytesMax} bytes`);
      }
      const error = this.value(object[name], path === "" ? name : `${path}.${name}`, depth + 1);
      if (error !== null) return error;
    }
    return null;
  }
}

function namedMax(path: string): number | undefined {
  const name = path.slice(path.lastIndexOf(".") + 1);
  return Object.hasOwn(TEMPLATE_BOUNDS.named, name) ? TEMPLATE_BOUNDS.named[name] : undefined;
}

function tooLarge(path: string, message: string): FieldError {
  return { path: path.slice(0, PATH_SHOWN_MAX), message };
}

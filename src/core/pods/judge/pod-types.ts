import { isJsonObject, type Json, type JsonObject } from "../../../runtime/json.ts";
import { KUBERNETES_TYPES } from "./kubernetes-types.ts";

/** The type of a member. `name`: an object's type, or a scalar. */
export type MemberType =
  | { readonly form: "object"; readonly name: string }
  | { readonly form: "scalar"; readonly name: string }
  | { readonly form: "list"; readonly of: MemberType }
  | { readonly form: "map"; readonly of: MemberType };

/** The members of an object, by name. */
export type TypeMembers = ReadonlyMap<string, MemberType>;

export const TEMPLATE_TYPE = "PodTemplateSpec";

function read(text: string): MemberType {
  const inner = text.slice(1, -1);
  if (text.startsWith("[")) return { form: "list", of: read(inner) };
  if (text.startsWith("{")) return { form: "map", of: read(inner) };
  return { form: Object.hasOwn(KUBERNETES_TYPES, text) ? "object" : "scalar", name: text };
}

const TYPES: ReadonlyMap<string, TypeMembers> = new Map(
  Object.entries(KUBERNETES_TYPES).map(([type, text]) => {
    const members = text.trim().split(/\s+/);
    const pairs = members.map((member): [string, MemberType] => {
      const colon = member.indexOf(":");
      return [member.slice(0, colon), read(member.slice(colon + 1))];
    });
    return [type, new Map(pairs)];
  }),
);

const NO_MEMBERS: ReadonlyMap<string, MemberType> = new Map();

/** The members that Kubernetes knows of a type. */
export function membersOf(type: string): TypeMembers {
  return TYPES.get(type) ?? NO_MEMBERS;
}

/** The names of all types that a pod template reaches. */
export function typeNames(): readonly string[] {
  return [...TYPES.keys()];
}

/**
 * A template with the members that are known, so that no other member reaches a cluster unjudged. Of its metadata, only
 * labels and annotations stay.
 */
export function knownTemplate(template: JsonObject): JsonObject {
  return knownMembers(template, membersOf(TEMPLATE_TYPE));
}

function knownMembers(object: JsonObject, members: TypeMembers): JsonObject {
  const known: Record<string, Json | undefined> = {};
  // An object may have many thousands of members, of which few are known.
  for (const name in object) {
    const type = members.get(name);
    if (type !== undefined) known[name] = knownValue(object[name], type);
  }
  return known;
}

function knownValue(value: Json | undefined, type: MemberType): Json | undefined {
  if (type.form === "object" && isJsonObject(value)) return knownMembers(value, membersOf(type.name));
  if (type.form !== "list" || type.of.form !== "object" || !Array.isArray(value)) return value;
  const { of } = type;
  return (value as readonly Json[]).map((item) => knownValue(item, of) ?? null);
}

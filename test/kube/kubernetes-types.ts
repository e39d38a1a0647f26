/**
 * `npm run kube:types`: writes `src/core/pods/judge/kubernetes-types.ts` from the OpenAPI document that the API server
 * of the tests publishes. It keeps the types that a pod template reaches, and of them names and types of members alone.
 */
import { writeFileSync } from "node:fs";
import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../src/runtime/json.ts";
import { controlPlaneBuilt, KUBERNETES_VERSION } from "./build.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";

const ROOT = "io.k8s.api.core.v1.PodTemplateSpec";
/** Gangway sets all metadata of pods but these. */
const METADATA = { type: "ObjectMeta", members: ["annotations", "labels"] };
const SCALARS: Readonly<Record<string, string>> = {
  "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
};
const COLUMNS_MAX = 120;

export const TYPES_FILE = new URL("../../src/core/pods/judge/kubernetes-types.ts", import.meta.url);

/** The text of the file for the document of an API group, `GET /openapi/v3/api/v1`. */
export function typesFile(document: Json, version: string): string {
  const schemas = objectAt(objectAt(document, "components"), "schemas");
  const types = new Map<string, readonly string[]>();
  const waiting = [ROOT];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const short = shortName(name);
    if (types.has(short)) continue;
    const members = membersOf(objectAt(schemas, name), short);
    types.set(short, members.map(([member, schema]) => `${member}:${typeText(schema, waiting)}`).sort());
  }
  const sorted = [...types].sort(([a], [b]) => (a < b ? -1 : 1));
  return `${HEAD(version)}${sorted.map(([name, members]) => entry(name, members)).join("")}};\n`;
}

const HEAD = (version: string) => `/**
 * The members of Kubernetes' objects that a pod template reaches, by type. \`npm run kube:types\` writes this file from
 * the OpenAPI document of Kubernetes ${version}. Do not edit it.
 *
 * \`NAME:TYPE\` is a member: an object of that type or a scalar, \`[TYPE]\` a list, \`{TYPE}\` a map.
 *
 * Derived from Kubernetes. Copyright The Kubernetes Authors. Licensed under the Apache License, Version 2.0:
 * https://www.apache.org/licenses/LICENSE-2.0
 */
export const KUBERNETES_TYPES: Readonly<Record<string, string>> = {
`;

function membersOf(schema: JsonObject, type: string): readonly (readonly [string, Json | undefined])[] {
  const all = Object.entries(objectAt(schema, "properties"));
  return type === METADATA.type ? all.filter(([name]) => METADATA.members.includes(name)) : all;
}

function shortName(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

/** Adds the types that a schema names to \`waiting\`. */
function typeText(schema: Json | undefined, waiting: string[]): string {
  const reference =
    stringAt(schema, "$ref") ?? arrayAt(schema, "allOf").flatMap((one) => stringAt(one, "$ref") ?? [])[0];
  if (reference !== undefined) {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    const scalar = SCALARS[name];
    if (scalar === undefined) waiting.push(name);
    return scalar ?? shortName(name);
  }
  const of = isJsonObject(schema) ? schema : {};
  const type = stringAt(of, "type") ?? "";
  if (type === "array") return `[${typeText(of["items"], waiting)}]`;
  if (type === "object") return `{${typeText(of["additionalProperties"], waiting)}}`;
  if (type === "integer") return stringAt(of, "format") ?? "int64";
  if (type === "string" || type === "boolean") return type;
  throw new Error(`no word for the type ${JSON.stringify(schema)}`);
}

/** One member of the table, formatted as the linter does. */
function entry(name: string, members: readonly string[]): string {
  const one = `  ${name}: "${members.join(" ")}",\n`;
  if (one.length <= COLUMNS_MAX + 1) return one;
  const lines = [`  ${name}: \``];
  for (const word of members) {
    const last = lines.at(-1) ?? "";
    if (lines.length === 1 || last.length + word.length + 3 > COLUMNS_MAX) lines.push(`    ${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return `${lines.join("\n")}\`,\n`;
}

/** The text that a control plane's document gives. */
export async function publishedTypes(plane: ControlPlane): Promise<string> {
  const answer = await plane.client.request({ method: "GET", path: "/openapi/v3/api/v1" });
  if (answer.kind !== "ok") throw new Error(`the API server does not answer with its document: ${answer.kind}`);
  return typesFile(answer.object, KUBERNETES_VERSION);
}

if (import.meta.main) {
  if (!controlPlaneBuilt()) throw new Error("the control plane is not built: run npm run kube:build, which needs Go");
  const plane = await startControlPlane();
  try {
    writeFileSync(TYPES_FILE, await publishedTypes(plane));
  } finally {
    await plane.stop();
  }
}

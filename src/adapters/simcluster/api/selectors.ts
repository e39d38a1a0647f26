import { isJsonObject } from "../../../runtime/json.ts";
import { splitOutside } from "../../../runtime/scan-text.ts";
import type { KubeObject } from "../objects/kube-object.ts";
import { badRequest } from "../objects/status-error.ts";

/** True for an object that a list or a watch includes. */
export type ObjectMatcher = (object: KubeObject) => boolean;

type Requirement = {
  readonly key: string;
  readonly operator: "in" | "notin" | "exists" | "absent";
  readonly values: readonly string[];
};

/** Parses a label selector: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`. Throws a 400 for others. */
export function labelMatcher(selector: string): ObjectMatcher {
  const requirements = splitOutsideParentheses(selector).map(parseRequirement);
  return ({ metadata }) => requirements.every((one) => meets(one, metadata.labels?.[one.key]));
}

function meets({ operator, values }: Requirement, actual: string | undefined): boolean {
  switch (operator) {
    case "in":
      return actual !== undefined && values.includes(actual);
    case "notin":
      return actual === undefined || !values.includes(actual);
    case "exists":
      return actual !== undefined;
    case "absent":
      return actual === undefined;
  }
}

function splitOutsideParentheses(selector: string): readonly string[] {
  return splitOutside(selector, { open: "(", close: ")" })
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

const KEY = "[A-Za-z0-9][A-Za-z0-9._/-]*";
const SET = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EQUALITY = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*([A-Za-z0-9._-]*)$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${KEY})$`);

function parseRequirement(text: string): Requirement {
  const [, inKey, inOperator, list = ""] = SET.exec(text) ?? [];
  if (inKey !== undefined) {
    const values = list.split(",").map((value) => value.trim());
    return { key: inKey, operator: inOperator === "in" ? "in" : "notin", values };
  }
  const [, key, operator, value = ""] = EQUALITY.exec(text) ?? [];
  if (key !== undefined) return { key, operator: operator === "!=" ? "notin" : "in", values: [value] };
  const [, not, plainKey] = EXISTENCE.exec(text) ?? [];
  if (plainKey === undefined) throw badRequest(`unable to parse requirement: ${JSON.stringify(text)}`);
  return { key: plainKey, operator: not === "!" ? "absent" : "exists", values: [] };
}

const COMMON_FIELDS = ["metadata.name", "metadata.namespace"];
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  pods: ["spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase"],
  nodes: ["spec.unschedulable"],
  namespaces: ["status.phase"],
  secrets: ["type"],
  events: ["involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid", "reason"],
};

/** Parses a field selector, `status.phase=Running,spec.nodeName!=n1`. Throws a 400 for an unsupported field. */
export function fieldMatcher(resource: string, selector: string): ObjectMatcher {
  const supported = [...COMMON_FIELDS, ...(FIELDS[resource] ?? [])];
  const terms = splitOutsideParentheses(selector).map((term) => {
    const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(term);
    if (match === null)
      throw badRequest(`invalid field selector: invalid selector: '${selector}'; can't understand '${term}'`);
    const [, field = "", operator, value = ""] = match;
    if (!supported.includes(field)) throw badRequest(`field label not supported: ${field}`);
    return { path: field.split("."), equal: operator !== "!=", value };
  });
  return (object) => terms.every((term) => (fieldText(object, term.path) === term.value) === term.equal);
}

function fieldText(object: KubeObject, path: readonly string[]): string {
  let at: unknown = object;
  for (const member of path) at = isJsonObject(at) ? at[member] : undefined;
  return at === undefined || at === null ? (path.at(-1) === "unschedulable" ? "false" : "") : String(at);
}

import { isJsonObject } from "../../runtime/json.ts";
import { ROLE_NAME } from "./check-sent.ts";
import type { Kind } from "./kind.ts";
import { schemaFault } from "./schema-words.ts";

/** Throws an error with this text if the condition does not hold. */
export type Must = (holds: boolean, what: string) => void;

const NAME = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
/** The required form of members that become names in manifests and labels. */
const TEXTS = {
  description: { as: /^/, what: "text" },
  apiVersion: { as: /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/[a-z0-9]{1,63}$/, what: "text such as acme.com/v1" },
  replicaSpecsField: { as: /^[a-z][A-Za-z0-9]{0,62}$/, what: "the name of a member, such as replicaSpecs" },
  operatorName: {
    as: /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
    what: "a label's value: at most 63 letters, digits, dashes, dots and underscores",
  },
} as const;
const CONTAINER = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const PORT_NAME = /^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$/;
const LETTER = /[a-z]/;
const FUNCTIONS = ["roleName", "validate", "clusterSpec", "objects", "isMaster", "verdict"] as const;
const OPTIONAL_FUNCTIONS = ["elasticRoles", "warn", "countedInit", "service"] as const;
/** Members that only kinds of Gangway itself have. */
const OWN_MEMBERS: readonly (keyof Kind)[] = ["manifestKind", "readSpec", "podName", "rules"];
/** The name of a kind that shares its name in manifests with another: with the version and the group. */
const LONG_NAME = /^[A-Za-z][A-Za-z0-9]{0,62}\.[a-z0-9]{1,63}\.[a-z0-9]([-a-z0-9.]{0,125}[a-z0-9])?$/;
const MEMBERS: readonly (keyof Kind)[] = [
  "name",
  "runs",
  ...(Object.keys(TEXTS) as (keyof typeof TEXTS)[]),
  ...FUNCTIONS,
  "defaultContainer",
  "containerRequired",
  "defaultPort",
  "roles",
  "defaults",
  "kindSpecSchema",
  "example",
  "olderForm",
  ...OPTIONAL_FUNCTIONS,
];
const RESTART_POLICIES = ["Always", "OnFailure", "Never", "ExitCode"];
const RESTART_SCOPES = ["REPLICA", "GANG"];

/** Checks every member of a kind when it is registered. The kind may be any value. */
export function checkKind(kind: unknown, { isOwn }: { readonly isOwn: boolean }, must: Must): void {
  must(isJsonObject(kind), "a kind must be an object: make it with podKind or serviceKind");
  const members = kind as Record<string, unknown>;
  const { name, runs = "pods" } = members;
  const isNamed = typeof name === "string" && (NAME.test(name) || (isOwn && LONG_NAME.test(name)));
  must(isNamed, "a kind's name must be a letter, then up to 62 letters and digits");
  const its: Must = (holds, what) => must(holds, `${name}.${what}`);
  const allowed = isOwn ? [...MEMBERS, ...OWN_MEMBERS] : MEMBERS;
  const unknown = Object.keys(members).find((member) => !allowed.some((known) => known === member));
  its(unknown === undefined, `${unknown} is not a member of a kind; members are: ${MEMBERS.join(", ")}`);
  its(runs === "pods" || runs === "service", "runs must be pods or service");
  for (const [member, { as, what }] of Object.entries(TEXTS))
    its(matches(members[member], as), `${member} must be ${what}`);
  for (const member of FUNCTIONS) its(typeof members[member] === "function", `${member} must be a function`);
  for (const member of OPTIONAL_FUNCTIONS) {
    const value = members[member];
    its(value === undefined || typeof value === "function", `${member} must be a function`);
  }
  checkContainer(members, its);
  checkOlderForm(members, its);
  checkRoles(members, its);
  checkDefaults(members["defaults"], its);
  its(isJson(members["example"]) && isJsonObject(members["example"]), "example must be a manifest: an object of JSON");
  checkSchema(members["kindSpecSchema"], its);
}

function checkOlderForm({ olderForm, apiVersion, roles }: Record<string, unknown>, its: Must): void {
  if (olderForm === undefined) return;
  its(isJsonObject(olderForm), "olderForm must be an object");
  const { apiVersion: older, replicaSpecField, role, spellings, defaults } = olderForm as Record<string, unknown>;
  const { apiVersion: version, replicaSpecsField: field } = TEXTS;
  its(matches(older, version.as) && older !== apiVersion, `olderForm.apiVersion must be ${version.what}, and another`);
  its(matches(replicaSpecField, field.as), `olderForm.replicaSpecField must be ${field.what}`);
  const listed = Array.isArray(roles) ? roles : [];
  its(
    listed.some((one) => isJsonObject(one) && one["name"] === role),
    "olderForm.role must be one of the roles",
  );
  const texts = isJsonObject(spellings) && Object.values(spellings).every((text) => typeof text === "string");
  its(texts, "olderForm.spellings must be an object of texts");
  its(isJson(defaults) && isJsonObject(defaults), "olderForm.defaults must be an object of JSON");
}

function checkContainer(
  { defaultContainer, containerRequired, defaultPort }: Record<string, unknown>,
  its: Must,
): void {
  const named = defaultContainer === null || matches(defaultContainer, CONTAINER);
  its(named, "defaultContainer must be null or a container's name: lower-case letters, digits and dashes");
  its(typeof containerRequired === "boolean", "containerRequired must be true or false");
  its(containerRequired === false || defaultContainer !== null, "containerRequired needs a defaultContainer");
  if (defaultPort === null) return;
  its(isJsonObject(defaultPort), "defaultPort must be null or { name, number }");
  const { name, number } = defaultPort as Record<string, unknown>;
  its(
    matches(name, PORT_NAME) && matches(name, LETTER) && !String(name).includes("--"),
    "defaultPort.name must be up to 15 lower-case letters, digits and dashes, and no dash beside another",
  );
  its(isWhole(number, 1) && Number(number) <= 65_535, "defaultPort.number must be a whole number of 1 to 65535");
}

function checkRoles({ runs, roles, roleName }: Record<string, unknown>, its: Must): void {
  its(roles === null || Array.isArray(roles), "roles must be a list or null");
  const listed = (roles ?? []) as readonly unknown[];
  if (runs === "service") {
    its(roles !== null && listed.length === 0, "roles must be empty, because the kind runs a service");
    return;
  }
  its(
    roles === null || listed.length > 0,
    "roles must name at least one role, or be null so that jobs may use any names",
  );
  const seen = new Set<string>();
  for (const [at, role] of listed.entries()) {
    its(isJsonObject(role), `roles[${at}] must be an object with name, min and max`);
    const { name, min, max, neverEnds } = role as Record<string, unknown>;
    const named = matches(name, ROLE_NAME);
    its(named, `roles[${at}].name must be a letter, then up to 29 letters, digits and dashes`);
    its(isWhole(min, 0), `roles[${at}].min must be a whole number of at least 0`);
    const bounded = max === null || (isWhole(max, 1) && Number(max) >= Number(min));
    const isMark = neverEnds === undefined || typeof neverEnds === "boolean";
    its(isMark, `roles[${at}].neverEnds must be true or false`);
    its(bounded, `roles[${at}].max must be null, or a whole number of at least 1 and at least min`);
    its(!seen.has(String(name).toLowerCase()), `roles must not name ${name} twice`);
    seen.add(String(name).toLowerCase());
  }
  for (const { name } of listed as readonly { readonly name: string }[]) {
    its(spelled(roleName, name) === name, `roleName must return ${name} unchanged, as roles spells it`);
  }
}

function spelled(roleName: unknown, role: unknown): unknown {
  try {
    return (roleName as (role: unknown) => unknown)(role);
  } catch {
    return undefined;
  }
}

function checkDefaults(defaults: unknown, its: Must): void {
  its(isJsonObject(defaults), "defaults must be an object with restartPolicy, restartScope and backoffLimit");
  const { restartPolicy, restartScope, backoffLimit } = defaults as Record<string, unknown>;
  const isOne = (value: unknown, of: readonly string[]) => of.some((one) => one === value);
  its(isOne(restartPolicy, RESTART_POLICIES), `defaults.restartPolicy must be one of ${RESTART_POLICIES.join(", ")}`);
  its(isOne(restartScope, RESTART_SCOPES), `defaults.restartScope must be one of ${RESTART_SCOPES.join(", ")}`);
  its(
    backoffLimit === null || isWhole(backoffLimit, 0),
    "defaults.backoffLimit must be null or a whole number of at least 0",
  );
}

function checkSchema(schema: unknown, its: Must): void {
  its(isJson(schema), "kindSpecSchema must be JSON");
  const fault = schemaFault(schema, "kindSpecSchema");
  its(fault === null, fault ?? "");
  its((schema as { type?: unknown }).type === "object", "kindSpecSchema.type must be object");
}

function matches(value: unknown, as: RegExp): boolean {
  return typeof value === "string" && as.test(value);
}

function isWhole(value: unknown, min: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= min;
}

/** False for values with cycles, and for values that JSON cannot hold. */
function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

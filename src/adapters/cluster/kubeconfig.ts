import { KUBECONFIG_BYTES_MAX } from "../../core/admin/cluster.ts";
import { arrayAt, isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import { readYaml, type YamlDocument, type YamlLimits } from "../../runtime/yaml.ts";
import {
  CLUSTER_MEMBERS,
  CONFIG_MEMBERS,
  CONTEXT_MEMBERS,
  keyPairProblem,
  type Members,
  memberProblems,
  shownName,
  typeName,
  USER_MEMBERS,
} from "./kubeconfig-members.ts";

type KubeconfigOutcome =
  /** JSON text of a kubeconfig with the chosen context alone, and its parts. */
  | { readonly kind: "ok"; readonly kubeconfig: string; readonly cluster: JsonObject; readonly user: JsonObject }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

type Chosen = {
  readonly contextName: string;
  readonly clusterName: string;
  readonly userName: string;
  readonly cluster: JsonObject;
  readonly user: JsonObject;
};

const LIMITS: YamlLimits = {
  bytesMax: KUBECONFIG_BYTES_MAX,
  // An argument of a program is the deepest value, at 7 levels.
  depthMax: 16,
  // A kubeconfig of this size with nothing but short words has fewer.
  tokensMax: 20_000,
  referencesMax: 0,
};
/** A reader repairs a few problems at a time. */
const PROBLEMS_MAX = 20;

/**
 * Takes one context out of a kubeconfig, so that credentials for other clusters are not stored. Takes only the members
 * that `kubeconfig-members.ts` lists, each of its type. Refuses everything else with a list of all problems, which
 * quotes no value. `allowLocal`: members that run programs, name files of this machine or lead through a proxy are
 * taken too.
 */
export function pickContext(
  text: string,
  options: { readonly context: string; readonly allowLocal: boolean },
): KubeconfigOutcome {
  const document = readYaml(text, LIMITS);
  if (document.kind === "invalid") return refused(unreadable(document));
  const config = document.value;
  if (!isJsonObject(config)) return refused(["the kubeconfig must be an object in YAML or JSON"]);
  const problems = [...configProblems(config)];
  const chosen = choose(config, options, problems);
  if (chosen === null || problems.length > 0) return refused(problems);
  const { contextName, clusterName, userName, cluster, user } = chosen;
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: clusterName, cluster }],
    users: [{ name: userName, user }],
    contexts: [{ name: contextName, context: { cluster: clusterName, user: userName } }],
    "current-context": contextName,
  };
  return { kind: "ok", kubeconfig: JSON.stringify(kubeconfig), cluster, user };
}

function refused(problems: readonly string[]): KubeconfigOutcome {
  const more = problems.length - PROBLEMS_MAX;
  const shown = more > 0 ? [...problems.slice(0, PROBLEMS_MAX), `and ${more} more problems`] : problems;
  return { kind: "refused", problems: shown };
}

/** The parser's own words are left out, since they would quote credentials. */
function unreadable({ problems }: Extract<YamlDocument, { kind: "invalid" }>): readonly string[] {
  return problems.map(({ line, message }) =>
    line === null
      ? `the kubeconfig ${message}`
      : `the kubeconfig must be an object in YAML or JSON, but line ${line} ${message}`,
  );
}

const LISTS = { clusters: "cluster", users: "user", contexts: "context" } as const;

/** Says what is wrong with the members beside the chosen cluster and user. */
function configProblems(config: JsonObject): readonly string[] {
  const { clusters, users, contexts, ...others } = config;
  const lists = Object.entries({ clusters, users, contexts }) as [keyof typeof LISTS, Json | undefined][];
  const own = { members: { ...CONFIG_MEMBERS, ...LIST_NAMES }, allowLocal: true };
  const isUnset = ([name, value]: [string, unknown]) => name === "current-context" && value === "";
  const given = Object.fromEntries(Object.entries(others).filter((entry) => !isUnset(entry)));
  return [...memberProblems(given, "", own), ...lists.flatMap(([list, value]) => listProblems(list, value ?? null))];
}

/** Only for the names in errors: the lists themselves are checked apart. */
const LIST_NAMES: Members = { clusters: { type: "text" }, users: { type: "text" }, contexts: { type: "text" } };

function listProblems(list: keyof typeof LISTS, value: Json): readonly string[] {
  if (value === null) return [];
  if (!Array.isArray(value)) return [`${list} must be a list, but is ${typeName(value)}`];
  const inner = LISTS[list];
  const seen = new Set<string>();
  return value.flatMap((entry: Json, index) => {
    const at = `${list}[${index}]`;
    if (!isJsonObject(entry)) return [`${at} must be an object with name and ${inner}, but is ${typeName(entry)}`];
    const { name, [inner]: body, ...others } = entry;
    const problems = Object.keys(others).map((other) => {
      return `${at}.${shownName(other)} is not allowed: allowed are name and ${inner}`;
    });
    if (typeof name !== "string" || name === "") problems.push(`${at}.name must be text, but is ${typeName(name)}`);
    else if (seen.has(name)) problems.push(`${at}.name is also the name of an earlier entry: ${shownName(name)}`);
    else seen.add(name);
    if (!isJsonObject(body)) problems.push(`${at}.${inner} must be an object, but is ${typeName(body)}`);
    return problems;
  });
}

/** Finds the chosen context with its cluster and user, and adds what is wrong with them. Null: one is missing. */
function choose(
  config: JsonObject,
  options: { readonly context: string; readonly allowLocal: boolean },
  problems: string[],
): Chosen | null {
  const contextName = options.context || (stringAt(config, "current-context") ?? "");
  if (contextName === "") return missing(problems, "the kubeconfig has no current context, and none was chosen");
  const context = find(config, "contexts", contextName, problems);
  if (context === null) return null;
  append(problems, memberProblems(context.body, context.at, { members: CONTEXT_MEMBERS, allowLocal: false }));
  const parts = (["cluster", "user"] as const).map((member) => {
    const name = context.body[member];
    if (name === undefined) problems.push(`${context.at}.${member} is missing: it must name one of the ${member}s`);
    if (typeof name !== "string" || name === "") return null;
    const found = find(config, `${member}s`, name, problems);
    return found === null ? null : { ...found, name };
  });
  const [cluster = null, user = null] = parts;
  if (cluster !== null) append(problems, clusterProblems(cluster, options.allowLocal));
  if (user !== null) append(problems, userProblems(user, options.allowLocal));
  if (cluster === null || user === null) return null;
  return { contextName, clusterName: cluster.name, userName: user.name, cluster: cluster.body, user: user.body };
}

function missing(problems: string[], problem: string): null {
  problems.push(problem);
  return null;
}

type Found = { readonly at: string; readonly body: JsonObject };

/** The entry of that name. Null: there is none, which becomes a problem, or it is no object, which is one already. */
function find(config: JsonObject, list: keyof typeof LISTS, name: string, problems: string[]): Found | null {
  const index = arrayAt(config, list).findIndex((entry) => stringAt(entry, "name") === name);
  const entry = arrayAt(config, list)[index];
  if (!isJsonObject(entry)) return missing(problems, `the kubeconfig has no ${LISTS[list]} ${shownName(name)}`);
  const body = entry[LISTS[list]];
  return isJsonObject(body) ? { at: `${list}[${index}].${LISTS[list]}`, body } : null;
}

function clusterProblems({ at, body }: Found, allowLocal: boolean): readonly string[] {
  const problems = [...memberProblems(body, at, { members: CLUSTER_MEMBERS, allowLocal })];
  if (body["server"] === undefined) problems.push(`${at}.server is missing: it must be an https or http URL`);
  const isInsecure = body["insecure-skip-tls-verify"] === true;
  if (URL.parse(stringAt(body, "server") ?? "")?.protocol === "http:" && !isInsecure) {
    problems.push(`${at}.server must be an https URL, unless insecure-skip-tls-verify is true`);
  }
  const authority = ["certificate-authority-data", "certificate-authority"].find((name) => body[name] !== undefined);
  if (isInsecure && authority !== undefined) {
    problems.push(`${at}.${authority} must be omitted if insecure-skip-tls-verify is true`);
  }
  return problems;
}

function userProblems({ at, body }: Found, allowLocal: boolean): readonly string[] {
  const problems = [...memberProblems(body, at, { members: USER_MEMBERS, allowLocal })];
  const has = (...names: readonly string[]) => names.some((name) => body[name] !== undefined);
  if (has("token") && has("username", "password")) problems.push(`${at} must have a token or a password, not both`);
  if (has("username") !== has("password")) problems.push(`${at} must have username and password, or neither`);
  if (has("client-certificate-data") && !has("client-key-data", "client-key"))
    problems.push(`${at}.client-certificate-data needs client-key-data`);
  if (has("client-key-data") && !has("client-certificate-data", "client-certificate"))
    problems.push(`${at}.client-key-data needs client-certificate-data`);
  const certificate = stringAt(body, "client-certificate-data");
  const key = stringAt(body, "client-key-data");
  if (problems.length > 0 || certificate === undefined || key === undefined) return problems;
  const mismatch = keyPairProblem(certificate, key);
  return mismatch === null ? [] : [`${at}.client-key-data ${mismatch}`];
}

import { parse } from "yaml";
import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";

type KubeconfigOutcome =
  /** JSON text of a kubeconfig with the chosen context alone. */
  | { readonly kind: "ok"; readonly kubeconfig: string }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

/** Fields of a foreign kubeconfig that run programs or read files on this machine. */
const PROGRAMS = ["exec", "auth-provider"];
const FILES: Readonly<Record<"cluster" | "user", readonly string[]>> = {
  cluster: ["certificate-authority"],
  user: ["client-certificate", "client-key", "tokenFile"],
};

/**
 * Takes one context out of a kubeconfig, so that credentials for other clusters are not stored. Refuses it with a list
 * of all problems: missing or invalid fields and, unless `allowLocal`, fields that run programs or name files of this
 * machine.
 */
export function pickContext(
  text: string,
  options: { readonly context: string; readonly allowLocal: boolean },
): KubeconfigOutcome {
  const config = parseYaml(text);
  if (config === null) return refused("the kubeconfig must be an object in YAML or JSON");
  const contextName = options.context || (stringAt(config, "current-context") ?? "");
  if (contextName === "") return refused("the kubeconfig has no current context, and none was chosen");
  const context = named(config, "contexts", contextName, "context");
  if (context === null) return refused(`the kubeconfig has no context ${contextName}`);
  const clusterName = stringAt(context, "cluster") ?? "";
  const cluster = named(config, "clusters", clusterName, "cluster");
  if (cluster === null) return refused(`the kubeconfig has no cluster ${clusterName || "for its context"}`);
  const userName = stringAt(context, "user") ?? "";
  const user = named(config, "users", userName, "user") ?? {};
  const problems = [...serverProblems(cluster), ...(options.allowLocal ? [] : localProblems(cluster, user))];
  if (problems.length > 0) return { kind: "refused", problems };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: clusterName, cluster }],
    users: [{ name: userName, user }],
    contexts: [{ name: contextName, context: { cluster: clusterName, user: userName } }],
    "current-context": contextName,
  };
  return { kind: "ok", kubeconfig: JSON.stringify(kubeconfig) };
}

function refused(problem: string): KubeconfigOutcome {
  return { kind: "refused", problems: [problem] };
}

/**
 * Parses YAML or JSON. Null: it is invalid. The parser's message is not passed on, since it would quote credentials.
 */
function parseYaml(text: string): JsonObject | null {
  try {
    const parsed: unknown = parse(text);
    return isJsonObject(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

function named(config: JsonObject, list: string, name: string, member: string): JsonObject | null {
  const found = arrayAt(config, list).find((one) => stringAt(one, "name") === name);
  return found === undefined ? null : objectAt(found, member);
}

function serverProblems(cluster: JsonObject): readonly string[] {
  const server = stringAt(cluster, "server") ?? "";
  const url = URL.parse(server);
  const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
  return isHttp ? [] : ["the cluster's server must be an https or http URL"];
}

function localProblems(cluster: JsonObject, user: JsonObject): readonly string[] {
  const programs = PROGRAMS.filter((member) => user[member] !== undefined).map(
    (member) => `the user's ${member} runs a program, which this server does not allow`,
  );
  const files = [
    ...FILES.cluster.filter((member) => cluster[member] !== undefined).map((member) => `the cluster's ${member}`),
    ...FILES.user.filter((member) => user[member] !== undefined).map((member) => `the user's ${member}`),
  ].map(
    (member) =>
      `${member} names a file, which this server does not allow: embed it, as kubectl config view --flatten does`,
  );
  return [...programs, ...files];
}

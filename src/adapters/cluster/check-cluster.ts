/** Serves admins who register a cluster: finds what the service could not do there, before a job fails on it. */

import type { ClusterCheck, ClusterFinding } from "../../core/admin/cluster.ts";
import type { ClusterFlavor } from "../../core/plan/model/snapshot.ts";
import type { Topology } from "../../core/plan/model/topology.ts";
import { GANG_SCHEDULERS, type GangScheduler } from "../../core/pods/build/pod-group.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import { type AllowedHosts, DEFAULT_CLUSTER_HOSTS, parseAllowedHosts } from "./allowed-hosts.ts";
import { nodeFindings } from "./check-nodes.ts";
import { createKubeClient, type KubeClient } from "./client.ts";
import { meaningOf } from "./failure-meaning.ts";
import { HOST_REFUSED } from "./guarded-connector.ts";
import { readUid } from "./identity.ts";
import { isKnownReason, type KubeFailure, reasonOf } from "./kube-failure.ts";
import { groupsPath } from "./list-job.ts";
import { PERMISSIONS, type Permission, type ServedSecret, secretPermission } from "./permissions.ts";

/** HTTP times are whole seconds, and a call takes time: a smaller skew means nothing. */
const SKEW_MS_MAX = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
/** A caller waits for the check, and clients give up a call after 30 s. */
const CHECK_MS_MAX = 20_000;
/** Resources of the core group that every gang needs. */
const ESSENTIAL = ["nodes", "pods", "services", "configmaps"];
/** A reader repairs a few at a time. */
const FINDINGS_MAX = 100;
/** More webhooks than a cluster works with. */
const WEBHOOKS_MAX = 200;
const WEBHOOKS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
/** Systems that hold back, change or schedule pods themselves, by a word in the names of their webhooks. */
const QUEUEING_SYSTEMS = ["kueue", "volcano", "yunikorn", "koordinator", "kai-scheduler", "runai", "armada"];

/**
 * Checks whether a cluster can serve this installation, without changing anything there. Never throws for an answer of
 * the cluster.
 */
export async function checkCluster(
  kubeconfig: string,
  of: {
    readonly clock: Clock;
    readonly namespaces: readonly string[];
    /** The gang scheduler that the cluster is registered with. Null or omitted: none. */
    readonly gangScheduler?: GangScheduler | null;
    /** The flavors that the cluster is registered with. Omitted: none. */
    readonly flavors?: readonly ClusterFlavor[];
    /** The levels that the cluster is registered with. Omitted: none. */
    readonly topology?: Topology;
    /** Its Secrets with kubeconfigs of other clusters. Omitted: none. */
    readonly secrets?: readonly ServedSecret[];
    /** The addresses that connections may lead to. Omitted: all but link-local ones and their like. */
    readonly hosts?: AllowedHosts | undefined;
  },
): Promise<ClusterCheck> {
  const hosts = of.hosts ?? parseAllowedHosts(DEFAULT_CLUSTER_HOSTS);
  const client = createKubeClient({ kubeconfig, hosts, connectionsMax: 8, requestTimeoutMs: REQUEST_TIMEOUT_MS });
  const ended = new AbortController();
  const late = new AbortController();
  void of.clock.sleep(CHECK_MS_MAX, ended.signal).then(() => late.abort(new Error("the check took too long")));
  try {
    return await examine({ request: (request) => client.request(request, late.signal) }, of);
  } finally {
    ended.abort();
    await client.close();
  }
}

/** A client for the calls of one check. */
type Asked = Pick<KubeClient, "request">;

async function examine(client: Asked, of: Parameters<typeof checkCluster>[1]): Promise<ClusterCheck> {
  const version = await client.request({ method: "GET", path: "/version" });
  const kubernetesVersion = version.kind === "ok" ? versionOf(version.object) : "";
  if (version.kind === "failed" || kubernetesVersion === "") {
    const finding = version.kind === "failed" ? unanswered(version) : NOT_KUBERNETES;
    return { kubernetesVersion, clockSkewMs: null, uid: null, findings: [finding] };
  }
  const clockSkewMs = version.dateMs === undefined ? null : clamped(version.dateMs - of.clock.nowMs());
  const read = await readUid(client);
  const findings = [
    ...(await missingPermissions(client, of)),
    ...(await missingScheduler(client, of.gangScheduler ?? null)),
    ...skewFindings(clockSkewMs),
    ...(await nodeFindings(client, of)),
    ...(await foreignWebhooks(client, of.namespaces)),
  ];
  const order = { ERROR: 0, WARNING: 1 };
  const worstFirst = findings.toSorted((a, b) => order[a.severity] - order[b.severity]);
  const uid = read.kind === "ok" ? read.uid : null;
  return { kubernetesVersion, clockSkewMs, uid, findings: worstFirst.slice(0, FINDINGS_MAX) };
}

/** The server's version. Empty: it does not answer like an API server, so nothing of its answer is shown. */
function versionOf(answer: JsonObject): string {
  const version = stringAt(answer, "gitVersion") ?? "";
  return /^v\d{1,3}\.\d{1,3}[\w.+-]{0,50}$/.test(version) ? version : "";
}

const NOT_KUBERNETES: ClusterFinding = {
  severity: "ERROR",
  code: "NotKubernetes",
  message: "the server answers, but its /version is not that of a Kubernetes API server",
};

/** A server may send any date. Ten years fit into every client's duration. */
function clamped(skewMs: number): number {
  const SKEW_SHOWN_MS_MAX = 10 * 365 * 24 * 3_600_000;
  return Math.min(Math.max(skewMs, -SKEW_SHOWN_MS_MAX), SKEW_SHOWN_MS_MAX);
}

function unanswered(failure: KubeFailure): ClusterFinding {
  return {
    severity: "ERROR",
    code: codeOf(failure),
    message: `the API server does not answer as expected: ${outcomeOf(failure)}`,
  };
}

function codeOf(failure: KubeFailure): string {
  return failure.status === 0 ? UNREACHABLE : knownReason(failure);
}

/**
 * Says what a call came to, by its status and a reason of Kubernetes alone. The server may be any that a caller names,
 * so none of its own words are passed on.
 */
function outcomeOf(failure: KubeFailure): string {
  const { status, message, code = "" } = failure;
  const meaning = meaningOf(failure);
  const meant = meaning === undefined ? "" : `: ${meaning}`;
  if (status > 0) return `status ${status}, ${knownReason(failure)}${meant}`;
  if (code === HOST_REFUSED) return message;
  return `no answer${code === "" ? "" : ` (${code})`}${meant}`;
}

function knownReason({ status, reason }: KubeFailure): string {
  return isKnownReason(reason) ? reason : reasonOf(status);
}

async function missingPermissions(
  client: Asked,
  { gangScheduler: gang = null, secrets = [] }: Parameters<typeof checkCluster>[1],
): Promise<readonly ClusterFinding[]> {
  const everywhere = PERMISSIONS.filter(({ scheduler }) => scheduler === undefined || scheduler === gang);
  const wanted = [...everywhere, ...secrets.slice(0, FINDINGS_MAX).map(secretPermission)];
  const answers = await Promise.all(wanted.map((permission) => reviewAccess(client, permission)));
  const findings = answers.flat();
  const unanswered = findings.find(({ code }) => code === UNREACHABLE);
  // The others would say the same.
  return unanswered === undefined ? findings : [unanswered];
}

const UNREACHABLE = "Unreachable";

async function missingScheduler(client: Asked, gang: GangScheduler | null): Promise<readonly ClusterFinding[]> {
  if (gang === null) return [];
  const listed = await client.request({ method: "GET", path: groupsPath(gang), query: { limit: "1" } });
  if (listed.kind === "ok" || listed.status !== 404) return [];
  const { apiVersion } = GANG_SCHEDULERS[gang];
  const message =
    `the cluster does not serve PodGroups of ${apiVersion}: ` + `no gang starts there until ${gang} is installed`;
  return [{ severity: "ERROR", code: "MissingGangScheduler", message }];
}

async function reviewAccess(client: Asked, permission: Permission): Promise<readonly ClusterFinding[]> {
  const { group, resource, subresource, verb, need, without } = permission;
  const reviewed = await client.request({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: reviewedAccess(permission),
    },
  });
  const path = subresource === "" ? resource : `${resource}/${subresource}`;
  const what = `${verb} ${path}${group === "" ? "" : `.${group}`}`;
  if (reviewed.kind === "failed") {
    return [
      {
        severity: "ERROR",
        code: codeOf(reviewed),
        message: `cannot check whether Gangway may ${what}: ${outcomeOf(reviewed)}`,
      },
    ];
  }
  if (objectAt(reviewed.object, "status")["allowed"] === true) return [];
  const severity = group === "" && subresource === "" && ESSENTIAL.includes(resource) ? "ERROR" : "WARNING";
  const message = `Gangway may not ${what}${whichOf(permission)}: needed ${need}. Without it, ${without}`;
  return [{ severity, code: "MissingPermission", message }];
}

/** What a SelfSubjectAccessReview asks about. */
function reviewedAccess({ group, resource, subresource, verb, name, namespace }: Permission): JsonObject {
  if (resource.startsWith("/")) return { nonResourceAttributes: { path: resource, verb } };
  const one = {
    ...(subresource === "" ? {} : { subresource }),
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
  };
  return { resourceAttributes: { group, resource, verb, ...one } };
}

function whichOf({ resource, name, namespace }: Permission): string {
  if (resource.startsWith("/")) return "";
  if (name === undefined) return " in all namespaces";
  return namespace === undefined ? ` named ${name}` : ` named ${name} in namespace ${namespace}`;
}

function skewFindings(skewMs: number | null): readonly ClusterFinding[] {
  if (skewMs === null || Math.abs(skewMs) <= SKEW_MS_MAX) return [];
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  const message = `the cluster's clock is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} ours`;
  return [{ severity: "WARNING", code: "ClockSkew", message }];
}

async function foreignWebhooks(client: Asked, namespaces: readonly string[]): Promise<readonly ClusterFinding[]> {
  const findings: ClusterFinding[] = [];
  for (const resource of WEBHOOKS) {
    const listed = await client.request({ method: "GET", path: `/apis/admissionregistration.k8s.io/v1/${resource}` });
    // Not allowed to list them: the permissions' findings say so already.
    if (listed.kind === "failed") continue;
    for (const configuration of arrayAt(listed.object, "items").slice(0, WEBHOOKS_MAX)) {
      append(findings, configurationFindings(configuration, namespaces));
    }
  }
  return findings;
}

function configurationFindings(configuration: Json, namespaces: readonly string[]): readonly ClusterFinding[] {
  const name = nameOf(objectAt(configuration, "metadata"));
  return arrayAt(configuration, "webhooks")
    .slice(0, WEBHOOKS_MAX)
    .flatMap((webhook): readonly ClusterFinding[] => {
      const own = `${name} ${nameOf(webhook)}`;
      const system = QUEUEING_SYSTEMS.find((word) => own.includes(word));
      const over = namespaces.filter((namespace) => mayCover(objectAt(webhook, "namespaceSelector"), namespace));
      if (system === undefined || over.length === 0 || !seesNewPods(webhook)) return [];
      const message =
        `the webhook ${nameOf(webhook) || name} of ${system} sees new pods of ${over.join(", ")}: ` +
        "exclude Gangway's namespaces there, or it may hold them back";
      return [{ severity: "WARNING", code: "OtherQueueingSystem", message }];
    });
}

/** The name of an object, as long as Kubernetes allows. */
function nameOf(object: Json): string {
  return (stringAt(object, "name") ?? "").slice(0, 253);
}

function seesNewPods(webhook: Json): boolean {
  return arrayAt(webhook, "rules").some((rule) => {
    const has = (list: string, ...values: readonly string[]) =>
      arrayAt(rule, list).some((one) => typeof one === "string" && values.includes(one));
    return has("operations", "CREATE", "*") && has("apiGroups", "", "*") && has("resources", "pods", "*", "*/*");
  });
}

/**
 * Whether a namespace selector may match a namespace of which only the name is known. Other labels count as matching.
 */
function mayCover(selector: JsonObject, namespace: string): boolean {
  const NAME = "kubernetes.io/metadata.name";
  const label = objectAt(selector, "matchLabels")[NAME];
  if (label !== undefined && label !== namespace) return false;
  return arrayAt(selector, "matchExpressions").every((expression) => {
    if (!isJsonObject(expression) || expression["key"] !== NAME) return true;
    const listed = arrayAt(expression, "values").includes(namespace);
    if (expression["operator"] === "In") return listed;
    return expression["operator"] === "NotIn" ? !listed : expression["operator"] === "Exists";
  });
}

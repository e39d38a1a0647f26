import { GANG_SCHEDULERS, type GangScheduler } from "../../core/pods/pod-group.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { createKubeClient, type KubeClient } from "./client.ts";
import type { ApiFailure } from "./failure.ts";
import { groupsPath } from "./look-at-job.ts";
import { PERMISSIONS, type Permission } from "./permissions.ts";

export type Finding = {
  readonly severity: "ERROR" | "WARNING";
  /** CamelCase: `Unreachable`, `MissingPermission`, `OtherQueueingSystem`, `ClockSkew`, … */
  readonly code: string;
  readonly message: string;
};

export type ClusterCheck = {
  /** Empty where the server did not answer. */
  readonly kubernetesVersion: string;
  /** How far the cluster's clock is ahead of ours, to about a second; null where it did not say. */
  readonly clockSkewMs: number | null;
  /** Errors first. */
  readonly findings: readonly Finding[];
};

/** Times in HTTP are whole seconds, and a call takes its time: less than this means nothing. */
const SKEW_MS_MAX = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
/** Of the core group: what no gang runs without. */
const ESSENTIAL = ["nodes", "pods", "services", "configmaps"];
const WEBHOOKS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
/** Systems that hold back, change or schedule pods of their own accord, by a word in the names of their webhooks. */
const QUEUEING_SYSTEMS = ["kueue", "volcano", "yunikorn", "koordinator", "kai-scheduler", "runai", "armada"];

/** Asks a cluster whether it would serve us, without changing anything there. Never throws for what a cluster answers. */
export async function checkCluster(
  kubeconfig: string,
  of: {
    readonly clock: Clock;
    readonly namespaces: readonly string[];
    /** What the cluster is registered with; absent or null: none. */
    readonly gangScheduler?: GangScheduler | null;
  },
): Promise<ClusterCheck> {
  const client = createKubeClient({ kubeconfig, connectionsMax: 8, requestTimeoutMs: REQUEST_TIMEOUT_MS });
  try {
    const version = await client.request({ method: "GET", path: "/version" });
    if (version.kind === "failed") return { kubernetesVersion: "", clockSkewMs: null, findings: [unanswered(version)] };
    const clockSkewMs = version.dateMs === undefined ? null : version.dateMs - of.clock.nowMs();
    const findings = [
      ...(await missingPermissions(client, of.gangScheduler ?? null)),
      ...(await missingScheduler(client, of.gangScheduler ?? null)),
      ...skewFindings(clockSkewMs),
      ...(await foreignWebhooks(client, of.namespaces)),
    ];
    const order = { ERROR: 0, WARNING: 1 };
    const worstFirst = findings.toSorted((a, b) => order[a.severity] - order[b.severity]);
    return { kubernetesVersion: stringAt(version.object, "gitVersion") ?? "", clockSkewMs, findings: worstFirst };
  } finally {
    await client.close();
  }
}

function unanswered({ status, reason, message }: ApiFailure): Finding {
  const code = status === 0 ? "Unreachable" : reason;
  return { severity: "ERROR", code, message: `the API server does not answer as asked: ${message}` };
}

async function missingPermissions(client: KubeClient, gang: GangScheduler | null): Promise<readonly Finding[]> {
  const wanted = PERMISSIONS.filter(({ scheduler }) => scheduler === undefined || scheduler === gang);
  const answers = await Promise.all(wanted.map((permission) => reviewAccess(client, permission)));
  return answers.flat();
}

async function missingScheduler(client: KubeClient, gang: GangScheduler | null): Promise<readonly Finding[]> {
  if (gang === null) return [];
  const listed = await client.request({ method: "GET", path: groupsPath(gang), query: { limit: "1" } });
  if (listed.kind === "ok" || listed.status !== 404) return [];
  const { apiVersion } = GANG_SCHEDULERS[gang];
  const message = `it does not serve PodGroups of ${apiVersion}: no gang starts there until ${gang} is installed`;
  return [{ severity: "ERROR", code: "MissingGangScheduler", message }];
}

async function reviewAccess(client: KubeClient, permission: Permission): Promise<readonly Finding[]> {
  const { group, resource, subresource, verb, need } = permission;
  const resourceAttributes = { group, resource, verb, ...(subresource === "" ? {} : { subresource }) };
  const reviewed = await client.request({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes },
    },
  });
  const what = `${verb} ${subresource === "" ? resource : `${resource}/${subresource}`}${group === "" ? "" : `.${group}`}`;
  if (reviewed.kind === "failed") {
    return [
      { severity: "ERROR", code: reviewed.reason, message: `cannot ask whether we may ${what}: ${reviewed.message}` },
    ];
  }
  if (objectAt(reviewed.object, "status")["allowed"] === true) return [];
  const severity = group === "" && subresource === "" && ESSENTIAL.includes(resource) ? "ERROR" : "WARNING";
  return [{ severity, code: "MissingPermission", message: `may not ${what} in all namespaces: needed ${need}` }];
}

function skewFindings(skewMs: number | null): readonly Finding[] {
  if (skewMs === null || Math.abs(skewMs) <= SKEW_MS_MAX) return [];
  const message = `its clock is ${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? "ahead of" : "behind"} ours`;
  return [{ severity: "WARNING", code: "ClockSkew", message }];
}

async function foreignWebhooks(client: KubeClient, namespaces: readonly string[]): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const resource of WEBHOOKS) {
    const listed = await client.request({ method: "GET", path: `/apis/admissionregistration.k8s.io/v1/${resource}` });
    // Not allowed to look: said by the permissions already.
    if (listed.kind === "failed") continue;
    for (const configuration of arrayAt(listed.object, "items")) {
      findings.push(...configurationFindings(configuration, namespaces));
    }
  }
  return findings;
}

function configurationFindings(configuration: Json, namespaces: readonly string[]): readonly Finding[] {
  const name = stringAt(objectAt(configuration, "metadata"), "name") ?? "";
  return arrayAt(configuration, "webhooks").flatMap((webhook): readonly Finding[] => {
    const own = `${name} ${stringAt(webhook, "name") ?? ""}`;
    const system = QUEUEING_SYSTEMS.find((word) => own.includes(word));
    const over = namespaces.filter((namespace) => mayCover(objectAt(webhook, "namespaceSelector"), namespace));
    if (system === undefined || over.length === 0 || !seesNewPods(webhook)) return [];
    const message = `the webhook ${stringAt(webhook, "name") ?? name} of ${system} sees new pods of ${over.join(", ")}: exclude our namespaces there, or it may hold them back`;
    return [{ severity: "WARNING", code: "OtherQueueingSystem", message }];
  });
}

function seesNewPods(webhook: Json): boolean {
  return arrayAt(webhook, "rules").some((rule) => {
    const has = (list: string, ...values: readonly string[]) =>
      arrayAt(rule, list).some((one) => typeof one === "string" && values.includes(one));
    return has("operations", "CREATE", "*") && has("apiGroups", "", "*") && has("resources", "pods", "*", "*/*");
  });
}

/** Whether a namespace selector may take a namespace of which only the name is known: other labels count as fitting. */
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

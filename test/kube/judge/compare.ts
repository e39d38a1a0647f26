/** Asks the API server of the tests about pods, and compares its answer with how Gangway judges them. */

import type { SentJob } from "../../../src/core/job/request/sent.ts";
import type { Kind } from "../../../src/core/kinds/kind.ts";
import { podName } from "../../../src/core/kinds/pod-name.ts";
import { shapeReplica } from "../../../src/core/kinds/shape-replica.ts";
import { FindingList } from "../../../src/core/pods/judge/finding.ts";
import { walkObject } from "../../../src/core/pods/judge/judge-value.ts";
import { TEMPLATE_TYPE } from "../../../src/core/pods/judge/pod-types.ts";
import { findingErrors } from "../../../src/core/pods/judge/words.ts";
import { PLAIN_POD_CONFIG } from "../../../src/core/pods/pod-config.ts";
import { judgedManifest } from "../../../src/core/reconcile/objects/build-objects.ts";
import { podErrors } from "../../../src/core/reconcile/objects/pod-errors.ts";
import { draftJob } from "../../../src/intake/new-job.ts";
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";
import type { ControlPlane } from "../control-plane.ts";
import { type LeftOver, leftOverOf } from "./left-over.ts";

export const NAMESPACE = "judge";

/** A pod, and what Gangway says about it. Empty: it accepts it. */
type Judged = { readonly pod: JsonObject; readonly errors: readonly string[] };

/** How the two judges differ. */
export type Difference = {
  readonly side: "only Gangway refuses" | "only Kubernetes refuses";
  readonly what: string;
  readonly said: string;
  /** Null: nothing excuses it. */
  readonly leftOver: LeftOver | null;
};

/** Judges the pod of a template, as intake does, for one role of a kind. */
export function judgedPod(template: JsonObject, kind: Kind): Judged {
  const role = kind.roles?.at(-1)?.name ?? "Worker";
  const types = new FindingList();
  walkObject({ findings: types }, template, TEMPLATE_TYPE, null);
  const sent = sentJob(template, kind, role);
  // A template with wrong types is not shaped.
  const shaping = { kind, namespace: NAMESPACE, interruptible: false, config: PLAIN_POD_CONFIG };
  const outcome = types.kept.length > 0 ? null : shapeReplica(template, shaping);
  const shaped = outcome?.kind === "shaped" ? outcome.template : template;
  const job = draftJob(sent, kind, { [role]: { template: shaped } });
  const found =
    types.kept.length > 0 ? findingErrors(types) : podErrors(job, kind, [{ role, sent: template }])[0]?.errors;
  const refusals = outcome?.kind === "refused" ? outcome.errors : [];
  return {
    // No pod is built from wrong types. Building would hide some.
    pod: types.kept.length > 0 ? plainPod(template) : builtPod(job, kind, role),
    errors: [...(found ?? []), ...refusals].map(({ path, message }) => `${path} ${message}`),
  };
}

function plainPod(template: JsonObject): JsonObject {
  const { metadata } = template;
  const named = isJsonObject(metadata) ? { ...metadata, name: "pod" } : (metadata ?? { name: "pod" });
  return { apiVersion: "v1", kind: "Pod", ...template, metadata: named };
}

function sentJob(template: JsonObject, kind: Kind, role: string): SentJob {
  const roles = (kind.roles ?? []).filter(({ min }) => min > 0).map(({ name }) => [name, { template, replicas: 1 }]);
  const replicaSpecs = { ...Object.fromEntries(roles), [role]: { template, replicas: 2 } };
  const spec = { kind: kind.name, replicaSpecs };
  return { namespace: NAMESPACE, name: "job", generateName: "", labels: {}, annotations: {}, spec };
}

function builtPod(job: ReturnType<typeof draftJob>, kind: Kind, role: string): JsonObject {
  const build = { installation: "i", clusterDomain: "", initImage: "busybox", kubectlImage: "kubectl" };
  const members = Object.fromEntries(
    Object.entries(job.spec.replicaSpecs).map(([name, { replicas }]) => [name, replicas]),
  );
  const admission = { number: 1, cluster: "c", members, flavorLabels: {} };
  const name = podName({ job, kind, role, index: 0 });
  return judgedManifest({ job, kind, admission, build, scheduler: null }, { role, index: 0, name, attempt: 1 });
}

/** Makes the namespace of all comparisons, if it is not there. */
export async function makeNamespace({ client }: ControlPlane): Promise<void> {
  await client.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: NAMESPACE } } });
}

/** Null: both accept the pod, or both refuse it. */
export async function compare(plane: ControlPlane, judged: Judged, what: string): Promise<Difference | null> {
  const refusal = await refusalOf(plane, "pods", judged.pod);
  const isRefused = judged.errors.length > 0;
  if (isRefused === (refusal !== null)) return null;
  const said = refusal ?? judged.errors.join("; ");
  const side = isRefused ? "only Gangway refuses" : "only Kubernetes refuses";
  return { side, what, said, leftOver: leftOverOf(side, said, judged.pod) };
}

/** What the API server says about an object. Makes the objects that a pod refers to. Null: it accepts the object. */
export async function refusalOf(
  { client }: ControlPlane,
  resource: "pods" | "services" | "configmaps",
  body: JsonObject,
): Promise<string | null> {
  const path = `/api/v1/namespaces/${NAMESPACE}/${resource}`;
  for (let tries = 0; ; tries++) {
    const answer = await client.request({ method: "POST", path, query: { dryRun: "All" }, body });
    if (answer.kind === "ok") return null;
    if (answer.status === 0) throw new Error(`no answer about an object: ${answer.message}`);
    const missing = missingOf(answer.message);
    if (missing === null || tries > 3) return answer.message;
    await client.request({ method: "POST", path: missing.path, body: missing.body });
  }
}

/** The object that a pod refers to and that is not there. */
function missingOf(message: string): { readonly path: string; readonly body: JsonObject } | null {
  const [, account] = /serviceaccount "([^"]+)" not found/.exec(message) ?? [];
  if (account !== undefined) return { path: `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, body: named(account) };
  const [, priority] = /no PriorityClass with name (\S+) was found/.exec(message) ?? [];
  if (priority !== undefined) {
    return { path: "/apis/scheduling.k8s.io/v1/priorityclasses", body: { ...named(priority), value: 7 } };
  }
  const [, runtime] = /RuntimeClass "([^"]+)" not found/.exec(message) ?? [];
  if (runtime === undefined) return null;
  return { path: "/apis/node.k8s.io/v1/runtimeclasses", body: { ...named(runtime), handler: "runc" } };
}

function named(name: string): JsonObject {
  return { metadata: { name } };
}

/** The templates of a Kubeflow manifest, or of one of ours. */
export function templatesOf(manifest: JsonObject): readonly JsonObject[] {
  const spec = objectAt(manifest, "spec");
  const lists = Object.keys(spec).filter((name) => name.endsWith("eplicaSpecs"));
  const roles = lists.flatMap((name) => Object.values(objectAt(spec, name)));
  const templates = roles.map((role) => objectAt(role, "template"));
  return templates.filter(
    (template) => arrayAt(objectAt(template, "spec"), "containers").length > 0 && hasImages(template),
  );
}

function hasImages(template: JsonObject): boolean {
  return arrayAt(objectAt(template, "spec"), "containers").every((one) => (stringAt(one, "image") ?? "") !== "");
}

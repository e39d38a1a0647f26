/** Serves tests that compare with a real API server: fills in the defaults that it gives to new objects. */
import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { definitionStatus } from "../objects/custom-kinds.ts";
import { kubeTime } from "../objects/kube-object.ts";
import { CRD_RESOURCE } from "../objects/resource-kinds.ts";

type ObjectBody = { readonly [member: string]: Json | undefined };

type ObjectToFill = { readonly resource: string; readonly name: string; readonly nowMs: number };

/**
 * Fills in the fields that kube-apiserver would, because Gangway's code reads them and tests compare them. Objects of
 * other resources than these are stored as they were sent.
 */
export function withDefaults({ resource, name, nowMs }: ObjectToFill, body: ObjectBody): ObjectBody {
  switch (resource) {
    case CRD_RESOURCE:
      return { ...body, status: definitionStatus(body, kubeTime(nowMs)) };
    case "pods":
      return podDefaults(body, kubeTime(nowMs));
    case "services":
      return serviceDefaults(body);
    case "namespaces":
      return namespaceDefaults(body, name);
    case "nodes":
      return nodeDefaults(body);
    case "resourcequotas":
      return { ...body, status: {} };
    default:
      return body;
  }
}

const NODE_TOLERATIONS = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

function podDefaults(body: ObjectBody, at: string): ObjectBody {
  const spec = objectAt(body, "spec");
  const account = stringAt(spec, "serviceAccountName") ?? stringAt(spec, "serviceAccount") ?? "default";
  const initContainers = arrayAt(spec, "initContainers").map(containerDefaults);
  const gated = arrayAt(spec, "schedulingGates").length > 0;
  const gate = {
    type: "PodScheduled",
    status: "False",
    reason: "SchedulingGated",
    message: "Scheduling is blocked due to non-empty scheduling gates",
    lastProbeTime: null,
    lastTransitionTime: at,
  };
  return {
    ...body,
    spec: {
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      dnsPolicy: "ClusterFirst",
      securityContext: {},
      schedulerName: "default-scheduler",
      enableServiceLinks: true,
      preemptionPolicy: "PreemptLowerPriority",
      priority: 0,
      ...spec,
      serviceAccountName: account,
      serviceAccount: account,
      tolerations: podTolerations(arrayAt(spec, "tolerations")),
      containers: arrayAt(spec, "containers").map(containerDefaults),
      ...(initContainers.length > 0 ? { initContainers } : {}),
    },
    status: { phase: "Pending", ...(gated ? { conditions: [gate] } : {}), qosClass: qosClass(spec) },
  };
}

/** Lets pods tolerate a short silence of their node. Source: the admission plugin DefaultTolerationSeconds. */
function podTolerations(tolerations: readonly Json[]): readonly Json[] {
  const missing = NODE_TOLERATIONS.filter((key) =>
    tolerations.every((one) => {
      const of = stringAt(one, "key") ?? "";
      return of !== key && of !== "";
    }),
  );
  const added = missing.map((key) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }));
  return [...tolerations, ...added];
}

function containerDefaults(container: Json): Json {
  if (!isJsonObject(container)) return container;
  const resources = objectAt(container, "resources");
  const limits = objectAt(resources, "limits");
  const requests = { ...limits, ...objectAt(resources, "requests") };
  const image = stringAt(container, "image") ?? "";
  const latest = image.lastIndexOf(":") <= image.lastIndexOf("/") || image.endsWith(":latest");
  return {
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: latest ? "Always" : "IfNotPresent",
    ...container,
    ...(container["ports"] === undefined ? {} : { ports: arrayAt(container, "ports").map(portDefaults) }),
    resources: Object.keys(requests).length > 0 ? { ...resources, requests } : resources,
  };
}

function portDefaults(port: Json): Json {
  return isJsonObject(port) ? { protocol: "TCP", ...port } : port;
}

function qosClass(spec: JsonObject): string {
  const resources = arrayAt(spec, "containers").map((container) => objectAt(container, "resources"));
  const amount = (of: JsonObject, list: string, name: string) => objectAt(of, list)[name];
  const names = ["cpu", "memory"];
  const guaranteed = resources.every((of) =>
    names.every((name) => {
      const limit = amount(of, "limits", name);
      return limit !== undefined && (amount(of, "requests", name) ?? limit) === limit;
    }),
  );
  if (guaranteed) return "Guaranteed";
  const any = resources.some((of) =>
    names.some((name) => (amount(of, "limits", name) ?? amount(of, "requests", name)) !== undefined),
  );
  return any ? "Burstable" : "BestEffort";
}

const ONE_FAMILY = { ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" };
/** For a headless service without a selector. Source: `defaultOnRead` of Kubernetes' service storage. */
const ANY_FAMILY = { ipFamilies: ["IPv4", "IPv6"], ipFamilyPolicy: "RequireDualStack" };

function serviceDefaults(body: ObjectBody): ObjectBody {
  const spec = objectAt(body, "spec");
  const headless = stringAt(spec, "clusterIP") === "None";
  const ports = arrayAt(spec, "ports").map((port) =>
    isJsonObject(port) ? { protocol: "TCP", targetPort: port["port"], ...port } : port,
  );
  return {
    ...body,
    spec: {
      type: "ClusterIP",
      sessionAffinity: "None",
      internalTrafficPolicy: "Cluster",
      ...(headless && spec["selector"] === undefined ? ANY_FAMILY : ONE_FAMILY),
      ...(headless ? { clusterIPs: ["None"] } : {}),
      ...spec,
      ...(ports.length > 0 ? { ports } : {}),
    },
    status: { loadBalancer: {} },
  };
}

function namespaceDefaults(body: ObjectBody, name: string): ObjectBody {
  const metadata = objectAt(body, "metadata");
  const labels = { ...objectAt(metadata, "labels"), "kubernetes.io/metadata.name": name };
  return {
    ...body,
    metadata: { ...metadata, labels },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  };
}

function nodeDefaults(body: ObjectBody): ObjectBody {
  const status = objectAt(body, "status");
  const allocatable = objectAt(status, "allocatable");
  const capacity = objectAt(status, "capacity");
  const some = Object.keys(allocatable).length > 0 ? allocatable : capacity;
  const all = { pods: "110", ...some };
  return {
    ...body,
    spec: objectAt(body, "spec"),
    status: { ...status, capacity: { ...all, ...capacity }, allocatable: all },
  };
}

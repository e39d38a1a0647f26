import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { definitionStatus } from "./custom-kinds.ts";
import { kubeTime } from "./kube-object.ts";
import { CRD_RESOURCE } from "./resource-kinds.ts";

type Body = { readonly [member: string]: Json | undefined };

type NewObject = { readonly resource: string; readonly name: string; readonly nowMs: number };

/** What the API server fills in for a new object, by resource; objects of other resources stay as they are sent. */
export function withDefaults({ resource, name, nowMs }: NewObject, body: Body): Body {
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

function podDefaults(body: Body, at: string): Body {
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

/** Pods outlive a node's short silence. Source: the admission plugin DefaultTolerationSeconds. */
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
  const latest = !/:[^/]*$/.test(image) || image.endsWith(":latest");
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
/** Without cluster address and selector a service may name anything. Source: `defaultOnRead` of Kubernetes' service storage. */
const ANY_FAMILY = { ipFamilies: ["IPv4", "IPv6"], ipFamilyPolicy: "RequireDualStack" };

function serviceDefaults(body: Body): Body {
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

function namespaceDefaults(body: Body, name: string): Body {
  const metadata = objectAt(body, "metadata");
  const labels = { ...objectAt(metadata, "labels"), "kubernetes.io/metadata.name": name };
  return {
    ...body,
    metadata: { ...metadata, labels },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  };
}

function nodeDefaults(body: Body): Body {
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

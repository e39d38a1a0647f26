/** Requests whose answers must be the same on every API server, and the parts of an answer that may differ. */
import type { JsonObject } from "../../src/runtime/json.ts";
import { isJsonObject } from "../../src/runtime/json.ts";

export type Question = {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: JsonObject;
  /** Omitted: `application/json`, and a merge patch for PATCH. */
  readonly contentType?: string;
};

const core = "/api/v1/namespaces/answers";
const pods = `${core}/pods`;
const maps = `${core}/configmaps`;
const container = { name: "main", image: "busybox:1.36" };

function pod(name: string, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  return {
    metadata: { name, ...metadata },
    spec: { containers: [container], schedulingGates: [{ name: "x/hold" }], ...spec },
  };
}

const post = (path: string, body: JsonObject): Question => ({ method: "POST", path, body });
const map = (metadata: JsonObject, more: JsonObject = {}): JsonObject => ({ metadata, ...more });

/** The requests, in this order, in their own namespace. Pods have a gate, so that no scheduler interferes. */
export const QUESTIONS: Readonly<Record<string, Question>> = {
  "a namespace is made": post("/api/v1/namespaces", { metadata: { name: "answers" } }),
  "a namespace is made twice": post("/api/v1/namespaces", { metadata: { name: "answers" } }),
  "a config map is made": post(maps, map({ name: "one", labels: { a: "b" } }, { data: { key: "value" } })),
  "a config map is made twice": post(maps, map({ name: "one" })),
  "a config map is read": { method: "GET", path: `${maps}/one` },
  "a config map that is absent is read": { method: "GET", path: `${maps}/none` },
  "a config map is patched": { method: "PATCH", path: `${maps}/one`, body: { data: { key: null, other: "1" } } },
  "a patch names another version": {
    method: "PATCH",
    path: `${maps}/one`,
    body: { metadata: { resourceVersion: "1" }, data: { other: "2" } },
  },
  "a patch names another uid": {
    method: "PATCH",
    path: `${maps}/one`,
    body: { metadata: { uid: "00000000-0000-0000-0000-000000000000" } },
  },
  "an object of another name is put": { method: "PUT", path: `${maps}/one`, body: map({ name: "two" }) },
  "an object of another kind is made": post(maps, { apiVersion: "v1", kind: "Secret", metadata: { name: "one" } }),
  "an object of another namespace is made": post(maps, map({ name: "three", namespace: "default" })),
  "an object without a name is made": post(maps, map({})),
  "an object with a bad name is made": post(maps, map({ name: "Not_a_name" })),
  // One fault for each request: an API server lists several in the order of a map, which changes each time.
  "an object with a bad label is made": post(maps, map({ name: "labelled", labels: { "a/b/c": "x" } })),
  "an object with a bad label's value is made": post(maps, map({ name: "labelled", labels: { ok: "not ok!" } })),
  "an object with a version is made": post(maps, map({ name: "versioned", resourceVersion: "1" })),
  "an object with broken owners is made": post(
    maps,
    map({ name: "owned", ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "", uid: "u" }] }),
  ),
  "an object in a namespace that is absent is made": post("/api/v1/namespaces/none/configmaps", map({ name: "x" })),
  "a pod is made": post(pods, pod("gated")),
  "a pod with GPUs is made": post(
    pods,
    pod("gpus", { containers: [{ ...container, resources: { limits: { "nvidia.com/gpu": "2", cpu: "1500m" } } }] }),
  ),
  "a pod with init containers, ports and mounts is made": post(
    pods,
    pod("full", {
      restartPolicy: "Never",
      volumes: [{ name: "data", emptyDir: {} }],
      initContainers: [{ name: "wait", image: "busybox" }],
      containers: [
        {
          ...container,
          ports: [{ name: "p", containerPort: 23456 }],
          volumeMounts: [{ name: "data", mountPath: "/d" }],
        },
      ],
    }),
  ),
  "a pod without containers is made": post(pods, pod("empty", { containers: [] })),
  "a pod with everything wrong is made": post(
    pods,
    pod("wrong", {
      restartPolicy: "Perhaps",
      containers: [
        { name: "Main", image: "busybox" },
        { name: "main", image: "" },
        { name: "main", image: "x", volumeMounts: [{ name: "none", mountPath: "/d" }] },
      ],
    }),
  ),
  "a pod that requests more than its limit is made": post(
    pods,
    pod("more", { containers: [{ ...container, resources: { requests: { cpu: "2" }, limits: { cpu: "1" } } }] }),
  ),
  "a pod that requests half a GPU is made": post(
    pods,
    pod("half", {
      containers: [
        { ...container, resources: { requests: { "nvidia.com/gpu": "500m" }, limits: { "nvidia.com/gpu": "1" } } },
      ],
    }),
  ),
  "a pod that requests GPUs without a limit is made": post(
    pods,
    pod("nolimit", { containers: [{ ...container, resources: { requests: { "nvidia.com/gpu": "1" } } }] }),
  ),
  "a pod with no quantity is made": post(
    pods,
    pod("quantity", { containers: [{ ...container, resources: { limits: { cpu: "lots" } } }] }),
  ),
  "a pod with containers of another shape is made": post(pods, {
    metadata: { name: "shape" },
    spec: { containers: {} },
  }),
  "a pod of an unknown account is made": post(pods, pod("account", { serviceAccountName: "nobody" })),
  "a pod's restart policy is changed": {
    method: "PATCH",
    path: `${pods}/gated`,
    body: { spec: { restartPolicy: "Never" } },
  },
  "a pod is deleted under another uid": {
    method: "DELETE",
    path: `${pods}/gated`,
    body: { preconditions: { uid: "00000000-0000-0000-0000-000000000000" } },
  },
  "a pod that is not bound is deleted": { method: "DELETE", path: `${pods}/gated` },
  "a pod that is absent is deleted": { method: "DELETE", path: `${pods}/gated` },
  "a headless service is made": post(`${core}/services`, {
    metadata: { name: "headless" },
    spec: { clusterIP: "None", selector: { a: "b" }, ports: [{ name: "p", port: 23456 }] },
  }),
  "a service with a bad port is made": post(`${core}/services`, {
    metadata: { name: "port" },
    spec: { clusterIP: "None", ports: [{ port: 70000 }] },
  }),
  "a service with a bad name is made": post(`${core}/services`, {
    metadata: { name: "9lives" },
    spec: { clusterIP: "None", ports: [{ port: 1 }] },
  }),
  "a service is deleted": { method: "DELETE", path: `${core}/services/headless` },
  "a config map is deleted": { method: "DELETE", path: `${maps}/one` },
  "the default namespace is deleted": { method: "DELETE", path: "/api/v1/namespaces/default" },
  "a resource of an unknown group is listed": { method: "GET", path: "/apis/nobody.example.com/v1/things" },
  "a resource that the core does not know is listed": { method: "GET", path: "/api/v1/things" },
  "a resource that a known group does not know is listed": {
    method: "GET",
    path: "/apis/apiextensions.k8s.io/v1/things",
  },
  "an unknown path is requested": { method: "GET", path: "/nowhere" },
  "a patch of an unknown type is sent": {
    method: "PATCH",
    path: `${maps}/one`,
    contentType: "text/plain",
    body: {},
  },
  "a method that is not served is used": { method: "PUT", path: maps, body: {} },
};

const MASKED: Readonly<Record<string, string>> = {
  uid: "UID",
  resourceVersion: "VERSION",
  creationTimestamp: "TIME",
  deletionTimestamp: "TIME",
  lastTransitionTime: "TIME",
};
/**
 * The managers of fields and the generation of a specification. Gangway does not read them, and only real API servers
 * maintain them.
 */
const DROPPED = ["managedFields", "observedGeneration", "generation"];

/** An answer without the parts that differ between servers or runs. */
export function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => !isAccountToken(item)).map(comparable);
  if (typeof value === "string") return masked(value);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([member]) => !DROPPED.includes(member))
      .map(
        ([member, inner]) =>
          [member, typeof inner === "string" && MASKED[member] ? MASKED[member] : comparable(inner)] as const,
      )
      .filter(([, inner]) => !(Array.isArray(inner) && inner.length === 0)),
  );
}

/** Removes the end of a refused change's message, which shows the change in Go's format. */
function masked(text: string): string {
  return text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "UID").replace(/\n@@.*$/s, "");
}

/**
 * The volume and mount by which a real API server gives pods their account's token. A simulated pod does not read
 * them.
 */
function isAccountToken(item: unknown): boolean {
  return isJsonObject(item) && typeof item["name"] === "string" && item["name"].startsWith("kube-api-access-");
}

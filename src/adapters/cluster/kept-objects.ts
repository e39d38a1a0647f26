import { LABEL } from "../../core/job/labels.ts";
import { REQUESTED_SPEC_ANNOTATION } from "../../core/pods/build/pod-group.ts";
import { controllerUid, type PodView, podView } from "../../core/pods/read/pod-view.ts";
import type { ConfigMapView, ObjectView, PodGroupView } from "../../core/reconcile/observed.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, canonicalJson, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";

/** The data that is kept of a pod. */
export type KeptPod = {
  /**
   * The pod's view, read once for each version. Null unless this installation made the pod for a job, or a config map
   * controls it.
   */
  readonly view: PodView | null;
  readonly jobUid: string | null;
  /** The uid of the config map that controls it, which may be one of our anchors. Null: none does. */
  readonly ownerUid: string | null;
  /** The node that it is bound to. Null: none. */
  readonly nodeName: string | null;
  /**
   * The fields that placement and capacity read. A foreign pod's environment and volumes are dropped to save memory.
   */
  readonly compact: JsonObject;
};

/** The data that is kept of a service of this installation. */
export type KeptObject = {
  readonly view: ObjectView;
  readonly jobUid: string | null;
  readonly ownerUid: string | null;
};

/** Reads one pod. Of a foreign pod only the fields that capacity needs are kept. */
export function keepPod(pod: JsonObject, installation: string): KeptPod {
  const jobUid = ownJobUid(pod, installation);
  const ownerUid = ownerOf(pod);
  const view = jobUid === null && ownerUid === null ? null : podView(pod);
  const nodeName = stringAt(objectAt(pod, "spec"), "nodeName") || null;
  return { view, jobUid, ownerUid, nodeName, compact: compactPod(pod) };
}

/** The view of a foreign pod that has the name of one of ours. */
export function strangerView({ compact }: KeptPod): PodView {
  return { ...podView(compact), jobUid: null };
}

export function keepObject(object: JsonObject, installation: string): KeptObject {
  return { view: objectView(object), jobUid: ownJobUid(object, installation), ownerUid: ownerOf(object) };
}

/** The data that is kept of a config map of this installation. */
export type KeptConfigMap = Omit<KeptObject, "view"> & { readonly view: ConfigMapView };

export function keepConfigMap(object: JsonObject, installation: string): KeptConfigMap {
  return { ...keepObject(object, installation), view: configMapView(object) };
}

/** Reads a config map. Never throws, whatever the JSON is. */
export function configMapView(object: JsonObject): ConfigMapView {
  return { ...objectView(object), data: canonicalJson(objectAt(object, "data")) };
}

/** The data that is kept of a PodGroup of this installation. */
export type KeptGroup = Omit<KeptObject, "view"> & { readonly view: PodGroupView };

export function keepGroup(object: JsonObject, installation: string): KeptGroup {
  return { ...keepObject(object, installation), view: podGroupView(object) };
}

/** Reads a PodGroup of either scheduler. Never throws, whatever the JSON is. */
export function podGroupView(object: JsonObject): PodGroupView {
  const requestedSpec = stringMapAt(objectAt(object, "metadata"), "annotations")[REQUESTED_SPEC_ANNOTATION] ?? "";
  return { ...objectView(object), phase: stringAt(objectAt(object, "status"), "phase") ?? "", requestedSpec };
}

function ownerOf(object: JsonObject): string | null {
  const metadata = objectAt(object, "metadata");
  const isAnchored = arrayAt(metadata, "ownerReferences").some((owner) => stringAt(owner, "kind") === "ConfigMap");
  return isAnchored ? controllerUid(metadata) : null;
}

/** Reads the fields that all objects have. Never throws, whatever the JSON is. */
export function objectView(object: JsonObject): ObjectView {
  const metadata = objectAt(object, "metadata");
  const labels = stringMapAt(metadata, "labels");
  return {
    name: stringAt(metadata, "name") ?? "",
    uid: stringAt(metadata, "uid") ?? "",
    labels,
    controllerUid: controllerUid(metadata),
    admission: Number.parseInt(labels[LABEL.admission] ?? "0", 10) || 0,
    deleting: stringAt(metadata, "deletionTimestamp") !== undefined,
  };
}

/** The uid of the job that an object belongs to. Null: this installation did not make it for a job. */
export function ownJobUid(object: JsonObject, installation: string): string | null {
  const labels = stringMapAt(objectAt(object, "metadata"), "labels");
  const uid = labels[LABEL.jobUid] ?? "";
  return labels[LABEL.installation] === installation && LABEL_VALUE.test(uid) ? uid : null;
}

/** As Kubernetes checks the value of a label. A broken server may send any text, which then reaches the database. */
const LABEL_VALUE = /^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/;

const SPEC_MEMBERS = [
  "nodeName",
  "nodeSelector",
  "affinity",
  "tolerations",
  "overhead",
  "schedulingGates",
  "resources",
];
const CONTAINER_MEMBERS = ["name", "resources", "restartPolicy"];

function compactPod(pod: JsonObject): JsonObject {
  const metadata = objectAt(pod, "metadata");
  const spec = objectAt(pod, "spec");
  return {
    metadata: pick(metadata, ["name", "namespace", "uid", "labels", "deletionTimestamp"]),
    spec: {
      ...pick(spec, SPEC_MEMBERS),
      containers: arrayAt(spec, "containers").map((container) => pick(container, CONTAINER_MEMBERS)),
      initContainers: arrayAt(spec, "initContainers").map((container) => pick(container, CONTAINER_MEMBERS)),
    },
    status: { phase: stringAt(objectAt(pod, "status"), "phase") ?? "Pending" },
  };
}

/** Drops the long lists of images that nodes have and that nothing here reads. */
export function compactNode(node: JsonObject): JsonObject {
  return {
    metadata: pick(objectAt(node, "metadata"), ["name", "uid", "labels", "deletionTimestamp"]),
    spec: objectAt(node, "spec"),
    status: pick(objectAt(node, "status"), ["allocatable", "capacity", "conditions"]),
  };
}

function pick(value: unknown, members: readonly string[]): JsonObject {
  const from = objectAt({ value: value as JsonObject }, "value");
  return Object.fromEntries(
    members.filter((member) => from[member] !== undefined).map((member) => [member, from[member]]),
  );
}

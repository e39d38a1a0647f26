import { defaultSpec } from "../core/job/request/defaults.ts";
import type { SentJob } from "../core/job/request/sent.ts";
import type { ClusterSpec, Gang, Kind } from "../core/kinds/kind.ts";
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../runtime/json.ts";

/** Stands for the images that an admin has set for Gangway's own init containers. No limit refuses it. */
export const OWN_IMAGE = "gangway.invalid/own";

/**
 * Kinds are asked about a gang of at most this many replicas of a type. Some kinds name all members in the environment
 * of each pod, so the answer for a huge gang, which may be refused anyway, could fill the memory.
 */
const REPLICAS_MAX = 64;

/**
 * The parts that a kind adds to the pods of a replica type: to the first two and the last one. A kind gives the others
 * the same parts with other numbers. Empty for a kind that fails: its jobs fail too, before they have pods.
 */
export function partsOfKind(sent: SentJob, kind: Kind, role: string): readonly ClusterSpec[] {
  const gang = gangOf(sent, kind);
  const name = kind.roleName(role);
  const last = (gang.members[name] ?? 0) - 1;
  const indexes = [...new Set([0, 1, last])].filter((index) => index >= 0 && index <= last);
  try {
    return indexes.map((index) => kind.clusterSpec({ ...gang, role: name, index }));
  } catch {
    return [];
  }
}

/** The service accounts that a kind makes for a job. Nobody else has rights under their names. */
export function accountsOfKind(sent: SentJob, kind: Kind): readonly string[] {
  try {
    const accounts = kind.objects(gangOf(sent, kind)).filter((object) => object["kind"] === "ServiceAccount");
    return accounts.flatMap((account) => stringAt(objectAt(account, "metadata"), "name") ?? []);
  } catch {
    return [];
  }
}

/** The gang of the first admission, before its job exists. */
function gangOf({ name, generateName, namespace, labels, spec: sent }: SentJob, kind: Kind): Gang {
  const replicaSpecs = Object.fromEntries(
    Object.entries(sent.replicaSpecs).map(([role, replica]) => [
      role,
      { ...replica, replicas: Math.min(replica.replicas ?? 1, REPLICAS_MAX) },
    ]),
  );
  const spec = defaultSpec({ ...sent, replicaSpecs }, { kind, labels, namespaceQueue: null, priorityClass: null });
  const sizes = Object.entries(spec.replicaSpecs).map(([role, { replicas }]) => [role, replicas] as const);
  return {
    jobName: name || generateName,
    jobUid: "00000000-0000-7000-8000-000000000000",
    namespace,
    admission: 1,
    spec,
    members: Object.fromEntries(sizes),
    clusterDomain: "",
    initImage: OWN_IMAGE,
    kubectlImage: OWN_IMAGE,
  };
}

/** A template with the parts that a kind adds. */
export function withParts(template: JsonObject, parts: ClusterSpec): JsonObject {
  const spec = objectAt(template, "spec");
  const { serviceAccount } = parts;
  const named = stringAt(spec, "serviceAccountName") || stringAt(spec, "serviceAccount");
  return {
    ...template,
    spec: {
      ...spec,
      initContainers: [...arrayAt(spec, "initContainers"), ...parts.initContainers],
      volumes: [...arrayAt(spec, "volumes"), ...(parts.volumes ?? [])],
      containers: arrayAt(spec, "containers").map((container) => {
        const mounts = parts.volumeMounts?.[stringAt(container, "name") ?? ""] ?? [];
        if (!isJsonObject(container) || mounts.length === 0) return container;
        return { ...container, volumeMounts: [...arrayAt(container, "volumeMounts"), ...mounts] };
      }),
      ...(serviceAccount === undefined || named ? {} : { serviceAccountName: serviceAccount }),
    },
  };
}

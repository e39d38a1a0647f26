import type { JsonObject } from "../../../runtime/json.ts";
import { LABEL } from "../../job/labels.ts";
import { admissionLabels, type Ownership, replicaLabels } from "./build-labels.ts";

/** The facts of a replica that its service needs. */
type ServiceReplica = {
  readonly name: string;
  readonly role: string;
  readonly index: number;
  readonly ports: readonly { readonly name: string; readonly port: number; readonly protocol?: string }[];
};

/**
 * The manifest of a headless service of a whole gang. It selects by job uid and admission beside the labels of its
 * kind, so that a name never leads to a pod of an older admission.
 */
export function buildGangService(
  ownership: Ownership,
  of: {
    readonly name: string;
    readonly selector: Readonly<Record<string, string>>;
    readonly publishNotReadyAddresses: boolean;
  },
): JsonObject {
  const { name, selector, publishNotReadyAddresses } = of;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: ownership.job.namespace, labels: admissionLabels(ownership) },
    spec: {
      clusterIP: "None",
      publishNotReadyAddresses,
      selector: { ...selector, ...admissionSelector(ownership) },
    },
  };
}

function admissionSelector({ job, admission }: Ownership): Record<string, string> {
  return { [LABEL.jobUid]: job.uid, [LABEL.admission]: String(admission) };
}

/**
 * The manifest of a replica's headless service, which gives its pod a DNS name. It selects by job uid and admission, so
 * that a name never leads to a pod of an older admission. It publishes pods that are not ready, because members must
 * find each other before they are ready.
 */
export function buildService(ownership: Ownership, { name, role, index, ports }: ServiceReplica): JsonObject {
  const labels = admissionLabels(ownership);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name,
      namespace: ownership.job.namespace,
      labels: { ...labels, ...replicaLabels(role, index) },
    },
    spec: {
      clusterIP: "None",
      publishNotReadyAddresses: true,
      selector: { ...admissionSelector(ownership), ...replicaLabels(role, index) },
      ports: ports.map((one) => ({ ...one, targetPort: one.port })),
    },
  };
}

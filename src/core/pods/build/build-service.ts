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
      selector: {
        [LABEL.jobUid]: ownership.job.uid,
        [LABEL.admission]: String(ownership.admission),
        ...replicaLabels(role, index),
      },
      ports: ports.map((one) => ({ ...one, targetPort: one.port })),
    },
  };
}

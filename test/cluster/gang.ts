/** A job's objects, as actions on one cluster. */
import { LABEL } from "../../src/core/job/labels.ts";
import type { Action } from "../../src/core/reconcile/decision.ts";
import { INSTALLATION } from "./harness.ts";

let counter = 0;

/** A job's objects under names of their own. */
export function gang(namespace = "default") {
  const job = `job-${counter++}`;
  const labels = { [LABEL.jobUid]: `uid-of-${job}`, [LABEL.admission]: "1", [LABEL.installation]: INSTALLATION };
  const anchor = `${job}-admission-1`;
  const base = { cluster: "sim", namespace };
  const metadata = (name: string) => ({ name, labels });
  return {
    job,
    uid: `uid-of-${job}`,
    labels,
    anchor,
    createAnchor: {
      ...base,
      kind: "createAnchor",
      manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: metadata(anchor) },
    } satisfies Action,
    createPod: (index = 0) =>
      ({
        ...base,
        kind: "createPod",
        anchor,
        manifest: {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { ...metadata(`${job}-worker-${index}`), annotations: { "sim.gangway.dev/run": "forever" } },
          spec: { containers: [{ name: "main", image: "busybox:1.36" }], terminationGracePeriodSeconds: 1 },
        },
      }) satisfies Action,
    createService: {
      ...base,
      kind: "createService",
      anchor,
      manifest: {
        apiVersion: "v1",
        kind: "Service",
        metadata: metadata(`${job}-worker-0`),
        spec: { clusterIP: "None", selector: labels, ports: [{ port: 23456 }] },
      },
    } satisfies Action,
    deletePod: (uid: string) => ({ ...base, kind: "deletePod", name: `${job}-worker-0`, uid }) satisfies Action,
    deleteAnchor: (uid: string) => ({ ...base, kind: "deleteAnchor", name: anchor, uid }) satisfies Action,
  };
}

import { exampleManifest } from "./example.ts";
import type { Kind } from "./kind.ts";
import { kindSpecSchema } from "./kind-spec.ts";
import { everyoneVerdict } from "./verdicts.ts";

/** A job of any program, with replica types of any name. */
export const plainJob: Kind = {
  name: "Job",
  description:
    "Any program, with replica types of any name. Restarts as one gang. Succeeds when all replicas have succeeded.",
  apiVersion: "gangway.dev/v1",
  replicaSpecsField: "replicaSpecs",
  operatorName: "gangway-job",
  defaultContainer: null,
  containerRequired: false,
  defaultPort: null,
  roles: null,
  roleName: (role) => role,
  defaults: { restartPolicy: "OnFailure", restartScope: "GANG", backoffLimit: 6 },
  kindSpecSchema: kindSpecSchema("Job"),
  validate: () => [],
  example: exampleManifest({
    apiVersion: "gangway.dev/v1",
    kind: "Job",
    replicaSpecsField: "replicaSpecs",
    container: "main",
    image: "busybox:1.36",
    replicas: { Worker: 2 },
  }),
  clusterSpec: () => ({ env: {}, initContainers: [] }),
  objects: () => [],
  isMaster: () => false,
  verdict: everyoneVerdict,
};

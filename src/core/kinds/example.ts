import type { JsonObject } from "../../runtime/json.ts";

/** The parts of an example manifest. `replicas` is by replica type. */
type Example = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly replicaSpecsField: string;
  readonly container: string;
  readonly image: string;
  readonly replicas: Readonly<Record<string, number>>;
};

/** A manifest that can be submitted as it is, with one GPU for each replica. */
export function exampleManifest(example: Example): JsonObject {
  const replicaSpec = (replicas: number): JsonObject => ({
    replicas,
    restartPolicy: "OnFailure",
    template: {
      spec: {
        containers: [{ name: example.container, image: example.image, resources: { limits: { "nvidia.com/gpu": 1 } } }],
      },
    },
  });
  return {
    apiVersion: example.apiVersion,
    kind: example.kind,
    metadata: { name: `${example.kind.toLowerCase()}-example`, namespace: "default" },
    spec: {
      runPolicy: { cleanPodPolicy: "All" },
      [example.replicaSpecsField]: Object.fromEntries(
        Object.entries(example.replicas).map(([role, replicas]) => [role, replicaSpec(replicas)]),
      ),
    },
  };
}

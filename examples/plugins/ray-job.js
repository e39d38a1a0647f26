// @ts-check
/** A kind of pods: a Ray head and workers, which find the head by its service. */
import { podKind } from "gangway/plugin";

const PORT = 6379;

const rayJob = podKind({
  name: "RayJob",
  description: "A Ray cluster for one program. Ends with the head.",
  operatorName: "ray-job",
  defaultContainer: "ray",
  containerRequired: true,
  defaultPort: { name: "gcs", number: PORT },
  roles: [
    { name: "Head", min: 1, max: 1 },
    { name: "Worker", min: 0, max: null },
  ],
  kindSpec: {
    objectStoreMemory: { type: "integer", minimum: 78_643_200, description: "The size of the object store, in bytes." },
  },
  clusterSpec: ({ jobName, namespace, spec }) => ({
    env: {
      ray: [
        { name: "RAY_ADDRESS", value: `${jobName}-head-0.${namespace}.svc:${PORT}` },
        { name: "RAY_OBJECT_STORE_MEMORY", value: String(spec.kindSpec.objectStoreMemory ?? "") },
      ],
    },
    initContainers: [],
  }),
  isMaster: (_members, role) => role === "Head",
  verdict: (states) => {
    const head = states.find(({ role }) => role === "Head");
    if (states.some(({ failedForGood }) => failedForGood > 0)) return "failed";
    if (head !== undefined && head.succeeded > 0) return "succeeded";
    return head !== undefined && head.active > 0 ? "running" : null;
  },
});

export const plugins = [{ id: "ray", kinds: [rayJob] }];

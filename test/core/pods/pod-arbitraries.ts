/** Random templates and platforms, small enough that their names collide. */
import fc from "fast-check";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../../src/core/pods/pod-config.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";

const suffix = fc.constantFrom("", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3");
export const amount = fc.oneof(
  { weight: 1, arbitrary: fc.constant("0") },
  { weight: 6, arbitrary: fc.tuple(fc.integer({ min: 1, max: 4096 }), suffix).map(([n, unit]) => `${n}${unit}`) },
);
const resourceName = fc.constantFrom("cpu", "memory", "ephemeral-storage", "storage");
const list = fc.dictionary(resourceName, amount, { maxKeys: 3 });
const gpus = fc.constantFrom<JsonObject>({}, { "nvidia.com/gpu": "2" }, { gpu: 8 });

/** Resources that Kubernetes accepts: GPUs as limits, and no request above its limit. */
export const resources = fc
  .record({ limits: list, gpus })
  .map(({ limits, gpus: devices }): JsonObject => ({ limits: { ...limits, ...devices } }));

export const anyResources = fc
  .record({ requests: list, limits: list, gpus })
  .map(({ requests, limits, gpus: devices }): JsonObject => ({ requests, limits: { ...limits, ...devices } }));

const requirement = fc.record({
  key: fc.constantFrom("zone", "disk", "spot"),
  operator: fc.constantFrom("In", "NotIn"),
  values: fc.uniqueArray(fc.constantFrom("a", "b", "c"), { minLength: 1 }),
});
export const affinity = fc
  .array(fc.record({ matchExpressions: fc.array(requirement, { maxLength: 2 }) }), { minLength: 1, maxLength: 3 })
  .map(
    (nodeSelectorTerms): JsonObject => ({
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
    }),
  );
const toleration = fc
  .tuple(fc.constantFrom("spot", "gpu", "own"), fc.constantFrom("NoSchedule", "NoExecute"))
  .map(([key, effect]) => ({ key, operator: "Exists", effect }));
const nodeSelector = fc.dictionary(fc.constantFrom("pool", "zone"), fc.constantFrom("a", "b"));

const env = fc.uniqueArray(fc.record({ name: fc.constantFrom("A", "B", "HOME"), value: fc.constantFrom("1", "2") }), {
  selector: ({ name }) => name,
  maxLength: 2,
});
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const present = (object: Readonly<Record<string, unknown>>): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as JsonObject;

const container = (name: string) =>
  fc
    .record({
      name: fc.constant(name),
      image: fc.constantFrom("busybox", "pytorch:2"),
      command: optional(fc.constant(["train", "{{ .JobName }}"])),
      args: optional(fc.constantFrom(["-v"], ["-v", "--rank={{ .ReplicaIndex }}"])),
      env: optional(env),
      resources: optional(resources),
    })
    .map(present);

const podSpec = (containers: fc.Arbitrary<readonly JsonObject[]>) =>
  fc
    .record({
      containers,
      affinity: optional(affinity),
      nodeSelector: optional(nodeSelector),
      tolerations: optional(fc.array(toleration, { maxLength: 2 })),
      volumes: optional(
        fc
          .uniqueArray(fc.constantFrom("data", "cache"), { minLength: 1 })
          .map((names) => names.map((name) => ({ name, emptyDir: {} }))),
      ),
      priorityClassName: fc.constantFrom(undefined, ""),
      terminationGracePeriodSeconds: optional(fc.integer({ min: 0, max: 60 })),
    })
    .map(present);

const annotationsOf = fc.record(
  {
    "gangway.dev/gpu-device": fc.constant("a100"),
    "gangway.dev/gpu-partition-size": fc.constantFrom("1g.5gb", "unpartitioned"),
    "gangway.dev/secrets": fc.constantFrom("db/password", "db/password, s3/key:file"),
    "gangway.dev/inputs": fc.constant("file:///in/{{ .JobName }}"),
    "gangway.dev/outputs": fc.constant("file:///out/{{ .JobUid }}/{{ .ReplicaIndex }}"),
    "gangway.dev/input-path": fc.constant("/data/in"),
  },
  { requiredKeys: [] },
);

/** A template of a job with a primary container `main`. */
export const templates = fc
  .record({
    metadata: fc.record({ annotations: annotationsOf, labels: fc.constantFrom<JsonObject>({}, { team: "a" }) }),
    spec: podSpec(
      fc.tuple(container("main"), fc.array(container("side"), { maxLength: 1 })).map(([main, more]) => [main, ...more]),
    ),
  })
  .map((template) => JSON.parse(JSON.stringify(template)) as JsonObject);

const some = (names: readonly string[]) =>
  fc.subarray([...names]).chain((chosen) => fc.tuple(...chosen.map((name) => container(name))));

/** A platform's pod template. Its containers, and some of its init containers, are only templates for others. */
const base = fc
  .tuple(
    podSpec(some(["default", "primary", "unused"])),
    optional(some(["default-init", "primary-init", "prepare"]).filter((list) => list.length > 0)),
  )
  .map(([spec, initContainers]) => present({ ...spec, initContainers }));

const platformResources = fc.record({ defaults: list, limits: list });

export const configs: fc.Arbitrary<PodConfig> = fc
  .record({
    resources: optional(platformResources),
    defaultTolerations: fc.array(toleration, { maxLength: 2 }),
    interruptibleTolerations: fc.array(toleration, { maxLength: 2 }),
    defaultNodeSelector: nodeSelector,
    interruptibleNodeSelector: nodeSelector,
    interruptibleNodeSelectorRequirement: optional(requirement),
    nonInterruptibleNodeSelectorRequirement: optional(requirement),
    defaultAffinity: optional(affinity),
    defaultSecurityContext: optional(fc.constant({ runAsNonRoot: true })),
    defaultEnvVars: fc.dictionary(fc.constantFrom("A", "REGION"), fc.constantFrom("x", "y")),
    defaultEnvFromSecrets: fc.constantFrom([], ["everyone"]),
    defaultLabels: fc.constantFrom<Record<string, string>>({}, { team: "all", tier: "x" }),
    defaultAnnotations: fc.constantFrom<Record<string, string>>({}, { "acme.com/owner": "ml" }),
    imagePullPolicy: optional(fc.constantFrom("Always", "IfNotPresent")),
    preferredNodes: fc.array(
      fc.record({
        weight: fc.integer({ min: 1, max: 100 }),
        matchExpressions: fc.array(requirement, { minLength: 1 }),
      }),
      { maxLength: 2 },
    ),
    base: optional(base),
    coPilot: fc.constant({
      image: "copier",
      command: ["cp", "-r", "{{ .From }}", "{{ .To }}"],
      env: [],
      envFrom: [],
      inputPath: "/var/inputs",
      outputPath: "/var/outputs",
      cpu: "500m",
      memory: "128Mi",
      storage: "2Gi",
      timeoutSeconds: 60,
    }),
  })
  .map((config) => JSON.parse(JSON.stringify(config)) as typeof config)
  .map(({ base: spec, ...given }) => ({
    ...PLAIN_POD_CONFIG,
    ...(present(given) as unknown as Partial<PodConfig>),
    resourceTolerations: { "nvidia.com/gpu": [{ key: "gpu", operator: "Exists", effect: "NoSchedule" }] },
    defaultPodTemplateName: "base",
    podTemplateNamespace: "platform",
    podTemplates: spec === undefined ? [] : [{ name: "base", namespace: "platform", template: { spec } }],
  }));

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { requireBoth } from "../../../src/core/pods/build-affinity.ts";
import { mergePodSpecs } from "../../../src/core/pods/merge-pod-specs.ts";
import { type NodeFacts, nodeAllows } from "../../../src/core/pods/node-match.ts";
import { customizeResources } from "../../../src/core/pods/platform-resources.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../../src/core/pods/pod-config.ts";
import { parseQuantity } from "../../../src/core/pods/quantity.ts";
import { loadOrDefault, type Shaping, shapeTemplate } from "../../../src/core/pods/shape-template.ts";
import { arrayAt, canonicalJson, type Json, type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { affinity, amount, anyResources, configs, templates } from "./pod-arbitraries.ts";

const MAIN = { container: "main", initContainer: "" };

const shaping = (change: Partial<Shaping> = {}): Shaping => ({
  config: PLAIN_POD_CONFIG,
  namespace: "team",
  interruptible: false,
  primaryContainer: "main",
  ...change,
});

function shaped(template: JsonObject, change: Partial<Shaping> = {}): JsonObject {
  const outcome = shapeTemplate(template, shaping(change));
  assert.ok(outcome.kind === "shaped", JSON.stringify(outcome));
  return outcome.template;
}

/** The same for random templates. Some platforms refuse some of their resources. */
function shapedIfTaken(template: JsonObject, change: Partial<Shaping> = {}): JsonObject {
  const outcome = shapeTemplate(template, shaping(change));
  fc.pre(outcome.kind === "shaped");
  return outcome.kind === "shaped" ? outcome.template : {};
}

const nano = (value: Json | undefined) => parseQuantity(String(value ?? "0"))!.nano;

function checkWithin(resources: JsonObject, limits: Readonly<Record<string, string>>): void {
  const { requests, limits: own } = {
    requests: objectAt(resources, "requests"),
    limits: objectAt(resources, "limits"),
  };
  for (const name of [...Object.keys(requests), ...Object.keys(own)]) {
    const [request, limit, most] = [nano(requests[name]), nano(own[name]), nano(limits[name])];
    if (limit > 0n) assert.ok(request <= limit, `${name}: request ${requests[name]} above limit ${own[name]}`);
    if (most > 0n) assert.ok(request <= most && limit <= most, `${name}: above the platform's ${limits[name]}`);
  }
}

const lists = fc.dictionary(fc.constantFrom("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"), amount);

test("a request exceeds neither its limit nor the platform's, and adjusting it again changes nothing", () => {
  fc.assert(
    fc.property(
      anyResources,
      fc.record({ defaults: lists, limits: lists }),
      fc.constantFrom("assign", "hold"),
      (resources, platform, mode) => {
        const given = customizeResources(resources, platform, { mode, config: PLAIN_POD_CONFIG });
        checkWithin(given, platform.limits);
        assert.deepEqual(customizeResources(given, platform, { mode, config: PLAIN_POD_CONFIG }), given);
      },
    ),
  );
});

test("a platform without settings changes nothing", () => {
  fc.assert(
    fc.property(templates, fc.boolean(), (template, interruptible) => {
      const bare = { ...template, metadata: { labels: { team: "a" } } };
      assert.deepEqual(shapedIfTaken(bare, { interruptible }), bare);
    }),
  );
});

test("shaping is deterministic and idempotent", () => {
  fc.assert(
    fc.property(templates, configs, fc.boolean(), (template, config, interruptible) => {
      const once = shapedIfTaken(template, { config, interruptible });
      assert.deepEqual(shaped(structuredClone(template), { config, interruptible }), once);
      assert.deepEqual(shaped(once, { config, interruptible }), once);
    }),
  );
});

test("a container that names only resources which containers do not have gets none", () => {
  const container = { name: "main", image: "busybox", resources: { limits: { storage: "1Gi" } } };
  const initContainers = [{ ...container, name: "prepare" }];
  const config = { ...PLAIN_POD_CONFIG, resources: { defaults: {}, limits: { storage: "1" } } };
  const spec = objectAt(shaped({ spec: { containers: [container], initContainers } }, { config }), "spec");
  assert.deepEqual(arrayAt(spec, "initContainers"), [{ name: "prepare", image: "busybox" }]);
});

test("every container of a shaped template is within the platform's limits", () => {
  fc.assert(
    fc.property(templates, configs, (template, config) => {
      const spec = objectAt(shapedIfTaken(template, { config }), "spec");
      for (const list of ["containers", "initContainers"]) {
        for (const container of arrayAt(spec, list)) {
          checkWithin(objectAt(container, "resources"), config.resources?.limits ?? {});
        }
      }
    }),
  );
});

const nodes: fc.Arbitrary<NodeFacts> = fc
  .dictionary(fc.constantFrom("zone", "disk", "spot", "pool"), fc.constantFrom("a", "b", "c"))
  .map((labels) => ({ name: "n", labels, taints: [], unschedulable: false }));

test("a merged spec runs on exactly the nodes on which both specs run", () => {
  fc.assert(
    fc.property(affinity, affinity, nodes, (base, own, node) => {
      const merged = mergePodSpecs({ affinity: base }, { affinity: own, containers: [] }, MAIN);
      const both = nodeAllows({ affinity: base }, node) && nodeAllows({ affinity: own }, node);
      assert.equal(nodeAllows(merged, node), both);
    }),
  );
});

test("required terms are kept if only one spec has them", () => {
  const terms = { nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "Exists" }] }] };
  assert.deepEqual(requireBoth(terms, {}), terms.nodeSelectorTerms);
  assert.deepEqual(requireBoth({}, terms), terms.nodeSelectorTerms);
});

test("a shaped template runs only on nodes of the original template, interruptible labels aside", () => {
  fc.assert(
    fc.property(templates, configs, nodes, (template, config, node) => {
      const spec = objectAt(shapedIfTaken(template, { config }), "spec");
      if (nodeAllows(spec, node)) assert.ok(nodeAllows(objectAt(template, "spec"), node));
    }),
  );
});

const config = (change: Partial<PodConfig>): PodConfig => ({ ...PLAIN_POD_CONFIG, ...change });
const plain: JsonObject = { spec: { containers: [{ name: "main", image: "i" }] } };
const annotated = (annotations: Readonly<Record<string, string>>, more: JsonObject = {}): JsonObject => ({
  metadata: { annotations },
  spec: { containers: [{ name: "main", image: "i", ...more }] },
});

const refusals: Readonly<Record<string, { template: JsonObject; config?: PodConfig; errors: readonly string[] }>> = {
  "a pod template that does not exist": {
    template: annotated({ "gangway.dev/pod-template": "big" }),
    errors: [
      'metadata.annotations["gangway.dev/pod-template"] is "big": ' +
        "this namespace and the platform have no such pod template",
    ],
  },
  "inputs without a co-pilot": {
    template: annotated({ "gangway.dev/inputs": "s3://b/x" }),
    errors: [
      'metadata.annotations["gangway.dev/inputs"] is not allowed: ' +
        "this platform has no co-pilot, which copies inputs and outputs",
    ],
  },
  "a secret without a key": {
    template: annotated({ "gangway.dev/secrets": "db" }),
    errors: [
      'metadata.annotations["gangway.dev/secrets"] has "db": must be SECRET/KEY for a variable, or SECRET/KEY:file',
    ],
  },
  "a GPU whose name cannot be the value of a label": {
    template: annotated({ "gangway.dev/gpu-device": "a 100" }),
    errors: ['metadata.annotations["gangway.dev/gpu-device"] is "a 100": must be a label\'s value'],
  },
  "a primary container that the template does not have": {
    template: annotated({ primary_container_name: "trainer" }),
    errors: [
      'metadata.annotations["primary_container_name"] is "trainer": must be one of the template\'s containers: main',
    ],
  },
};
for (const [name, { template, config: given = PLAIN_POD_CONFIG, errors }] of Object.entries(refusals)) {
  test(`refused: ${name}`, () => {
    const outcome = shapeTemplate(template, shaping({ config: given }));
    assert.ok(outcome.kind === "refused");
    assert.deepEqual(
      outcome.errors.map(({ path, message }) => `${path} ${message}`),
      errors,
    );
  });
}

test("a namespace's own resources and account replace the platform's", () => {
  const given = config({
    resources: { defaults: {}, limits: { cpu: "8" } },
    serviceAccount: "everybody",
    namespaces: { team: { resources: { defaults: { cpu: "2" }, limits: { cpu: "4" } }, serviceAccount: "team" } },
  });
  const spec = objectAt(shaped(plain, { config: given }), "spec");
  assert.equal(spec["serviceAccountName"], "team");
  const { requests } = objectAt(arrayAt(spec, "containers")[0], "resources");
  assert.deepEqual(requests, { cpu: "2", memory: "1024Mi" });
  assert.equal(
    objectAt(shaped(plain, { config: given, namespace: "other" }), "spec")["serviceAccountName"],
    "everybody",
  );
});

test("the primary container is the one that the template's annotation names, else the kind's", () => {
  const containers = ["main", "side"].map((name) => ({ name, image: "i" }));
  const given = config({
    resources: { defaults: { cpu: "2" }, limits: {} },
    defaultPodTemplateName: "t",
    podTemplates: [
      { name: "t", namespace: "team", template: { spec: { containers: [{ name: "primary", workingDir: "/p" }] } } },
    ],
  });
  const primaries = (annotations: JsonObject) =>
    arrayAt(shaped({ metadata: { annotations }, spec: { containers } }, { config: given })["spec"], "containers")
      .filter((one) => stringAt(one, "workingDir") === "/p" && objectAt(objectAt(one, "resources"), "requests")["cpu"])
      .map((one) => stringAt(one, "name"));
  assert.deepEqual(primaries({}), ["main"]);
  assert.deepEqual(primaries({ primary_container_name: "" }), ["main"]);
  assert.deepEqual(primaries({ primary_container_name: "side" }), ["side"]);
});

test("labels, annotations and the way to pull images come from the platform where nothing else names them", () => {
  const given = config({
    defaultLabels: { team: "all", tier: "gpu" },
    defaultAnnotations: { owner: "platform" },
    imagePullPolicy: "Always",
    defaultPodTemplateName: "t",
    podTemplates: [{ name: "t", namespace: "team", template: { metadata: { labels: { tier: "base" } }, spec: {} } }],
  });
  const containers = [
    { name: "main", image: "i", imagePullPolicy: "Never" },
    { name: "side", image: "i" },
  ];
  const { metadata, spec } = shaped({ metadata: { labels: { team: "a" } }, spec: { containers } }, { config: given });
  assert.deepEqual(metadata, { labels: { team: "a", tier: "base" }, annotations: { owner: "platform" } });
  assert.deepEqual(
    arrayAt(spec, "containers").map((one) => stringAt(one, "imagePullPolicy")),
    ["Never", "Always"],
  );
});

test("the platform's preferred nodes are added to a template's own, once", () => {
  const wish = (key: string) => [{ key, operator: "Exists" }];
  const own = { weight: 3, preference: { matchExpressions: wish("disk") } };
  const preferred = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [own] } };
  const given = config({ preferredNodes: [{ weight: 50, matchExpressions: wish("fast") }] });
  const once = shaped({ spec: { ...objectAt(plain, "spec"), affinity: preferred } }, { config: given });
  const affinity = objectAt(objectAt(objectAt(once, "spec"), "affinity"), "nodeAffinity");
  assert.deepEqual(arrayAt(affinity, "preferredDuringSchedulingIgnoredDuringExecution"), [
    own,
    { weight: 50, preference: { matchExpressions: wish("fast") } },
  ]);
  assert.deepEqual(shaped(once, { config: given }), once);
});

test("a pod template is the namespace's own, else the platform's, else none", () => {
  const of = (namespace: string) => ({ name: "t", namespace, template: {} });
  const store = { podTemplateNamespace: "platform", podTemplates: [of("platform"), of("team")] };
  assert.equal(loadOrDefault(store, { namespace: "team", name: "t" })?.namespace, "team");
  assert.equal(loadOrDefault(store, { namespace: "other", name: "t" })?.namespace, "platform");
  assert.equal(loadOrDefault(store, { namespace: "other", name: "u" }), null);
});

test("every container refers to the secrets, as variables or as files", () => {
  const spec = objectAt(shaped(annotated({ "gangway.dev/secrets": "db/pass.word, s3/key:file, s3/id:file" })), "spec");
  const [main] = arrayAt(spec, "containers");
  assert.deepEqual(arrayAt(main, "env"), [
    { name: "GANGWAY_SECRET_DB_PASS_WORD", valueFrom: { secretKeyRef: { name: "db", key: "pass.word" } } },
  ]);
  assert.deepEqual(arrayAt(main, "volumeMounts"), [
    { name: "gangway-secrets", mountPath: "/etc/gangway/secrets", readOnly: true },
  ]);
  assert.deepEqual(arrayAt(spec, "volumes"), [
    {
      name: "gangway-secrets",
      projected: {
        sources: [
          {
            secret: {
              name: "s3",
              items: [
                { key: "key", path: "s3/key" },
                { key: "id", path: "s3/id" },
              ],
            },
          },
        ],
      },
    },
  ]);
});

test("a container's own variables replace the platform's", () => {
  const given = config({ defaultEnvVars: { REGION: "x", A: "platform" }, defaultEnvFromConfigMaps: ["all"] });
  const [main] = arrayAt(
    objectAt(shaped(annotated({}, { env: [{ name: "A", value: "own" }] }), { config: given }), "spec"),
    "containers",
  );
  assert.deepEqual(arrayAt(main, "env"), [
    { name: "A", value: "own" },
    { name: "REGION", value: "x" },
  ]);
  assert.deepEqual(arrayAt(main, "envFrom"), [{ configMapRef: { name: "all", optional: true } }]);
});

test("a probe with another handler replaces the base's handler, and keeps its times", () => {
  const base = { containers: [{ name: "default", livenessProbe: { httpGet: { port: 80 }, periodSeconds: 5 } }] };
  const own = { containers: [{ name: "main", livenessProbe: { exec: { command: ["true"] } } }] };
  const [main] = arrayAt(mergePodSpecs(base, own, MAIN), "containers");
  assert.equal(stringAt(main, "name"), "main");
  assert.equal(canonicalJson(objectAt(main, "livenessProbe")), '{"exec":{"command":["true"]},"periodSeconds":5}');
});

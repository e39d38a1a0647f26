import assert from "node:assert/strict";
import { test } from "node:test";
import type { TopologyWish } from "../../../../src/core/job/placement/topology-wish.ts";
import { defaultSpec } from "../../../../src/core/job/request/defaults.ts";
import type { SentSpec } from "../../../../src/core/job/request/sent.ts";
import { fromManifest } from "../../../../src/core/kinds/manifest/from-manifest.ts";
import { KINDS } from "../../../../src/core/kinds/registry.ts";
import { checkTopology } from "../../../../src/core/kinds/topology/check-wishes.ts";
import { haveEqualTopology } from "../../../../src/core/kinds/topology/kueue-annotations.ts";
import { ignoredWishes, withWishes } from "../../../../src/core/kinds/topology/sent-wishes.ts";
import { isJsonObject, type Json, type JsonObject, objectAt } from "../../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";
import { shippedRuntimeOf } from "../../../support/shipped-runtimes.ts";

const KEY = "kueue.x-k8s.io/podset-";
const CONTEXT = { labels: {}, namespaceQueue: null, priorityClass: null };
type Annotations = Readonly<Record<string, string>>;

/** A job of eight workers with these annotations of Kueue, whose keys are without their prefix. */
function workers(annotations: Annotations, topology?: TopologyWish): SentSpec {
  const keyed = Object.fromEntries(Object.entries(annotations).map(([key, text]) => [KEY + key, text]));
  const template = { metadata: { annotations: keyed }, spec: { containers: [{ name: "pytorch", image: "i" }] } };
  return { kind: "PyTorchJob", replicaSpecs: { Worker: { replicas: 8, template, ...(topology && { topology }) } } };
}

function read(spec: SentSpec) {
  const kind = OWN_KINDS.kindOf(spec.kind) ?? assert.fail("the kind is served");
  const texts = (notes: readonly { path: string; message: string }[]) => {
    return notes.map(({ path, message }) => `${path.replace(/^.*podset-/, "").replace(/"\]$/, "")} ${message}`);
  };
  return {
    wish: withWishes(defaultSpec(spec, { ...CONTEXT, kind }), kind).replicaSpecs["Worker"]?.topology,
    errors: texts(checkTopology(kind, spec)),
    warnings: texts(ignoredWishes(kind, spec)),
  };
}

const taken: Record<string, readonly [Annotations, TopologyWish | undefined]> = {
  "a required level": [{ "required-topology": "example.com/rack" }, { required: "example.com/rack" }],
  "a preferred level": [{ "preferred-topology": "rack" }, { preferred: "rack" }],
  "no constraint": [{ "unconstrained-topology": "true" }, undefined],
  "slices alone": [{ "slice-required-topology": "rack", "slice-size": "4" }, { slices: [{ level: "rack", size: 4 }] }],
  "slices in a required level": [
    { "required-topology": "block", "slice-required-topology": "rack", "slice-size": "4" },
    { required: "block", slices: [{ level: "rack", size: 4 }] },
  ],
  "nested slices, whose sizes are texts or numbers": [
    {
      "preferred-topology": "block",
      "slice-required-topology-constraints": '[{"topology": "rack", "size": "4"}, {"topology": "host", "size": 2}]',
    },
    {
      preferred: "block",
      slices: [
        { level: "rack", size: 4 },
        { level: "host", size: 2 },
      ],
    },
  ],
};
for (const [name, [annotations, wish]] of Object.entries(taken)) {
  test(`annotations of Kueue ask for ${name}`, () => {
    assert.deepEqual(read(workers(annotations)), { wish, errors: [], warnings: [] });
  });
}

const SLICES = "slice-required-topology-constraints";
const FORM = 'must be JSON such as [{"topology": "rack", "size": "4"}]';
const LEVEL = "must be a level: its name, such as rack, or the label of its nodes, such as topology.kubernetes.io/rack";
const refused: Record<string, readonly [Annotations, readonly string[]]> = {
  "a level that is none": [{ "required-topology": "a b" }, [`required-topology ${LEVEL}, not "a b"`]],
  "an empty level": [{ "preferred-topology": "" }, ["preferred-topology must not be empty"]],
  "two levels": [
    { "required-topology": "rack", "preferred-topology": "block" },
    [`preferred-topology must be omitted beside ${KEY}required-topology`],
  ],
  "a level and none": [
    { "required-topology": "rack", "unconstrained-topology": "true" },
    [`unconstrained-topology must be omitted beside ${KEY}required-topology`],
  ],
  "neither true nor false": [
    { "unconstrained-topology": "yes" },
    ['unconstrained-topology must be "true" or "false", not "yes"'],
  ],
  "slices without a size": [
    { "slice-required-topology": "rack" },
    [`slice-required-topology needs ${KEY}slice-size beside it`],
  ],
  "a size without slices": [
    { "slice-size": "4" },
    [`slice-size must be omitted without ${KEY}slice-required-topology`],
  ],
  "a size that is none": [
    { "slice-required-topology": "rack", "slice-size": "four" },
    ['slice-size must be a whole number, not "four"'],
  ],
  "a size that does not divide": [
    { "slice-required-topology": "rack", "slice-size": "3" },
    ["slice-size must divide 8, the number of Worker replicas, and is 3"],
  ],
  "slices in two ways": [
    { [SLICES]: '[{"topology": "rack", "size": "4"}]', "slice-size": "4" },
    [`slice-size must be omitted beside ${KEY}${SLICES}`],
  ],
  "slices that are no JSON": [{ [SLICES]: "rack=4" }, [`${SLICES} ${FORM}`]],
  "slices that are no list": [{ [SLICES]: "{}" }, [`${SLICES} ${FORM}`]],
  "no slices": [{ [SLICES]: "[]" }, [`${SLICES} ${FORM}`]],
  "slices with wrong members": [
    { [SLICES]: '[{"topology": "rack", "sizes": [1, 7]}, 4]' },
    [
      `${SLICES} [0].sizes is not a known field: did you mean size?`,
      `${SLICES} [0].size is required`,
      `${SLICES} [1].topology must be a level, such as rack`,
      `${SLICES} [1].size is required`,
    ],
  ],
  "slices that do not divide each other": [
    { [SLICES]: '[{"topology": "rack", "size": "4"}, {"topology": "host", "size": "3"}]' },
    [`${SLICES} [1].size must divide 4, the size of slices[0], and is 3`],
  ],
  "too many slices": [
    { [SLICES]: JSON.stringify(Array.from({ length: 17 }, (_, at) => ({ topology: `l${at}`, size: "1" }))) },
    [`${SLICES} must have at most 16 entries, not 17`],
  ],
  "slices in a text without end": [
    { [SLICES]: `[${" ".repeat(9_000)}]` },
    [`${SLICES} must have at most 8192 characters`],
  ],
};
for (const [name, [annotations, errors]] of Object.entries(refused)) {
  test(`annotations of Kueue with ${name} are refused by their names`, () => {
    assert.deepEqual(read(workers(annotations)).errors, errors);
  });
}

test("the field counts in place of the annotations, with a warning if they differ", () => {
  const annotated = { "preferred-topology": "rack" };
  const kept = read(workers(annotated, { required: "block" }));
  assert.deepEqual(kept, {
    wish: { required: "block" },
    errors: [],
    warnings: ["preferred-topology is ignored: spec.replicaSpecs.Worker.topology counts"],
  });
  assert.deepEqual(read(workers(annotated, { preferred: "rack" })).warnings, []);
});

test("a group of pod sets is not served yet, which a warning says", () => {
  const { wish, errors, warnings } = read(workers({ "required-topology": "rack", "group-name": "g" }));
  assert.deepEqual([wish, errors], [{ required: "rack" }, []]);
  assert.match(warnings.join(), /^group-name is ignored: .* gangway.dev\/required-topology of the job$/);
});

test("templates make the same wish only if their annotations are the same", () => {
  const template = (annotations: Annotations) => ({ metadata: { annotations } });
  const rack = { [`${KEY}required-topology`]: "rack" };
  assert.ok(haveEqualTopology(template(rack), template({ ...rack, other: "x" })));
  assert.ok(haveEqualTopology({}, template({ other: "x" })));
  for (const other of [{}, template({ [`${KEY}required-topology`]: "block" })]) {
    assert.ok(!haveEqualTopology(template(rack), other));
  }
});

/** The value with these annotations in each of its pod templates. */
function annotated(value: Json, annotations: Annotations): Json {
  if (Array.isArray(value)) return value.map((one: Json) => annotated(one, annotations));
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, annotated(member ?? null, annotations)]);
  const copy = Object.fromEntries(members) as JsonObject;
  if (!Array.isArray(objectAt(copy, "spec")["containers"])) return copy;
  const metadata = objectAt(copy, "metadata");
  return { ...copy, metadata: { ...metadata, annotations: { ...objectAt(metadata, "annotations"), ...annotations } } };
}

for (const { name, example, runs } of KINDS) {
  if (runs === "service") continue;
  test(`the templates of a ${name} make wishes of its replica types`, () => {
    const wishes = { [`${KEY}required-topology`]: "rack" };
    const manifest = { ...example, metadata: { name: "a" } };
    const outcome = fromManifest(annotated(manifest, wishes) as JsonObject, OWN_KINDS, {
      runtimeOf: (ref) => annotated(shippedRuntimeOf(ref), wishes) as JsonObject | null,
    });
    assert.ok(outcome.kind === "read", JSON.stringify(outcome));
    const kind = OWN_KINDS.kindOf(name) ?? assert.fail(name);
    const { spec } = outcome.manifest;
    assert.deepEqual(checkTopology(kind, spec), []);
    const { replicaSpecs } = withWishes(defaultSpec(spec, { ...CONTEXT, kind }), kind);
    assert.ok(Object.keys(replicaSpecs).length > 0);
    for (const { topology } of Object.values(replicaSpecs)) assert.deepEqual(topology, { required: "rack" });
  });
}

test("slices of a JobSet are its child jobs where no size is named, and a batch Job must name one", () => {
  const pod = { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "i" }] } };
  const batch = { parallelism: 4, completions: 4, template: pod };
  const manifests: Record<string, JsonObject> = {
    JobSet: {
      apiVersion: "jobset.x-k8s.io/v1alpha2",
      kind: "JobSet",
      metadata: { name: "a" },
      spec: { replicatedJobs: [{ name: "Worker", replicas: 3, template: { spec: batch } }] },
    },
    "Job.batch": { apiVersion: "batch/v1", kind: "Job", metadata: { name: "a" }, spec: batch },
  };
  const readAnnotated = (manifest: JsonObject | undefined) => {
    const made = annotated(manifest ?? {}, { [`${KEY}slice-required-topology`]: "rack" }) as JsonObject;
    const outcome = fromManifest(made, OWN_KINDS, { runtimeOf: () => null });
    assert.ok(outcome.kind === "read", JSON.stringify(outcome));
    return read(outcome.manifest.spec);
  };
  assert.deepEqual(readAnnotated(manifests["JobSet"]), {
    wish: { slices: [{ level: "rack", size: 4 }] },
    errors: [],
    warnings: [],
  });
  const { errors } = readAnnotated(manifests["Job.batch"]);
  assert.deepEqual(errors, [`slice-required-topology needs ${KEY}slice-size beside it`]);
});

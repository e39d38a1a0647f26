/** Every text, list and map of every request has a limit, which is checked before the request is decoded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type JsonObject,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { boundsOf, type FieldBounds } from "../../src/api/rpc/declared-bounds.ts";
import { findPassedBound, REQUEST_VALUES_MAX } from "../../src/api/rpc/find-passed-bound.ts";
import { SERVICES } from "../../src/api/services.ts";
import { CreateJobRequestSchema, JobService, ListJobsRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

/** A field of a request, at the end of a chain of fields. */
type Place = { readonly method: DescMethod; readonly chain: readonly DescField[]; readonly bounds: FieldBounds };

test("every text, list and map of every request declares its limits", () => {
  const places = allPlaces();
  assert.ok(places.length > 200, `${places.length} fields`);
  const undeclared = places.flatMap(({ method, chain, bounds }) =>
    bounds.undeclared.map((rule) => `${method.name} ${chain.map(({ name }) => name).join(".")}: ${rule}`),
  );
  assert.deepEqual(undeclared, []);
  for (const { bounds } of places) {
    if (bounds.content === null) continue;
    assert.ok(bounds.content.maxBytes > 0 && bounds.content.maxValues > 0, bounds.name);
    assert.ok(bounds.content.maxDepth > 0 || bounds.message?.typeName !== "google.protobuf.Struct", bounds.name);
  }
});

test("every field at its limit is within it, and beyond it is the only one that is named", () => {
  let cases = 0;
  for (const place of allPlaces()) {
    for (const { at, beyond, path } of edgesOf(place)) {
      cases += 1;
      const name = `${place.method.name} ${path}`;
      assert.equal(findPassedBound(place.method.input, wrapped(place, at)).kind, "within", name);
      // The rest is no message: it is not read any more.
      const bytes = Buffer.concat([wrapped(place, beyond), Uint8Array.of(0x07, 0xff)]);
      const outcome = findPassedBound(place.method.input, bytes);
      assert.equal(outcome.kind === "passed" ? outcome.note.field : outcome.kind, path, name);
    }
  }
  assert.ok(cases > 250, `${cases} cases`);
});

const many = (count: number) => Array.from({ length: count }, (_, at) => at);
const record = (count: number, value: string) => Object.fromEntries(many(count).map((at) => [`k${at}`, value]));
const job = pytorchJob();
const withSpec = (spec: object) => ({ job: { metadata: { name: "a" }, spec: { ...job.spec, ...spec } } });

const { createJob, listJobs, watchJobs } = JobService.method;
const oversized = {
  "20,000 replica types": [
    createJob,
    withSpec({ replicaSpecs: Object.fromEntries(many(20_000).map((n) => [`!${n}`, {}])) }),
    "job.spec.replica_specs",
  ],
  "300,000 labels": [
    createJob,
    { job: { ...job, metadata: { name: "a", labels: record(300_000, "x") } } },
    "job.metadata.labels",
  ],
  "300,000 annotations": [
    createJob,
    { job: { ...job, metadata: { name: "a", annotations: record(300_000, "") } } },
    "job.metadata.annotations",
  ],
  "300,000 minResources": [
    createJob,
    withSpec({ runPolicy: { schedulingPolicy: { minResources: record(300_000, "1") } } }),
    "job.spec.run_policy.scheduling_policy.min_resources",
  ],
  "300,000 members of kindSpec": [createJob, withSpec({ kindSpec: record(300_000, "1") }), "job.spec.kind_spec"],
  "300,000 inputs": [createJob, withSpec({ inputs: record(300_000, "1") }), "job.spec.inputs"],
  "a cluster selector of 300,000": [
    createJob,
    withSpec({ placement: { clusterSelector: record(300_000, "x") } }),
    "job.spec.placement.cluster_selector",
  ],
  "a filter with 300,000 labels": [listJobs, { filter: { labels: record(300_000, "x") } }, "filter.labels"],
  "200,000 renewals": [ResourceManager.method.renewAllocations, { lines: many(200_000).map(() => ({})) }, "lines"],
  "200,000 releases": [ResourceManager.method.batchReleaseResources, { lines: many(200_000).map(() => ({})) }, "lines"],
} as const;

test("a request far beyond a limit is refused with that field alone", async (t) => {
  const { call, internal } = await startFixture(t);
  for (const [name, [method, request, field]] of Object.entries(oversized)) {
    const { error } = await call(method as typeof createJob, request as never);
    assert.equal(error?.code, "INVALID_ARGUMENT", name);
    assert.deepEqual(
      error?.fields.map((one) => one.field),
      [field],
      name,
    );
    assert.match(error.message, /at most/, name);
  }
  assert.deepEqual(internal, []);
});

test("a stream far beyond a limit is refused with that field alone", async (t) => {
  const { stream } = await startFixture(t);
  const refused = new Promise<Error>((resolve) => {
    stream(watchJobs, { filter: { labels: record(300_000, "x") } })
      .on("error", resolve)
      .on("data", () => {});
  });
  assert.match((await refused).message, /filter\.labels: must have at most 64 entries/);
});

test("a job of a batch beyond a limit is refused, and the others are not", async (t) => {
  const { call } = await startFixture(t);
  const named = (name: string, labels: Record<string, string>) => ({ job: { ...job, metadata: { name, labels } } });
  const requests = [
    named("a", {}),
    named("b", record(65, "x")),
    named("c", record(64, "x")),
    named("d", record(90_000, "x")),
  ];
  const { ok } = await call(JobService.method.batchCreateJobs, { requests });
  const results = ok?.results.map(({ result }) => (result.case === "error" ? result.value.message : result.case));
  const refused = "job.metadata.labels: must have at most 64 entries";
  assert.deepEqual(results, ["response", refused, "response", refused]);
});

test("each request and each item beyond a limit is counted once, by its method", async (t) => {
  const counted: { readonly method: string; readonly count: number }[] = [];
  const { call, stream } = await startFixture(t, { requestBeyondLimit: (of) => void counted.push(of) });
  const labelled = (count: number) => ({ job: { ...job, metadata: { name: "a", labels: record(count, "x") } } });
  await call(createJob, labelled(65));
  await call(createJob, labelled(1));
  await call(createJob, { job: { ...job, metadata: { name: "!" } } });
  await call(JobService.method.batchCreateJobs, { requests: [labelled(65), labelled(2), labelled(66)] });
  await new Promise((resolve) => {
    stream(watchJobs, { filter: { labels: record(65, "x") } })
      .on("error", resolve)
      .on("data", () => {});
  });
  assert.deepEqual(counted, [
    { method: "gangway.v1.JobService/CreateJob", count: 1 },
    { method: "gangway.v1.JobService/BatchCreateJobs", count: 2 },
    { method: "gangway.v1.JobService/WatchJobs", count: 1 },
  ]);
});

test("parts of a field that is sent several times are counted together, as the decoder joins them", () => {
  const labels = fc.array(fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 80, size: "max" }), {
    maxLength: 3,
    size: "max",
  });
  const sizes = { within: 0, passed: 0 };
  const law = fc.property(labels, fc.boolean(), (parts, packed) => {
    const filters = parts.map((keys) => {
      const entries = keys.map((key) => lengthDelimited(7, lengthDelimited(1, text(`k${key}`))));
      const phases = packed
        ? [
            lengthDelimited(
              4,
              Uint8Array.from(keys, () => 1),
            ),
          ]
        : keys.map(() => Uint8Array.of(0x20, 1));
      return lengthDelimited(1, Buffer.concat([...entries, ...phases]));
    });
    const bytes = Buffer.concat(filters);
    const { filter } = fromBinary(ListJobsRequestSchema, bytes);
    const isWithin = findPassedBound(ListJobsRequestSchema, bytes).kind === "within";
    sizes[isWithin ? "within" : "passed"] += 1;
    // Entries count as they are sent, repeated keys too.
    const sent = parts.flat().length;
    assert.equal(isWithin, sent <= 64);
    assert.ok(!isWithin || (filter?.phases.length ?? 0) <= 64);
  });
  fc.assert(law, { numRuns: 200, seed: 1 });
  assert.ok(sizes.within > 10 && sizes.passed > 10, JSON.stringify(sizes));
});

test("whatever bytes are sent, a message that is within its limits has no list or map beyond them", () => {
  const seed = toBinary(
    CreateJobRequestSchema,
    fromBinary(CreateJobRequestSchema, wrapped(labelsPlace(), [...entries(60)])),
  );
  const places = fc.array(fc.tuple(fc.nat(seed.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 6 });
  fc.assert(
    fc.property(places, fc.integer({ min: 1, max: 4 }), (changes, times) => {
      const bytes = Buffer.from(seed);
      for (const [at, byte] of changes) bytes[at] = byte;
      const sent = Buffer.concat(Array.from({ length: times }, () => bytes));
      if (findPassedBound(CreateJobRequestSchema, sent).kind !== "within") return;
      const message = decoded(sent);
      assert.ok(Object.keys(message?.job?.metadata?.labels ?? {}).length <= 64);
    }),
    { numRuns: 2_000, seed: 2 },
  );
});

test("JSON is limited in depth, in values, and in bytes, wherever it stands", () => {
  const deep = (depth: number): unknown => (depth === 1 ? {} : { a: deep(depth - 1) });
  const refused = (kindSpec: unknown) => {
    const bytes = toBinary(CreateJobRequestSchema, withSpecMessage(kindSpec));
    const outcome = findPassedBound(CreateJobRequestSchema, bytes);
    return outcome.kind === "passed" ? `${outcome.note.field} ${outcome.note.message}` : outcome.kind;
  };
  assert.equal(refused(deep(32)), "within");
  assert.equal(refused(deep(33)), "job.spec.kind_spec must not have more than 32 lists and objects within each other");
  assert.equal(refused({ list: many(19_998).map(() => null) }), "within");
  assert.equal(
    refused({ list: many(20_000).map(() => null) }),
    "job.spec.kind_spec must have at most 20000 values in all",
  );
  assert.equal(refused({ a: "x".repeat(2 ** 20 - 1) }), "within");
  assert.match(refused({ a: "x".repeat(2 ** 20) }), /must have at most 1048576 bytes of keys and texts in all/);
});

test("a request has a limit for all its values together", () => {
  const unknown = Buffer.alloc((REQUEST_VALUES_MAX + 1) * 2, Uint8Array.of(0x78, 1));
  const within = unknown.subarray(0, REQUEST_VALUES_MAX * 2);
  assert.equal(findPassedBound(ListJobsRequestSchema, within).kind, "within");
  assert.equal(findPassedBound(ListJobsRequestSchema, unknown).kind, "passed");
});

test("a packed list that claims more bytes than there are costs nothing", () => {
  const claims = Uint8Array.of(0x0a, 6, 0x22, 0xff, 0xff, 0xff, 0xff, 0x0f);
  assert.equal(findPassedBound(ListJobsRequestSchema, claims).kind, "within");
});

/** The fields of all requests that can be large, once for each chain of messages without a repetition. */
function allPlaces(): readonly Place[] {
  const below = (method: DescMethod, schema: DescMessage, chain: readonly DescField[]): Place[] =>
    schema.fields.flatMap((field) => {
      const bounds = boundsOf(schema).get(field.number) as FieldBounds;
      const place = { method, chain: [...chain, field], bounds };
      const { message } = field;
      if (bounds.content !== null || message === undefined || chain.some((one) => one.message === message))
        return [place];
      return [place, ...below(method, message, place.chain)];
    });
  return SERVICES.flatMap(({ methods }) => methods.flatMap((method) => below(method, method.input, [])));
}

type Edge = { readonly at: readonly Uint8Array[]; readonly beyond: readonly Uint8Array[]; readonly path: string };

/** What the last field of a place holds at its limits, and one beyond. */
function edgesOf({ chain, bounds }: Place): readonly Edge[] {
  const path = chain.map((field, at) => pathStep(field, at === chain.length - 1)).join(".");
  const { kind, form, itemsMax, bytesMax, keyBytesMax, key, content } = bounds;
  if (content !== null) {
    if (bounds.message?.typeName !== "google.protobuf.Struct") return [];
    const entry = (length: number) => [lengthDelimited(1, lengthDelimited(1, text("x".repeat(length))))];
    return [{ at: entry(content.maxBytes), beyond: entry(content.maxBytes + 1), path }];
  }
  const edges: Edge[] = [];
  const isText = form === "text";
  if (kind === "one" && isText) edges.push({ at: [filled(bytesMax)], beyond: [filled(bytesMax + 1)], path });
  if (kind === "list") {
    const items = (count: number) => many(count).map(() => (form === "varint" ? Uint8Array.of(0) : new Uint8Array()));
    edges.push({ at: items(itemsMax), beyond: items(itemsMax + 1), path });
    if (isText) edges.push({ at: [filled(bytesMax)], beyond: [filled(bytesMax + 1)], path: `${path}[0]` });
  }
  if (kind === "map") {
    edges.push({ at: [...entries(itemsMax)], beyond: [...entries(itemsMax + 1)], path });
    if (key === "text") edges.push({ at: [keyOf(keyBytesMax)], beyond: [keyOf(keyBytesMax + 1)], path });
    const value = (length: number) => [
      Buffer.concat([lengthDelimited(1, text("a")), lengthDelimited(2, filled(length))]),
    ];
    if (isText) edges.push({ at: value(bytesMax), beyond: value(bytesMax + 1), path: `${path}[a]` });
  }
  return edges;
}

function pathStep({ name, fieldKind }: DescField, isLast: boolean): string {
  if (isLast) return name;
  if (fieldKind === "list") return `${name}[0]`;
  return fieldKind === "map" ? `${name}[a]` : name;
}

function* entries(count: number): Iterable<Uint8Array> {
  for (let at = 0; at < count; at += 1) yield lengthDelimited(1, text(`k${at}`));
}

function keyOf(length: number): Uint8Array {
  return lengthDelimited(1, filled(length));
}

/** A request with these values of the place's last field. */
function wrapped({ chain }: Pick<Place, "chain">, values: readonly Uint8Array[]): Uint8Array {
  const last = chain.at(-1) as DescField;
  const inner = Buffer.concat(values.map((value) => lengthDelimited(last.number, value)));
  return chain.slice(0, -1).reduceRight<Uint8Array>((bytes, field) => {
    const value = field.fieldKind === "map" ? mapEntry(bytes) : bytes;
    return lengthDelimited(field.number, value);
  }, inner);
}

function mapEntry(value: Uint8Array): Uint8Array {
  return Buffer.concat([lengthDelimited(1, text("a")), lengthDelimited(2, value)]);
}

function labelsPlace(): Pick<Place, "chain"> {
  const found = allPlaces().find(({ method, bounds }) => method.name === "CreateJob" && bounds.name === "labels");
  assert.ok(found);
  return found;
}

function lengthDelimited(number: number, bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(bytes).finish();
}

function text(value: string): Uint8Array {
  return Buffer.from(value);
}

function filled(length: number): Uint8Array {
  return Buffer.alloc(length, "x");
}

function decoded(bytes: Uint8Array) {
  try {
    return fromBinary(CreateJobRequestSchema, bytes);
  } catch {
    return null;
  }
}

function withSpecMessage(kindSpec: unknown) {
  return create(CreateJobRequestSchema, { job: { spec: { kindSpec: kindSpec as JsonObject } } });
}

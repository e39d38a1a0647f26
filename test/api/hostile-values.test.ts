import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, type DescField, type DescMessage, type DescMethod, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import type { Client, ServiceError } from "@grpc/grpc-js";
import { SERVICES } from "../../src/api/services.ts";
import { BatchCreateJobsResponseSchema, JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { BadRequestSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { type Refusal, readRefusal, startFixture } from "./fixture.ts";
import { sendRaw } from "./send-raw.ts";

/** A field somewhere in a request, and how to make a request that sets only this field. */
type Place = {
  readonly method: DescMethod;
  readonly path: string;
  readonly type: string;
  readonly request: (value: unknown) => object;
};

const places = [...SERVICES, Health]
  .flatMap(({ methods }) => methods as readonly DescMethod[])
  .flatMap((method) => placesOf(method, method.input, "", (value) => value as object));

function placesOf(method: DescMethod, schema: DescMessage, path: string, wrap: Place["request"]): readonly Place[] {
  return schema.fields.flatMap((field) => {
    const set = (value: unknown) =>
      wrap(field.oneof ? { [field.oneof.localName]: { case: field.localName, value } } : { [field.localName]: value });
    const at = path === "" ? field.name : `${path}.${field.name}`;
    if (field.fieldKind === "list") return within(method, field, `${at}[0]`, (value) => set([value]));
    if (field.fieldKind === "map") {
      const key = { method, path: at, type: "key", request: (name: unknown) => set({ [String(name)]: {} }) };
      const value = within(method, field, `${at}[k]`, (item) => set({ k: item }));
      return field.message === undefined ? value : [key, ...value];
    }
    return within(method, field, at, set);
  });
}

function within(method: DescMethod, field: DescField, path: string, request: Place["request"]): readonly Place[] {
  const { message } = field;
  if (message === undefined || message.typeName.startsWith("google.protobuf.")) {
    const type = message?.typeName ?? `scalar ${field.scalar}`;
    return [{ method, path, type, request }];
  }
  return placesOf(method, message, path, request);
}

const placesWith = (type: string) => places.filter((place) => place.type === type);
const STRING = "scalar 9";
const INT64 = "scalar 3";

function make(place: Place, value: unknown) {
  return create(place.method.input, place.request(value) as never);
}

/** The field as the handler of an item of a batch names it. */
const fieldOf = ({ path }: Place) => path.replace(/^requests\[0\]\./, "");

/** Sends bytes to the method of a place, and returns the code and the fields of its answer. */
async function fixture(t: TestContext) {
  const { client, internal } = await startFixture(t);
  const refusalOf = async ({ method }: Place, bytes: Uint8Array) => {
    const answer = await answerOf(client, method, bytes);
    assert.deepEqual(internal, []);
    return answer;
  };
  return { refusalOf };
}

type Answer = { readonly code: string; readonly fields: readonly string[] };

function answerOf(client: Client, method: DescMethod, bytes: Uint8Array): Promise<Answer> {
  const path = `/${method.parent.typeName}/${method.name}`;
  const same = (sent: Uint8Array) => Buffer.from(sent);
  const refused = (error: ServiceError) => answer(readRefusal(error));
  return new Promise((resolve) => {
    if (method.methodKind === "unary") {
      client.makeUnaryRequest(
        path,
        same,
        (received: Buffer) => received,
        bytes,
        (error, response) => {
          resolve(error ? refused(error) : itemAnswer(method, response ?? Buffer.alloc(0)));
        },
      );
      return;
    }
    const stream = client.makeServerStreamRequest(path, same, (received: Buffer) => received, bytes);
    stream.on("error", (error) => resolve(refused(error as ServiceError)));
    stream.on("data", () => {
      resolve({ code: "OK", fields: [] });
      stream.cancel();
    });
  });
}

function answer({ code, fields }: Refusal): Answer {
  return { code, fields: fields.map(({ field }) => field) };
}

/** The answer to the only item of a batch of jobs; of other methods: OK. */
function itemAnswer(method: DescMethod, response: Buffer): Answer {
  if (method !== JobService.method.batchCreateJobs) return { code: "OK", fields: [] };
  const [item] = fromBinary(BatchCreateJobsResponseSchema, response).results;
  if (item?.result.case !== "error") return { code: "OK", fields: [] };
  const [fields] = item.result.value.details.flatMap((any) => anyUnpack(any, BadRequestSchema) ?? []);
  return { code: "INVALID_ARGUMENT", fields: fields?.fieldViolations.map(({ field }) => field) ?? [] };
}

function replaced(bytes: Uint8Array, text: string, by: readonly number[]): Uint8Array {
  return replacedBytes(bytes, [...Buffer.from(text)], by);
}

function replacedBytes(bytes: Uint8Array, part: readonly number[], by: readonly number[]): Uint8Array {
  const at = Buffer.from(bytes).indexOf(Buffer.from(part));
  assert.ok(at >= 0 && part.length === by.length);
  return new Uint8Array([...bytes.slice(0, at), ...by, ...bytes.slice(at + part.length)]);
}

const DURATIONS = {
  "nanos beyond a second": { seconds: 1n, nanos: -1_000_000_000 },
  "nanos of the other sign": { seconds: 1n, nanos: -1 },
  "seconds of the other sign": { seconds: -1n, nanos: 1 },
  "a second in nanos": { seconds: 0n, nanos: 1_000_000_000 },
  "more than 10,000 years": { seconds: 315_576_000_001n, nanos: 0 },
  "as many seconds as an int64 has": { seconds: 2n ** 63n - 1n, nanos: 999_999_999 },
  "the least int64": { seconds: -(2n ** 63n), nanos: 0 },
};
const TIMESTAMPS = {
  "a second before the year 1": { seconds: -62_135_596_801n, nanos: 0 },
  "the year 10000": { seconds: 253_402_300_800n, nanos: 0 },
  "negative nanos": { seconds: 1n, nanos: -1 },
  "a second in nanos": { seconds: 1n, nanos: 1_000_000_000 },
};

test("every duration and timestamp of every request is checked as its definition says", async (t) => {
  const { refusalOf } = await fixture(t);
  const check = async (place: Place, name: string, value: unknown) => {
    const { code, fields } = await refusalOf(place, toBinary(place.method.input, make(place, value)));
    const what = `${place.method.name} ${place.path}: ${name}`;
    assert.equal(code, "INVALID_ARGUMENT", what);
    assert.ok(fields.includes(fieldOf(place)), `${what}: ${fields}`);
  };
  const durations = placesWith("google.protobuf.Duration");
  const timestamps = placesWith("google.protobuf.Timestamp");
  assert.ok(durations.length >= 8 && timestamps.length >= 8, `${durations.length} and ${timestamps.length} fields`);
  for (const place of durations) {
    for (const [name, value] of Object.entries(DURATIONS)) await check(place, name, value);
  }
  for (const place of timestamps) {
    for (const [name, value] of Object.entries(TIMESTAMPS)) await check(place, name, value);
  }
});

test("a lease that is no duration does not make tokens that never lapse", async (t) => {
  const { call, resources } = await startFixture(t);
  const { method } = ResourceManager;
  await call(method.registerResourceQuota, { resourceNamespace: "pool", quota: 1n });
  const before = resources.pools.get("pool");
  const defaultLease = { seconds: 1n, nanos: -1_000_000_000 };
  const { error } = await call(method.registerResourceQuota, { resourceNamespace: "pool", quota: 1n, defaultLease });
  assert.deepEqual([error?.code, error?.fields[0]?.field], ["INVALID_ARGUMENT", "default_lease"]);
  assert.deepEqual(resources.pools.get("pool"), before);
});

test("every text of every request is refused if the database cannot store it", async (t) => {
  const { refusalOf } = await fixture(t);
  const texts = placesWith(STRING);
  assert.ok(texts.length > 80, `${texts.length} fields`);
  for (const place of [...texts, ...placesWith("key")]) {
    const bytes = toBinary(place.method.input, make(place, "aaaa"));
    const nul = await refusalOf(place, toBinary(place.method.input, make(place, "a\0b")));
    assert.ok(nul.fields.includes(fieldOf(place)), `${place.method.name} ${place.path}: ${JSON.stringify(nul)}`);
    // No encoder of ours writes these bytes: a lone surrogate, and bytes that are never part of UTF-8.
    for (const bad of [
      [0x61, 0xed, 0xa0, 0x80],
      [0xff, 0xfe, 0x61, 0x61],
      [0x61, 0x61, 0x61, 0xc3],
    ]) {
      const { code, fields } = await refusalOf(place, replaced(bytes, "aaaa", bad));
      assert.equal(code, "INVALID_ARGUMENT", `${place.method.name} ${place.path}`);
      assert.deepEqual(fields, [place.path], `${place.method.name} ${place.path}`);
    }
  }
});

test("every whole number of every request fits a JavaScript number, or is refused", async (t) => {
  const { refusalOf } = await fixture(t);
  for (const place of placesWith(INT64)) {
    for (const value of [2n ** 53n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n)]) {
      const { code, fields } = await refusalOf(place, toBinary(place.method.input, make(place, value)));
      assert.equal(code, "INVALID_ARGUMENT", `${place.method.name} ${place.path} ${value}`);
      assert.ok(fields.includes(fieldOf(place)), `${place.method.name} ${place.path} ${value}: ${fields}`);
    }
  }
});

test("every Struct of every request is checked: its texts, its numbers, and that each value is one", async (t) => {
  const { refusalOf } = await fixture(t);
  const structs = placesWith("google.protobuf.Struct");
  assert.ok(structs.length >= 6, `${structs.length} fields`);
  for (const place of structs) {
    const send = (value: object) => refusalOf(place, toBinary(place.method.input, make(place, value)));
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, "a\0b"]) {
      const { fields } = await send({ a: { b: [0, bad] } });
      assert.ok(fields.includes(`${fieldOf(place)}.a.b[1]`), `${place.method.name} ${place.path}: ${fields}`);
    }
    const bytes = toBinary(place.method.input, make(place, { a: { b: [true, "aaaa"] } }));
    const text = await refusalOf(place, replaced(bytes, "aaaa", [0x61, 0xed, 0xa0, 0x80]));
    assert.deepEqual(text.fields, [`${place.path}.a.b[1]`]);
    // A boolean takes two bytes. As an unknown field, they leave a Value that has no kind.
    const none = await refusalOf(place, replacedBytes(bytes, [0x20, 1], [0x78, 1]));
    assert.deepEqual([none.code, none.fields], ["INVALID_ARGUMENT", [`${place.path}.a.b[0]`]]);
  }
});

test("a mask with a million paths is one wrong field", async (t) => {
  const { call } = await startFixture(t);
  const paths = Array.from({ length: 1_000_000 }, () => "a");
  const job = { metadata: { name: "a" }, spec: {} };
  const { error } = await call(JobService.method.updateJob, { job, updateMask: { paths } });
  assert.deepEqual([error?.code, error?.fields.map(({ field }) => field)], ["INVALID_ARGUMENT", ["update_mask"]]);
  assert.match(error!.message, /at most 128 values/);
});

test("health requests that do not decode, and long names of services, are the caller's mistake", async (t) => {
  const { call, sendBytes, stream, internal } = await startFixture(t);
  for (const bytes of [[0x0a, 0xff, 0x01], [0x0a, 2, 0xff, 0xff], [0x0b], [0x07]]) {
    const { error } = await sendBytes(Health.method.check, new Uint8Array(bytes));
    assert.equal(error?.code, "INVALID_ARGUMENT", String(bytes));
  }
  const long = await call(Health.method.check, { service: "x".repeat(1_000_000) });
  assert.equal(long.error?.code, "INVALID_ARGUMENT");
  const watching = stream(Health.method.watch, { service: "nothing" });
  watching.on("error", () => {});
  const first = await watching[Symbol.asyncIterator]().next();
  assert.equal(first.value?.status, Serving.SERVICE_UNKNOWN);
  const { ok } = await call(Health.method.list, {});
  assert.equal(ok?.statuses["gangway.v1.JobService"]?.status, Serving.SERVING);
  assert.deepEqual(internal, []);
});

test("a timeout or a compression that cannot be read is the caller's mistake, and nothing runs", async (t) => {
  const { api, store } = await startFixture(t);
  const timeout = await sendRaw(api.address, { "grpc-timeout": "soon" });
  assert.deepEqual([timeout.code, timeout.reason], ["INVALID_ARGUMENT", "UNDECODABLE_REQUEST"]);
  assert.match(timeout.message, /grpc-timeout/);
  const compression = await sendRaw(api.address, { "grpc-encoding": "gzip" }, 1);
  assert.deepEqual([compression.code, compression.reason], ["INVALID_ARGUMENT", "UNDECODABLE_REQUEST"]);
  const unknown = await sendRaw(api.address, { "grpc-encoding": "snappy" }, 1);
  assert.equal(unknown.code, "UNIMPLEMENTED");
  const bomb = await sendRaw(api.address, { "grpc-encoding": "gzip" }, 1, gzipSync(Buffer.alloc(64 * 1024 * 1024)));
  assert.equal(bomb.code, "RESOURCE_EXHAUSTED");
  assert.equal(store.jobs.size, 0);
});

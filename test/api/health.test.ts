import assert from "node:assert/strict";
import { test } from "node:test";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { startFixture } from "./fixture.ts";

const { check, watch, list } = Health.method;
/** A field of type string that says it has five bytes, and has one. */
const CUT = new Uint8Array([0x0a, 0x05, 0x61]);

test("a health check that does not decode is INVALID_ARGUMENT", async (t) => {
  const { sendBytes } = await startFixture(t);
  for (const { error } of [await sendBytes(check, CUT), await sendBytes(list, CUT)]) {
    assert.deepEqual([error?.code, error?.reason], ["INVALID_ARGUMENT", "UNDECODABLE_REQUEST"]);
  }
});

test("the error about an unknown service stays short, however long the name is", async (t) => {
  const { call } = await startFixture(t);
  const { error } = await call(check, { service: "é".repeat(2_000) });
  assert.deepEqual([error?.code, error?.reason], ["NOT_FOUND", "SERVICE_NOT_FOUND"]);
  assert.ok(error !== null && error.message.length <= 512 && error.detailBytes <= 4096);
});

test("a watch of an unknown service tells so and stays open", async (t) => {
  const { stream, api } = await startFixture(t);
  const watching = stream(watch, { service: "nothing" });
  watching.on("error", () => {});
  const known = stream(watch, { service: "gangway.v1.JobService" });
  known.on("error", () => {});
  const [unknownStatuses, statuses] = [watching[Symbol.asyncIterator](), known[Symbol.asyncIterator]()];
  assert.equal((await unknownStatuses.next()).value?.status, Serving.SERVICE_UNKNOWN);
  assert.equal((await statuses.next()).value?.status, Serving.SERVING);
  api.drain();
  assert.equal((await statuses.next()).value?.status, Serving.NOT_SERVING);
  watching.cancel();
  known.cancel();
});

test("the list of health has the server and every service", async (t) => {
  const { call } = await startFixture(t);
  const { ok } = await call(list, {});
  const names = Object.keys(ok?.statuses ?? {});
  assert.ok(names.includes("") && names.includes("gangway.v1.ResourceManager"), names.join());
  assert.ok(Object.values(ok?.statuses ?? {}).every(({ status }) => status === Serving.SERVING));
});

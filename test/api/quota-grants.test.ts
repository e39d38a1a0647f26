import assert from "node:assert/strict";
import { test } from "node:test";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { startFixture } from "./fixture.ts";

const { createQueue, grantQuota, listQuotaGrants, revokeQuotaGrant } = QueueService.method;
const GRANT = { queue: "a", flavor: "gpu/h100", amount: 4n };

async function withQueue(t: Parameters<typeof startFixture>[0]) {
  const fixture = await startFixture(t);
  const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 1n }];
  await fixture.call(createQueue, { queue: { name: "a", quotas } });
  return fixture;
}

test("a grant ends at a time or after a duration, names its caller, and wakes the planner", async (t) => {
  const { call, woken } = await withQueue(t);
  const before = woken.planner;
  const until = timestampFromMs(Date.now() + 60_000);
  const made = await call(grantQuota, { ...GRANT, end: { case: "until", value: until }, reason: "deadline" });
  const { amount, actor, reason } = made.ok!.grant!;
  assert.deepEqual([amount, actor, reason, made.ok!.grant!.until], [4n, "anonymous", "deadline", until]);
  assert.equal(woken.planner, before + 1);
  const from = Date.now();
  const later = await call(grantQuota, { ...GRANT, end: { case: "duration", value: { seconds: 90n, nanos: 0 } } });
  assert.ok(timestampMs(later.ok!.grant!.until!) >= from + 90_000);
  assert.equal((await call(listQuotaGrants, { queue: "a" })).ok?.grants.length, 1);
  assert.equal((await call(revokeQuotaGrant, { queue: "a", flavor: "gpu/h100" })).error, null);
  assert.deepEqual((await call(listQuotaGrants, {})).ok?.grants, []);
});

test("a grant is refused with the field that is wrong, or what is missing", async (t) => {
  const { call } = await withQueue(t);
  const lasts = { case: "duration" as const, value: { seconds: 60n, nanos: 0 } };
  const past = { case: "until" as const, value: timestampFromMs(Date.now() - 1) };
  const far = { case: "duration" as const, value: { seconds: 367n * 86_400n, nanos: 0 } };
  const refused = async (changes: object) => {
    const { error } = await call(grantQuota, { ...GRANT, end: lasts, ...changes });
    return [error?.code, error?.precondition || error?.resource];
  };
  assert.deepEqual((await refused({ end: past }))[0], "INVALID_ARGUMENT");
  assert.deepEqual((await refused({ end: far }))[0], "INVALID_ARGUMENT");
  assert.deepEqual((await refused({ end: { case: undefined } }))[0], "INVALID_ARGUMENT");
  const { error } = await call(grantQuota, { ...GRANT, end: { case: undefined } });
  assert.match(error?.fields[0]?.description ?? "", /^exactly one of these fields is required: until, duration$/);
  assert.deepEqual((await refused({ amount: 0n }))[0], "INVALID_ARGUMENT");
  assert.deepEqual(await refused({ queue: "nobody" }), ["NOT_FOUND", "nobody"]);
  assert.deepEqual(await refused({ flavor: "gpu/none" }), ["FAILED_PRECONDITION", "NO_QUOTA"]);
  const revoked = await call(revokeQuotaGrant, { queue: "a", flavor: "gpu/h100" });
  assert.deepEqual([revoked.error?.code, revoked.error?.resource], ["NOT_FOUND", "gpu/h100 of queue a"]);
});

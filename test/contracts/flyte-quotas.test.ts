/** Flyte's resource manager, name by name, through the API. `test/api/flyte.test.ts` plays whole histories of it. */
import type { TestContext } from "node:test";
import {
  AllocationStatus,
  AllocationStatusSchema,
  ReleaseOutcome,
  ResourceManager,
} from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { startFixture } from "../api/fixture.ts";
import { absent, row, walk } from "./walk.ts";

const { method } = ResourceManager;
const { GRANTED, EXHAUSTED, NAMESPACE_QUOTA_EXCEEDED } = AllocationStatus;
const POOL = "ex:default_cluster";

/** A pool as Flyte registers it: by name and quota. */
async function flyte(t: TestContext, quota = 2n) {
  const { call } = await startFixture(t);
  const made = await call(method.registerResourceQuota, { resourceNamespace: POOL, quota });
  const allocate = async (allocationToken: string, more: object = {}) =>
    (
      await call(method.allocateResource, {
        resourceNamespace: POOL,
        allocationToken,
        project: "team",
        namespace: "prod",
        ...more,
      })
    ).ok;
  const release = async (allocationToken: string) =>
    (await call(method.releaseResource, { resourceNamespace: POOL, allocationToken })).ok?.outcome;
  return { call, allocate, release, pool: made.ok?.pool };
}

const capped = (scope: "projectScope" | "namespaceScope", value: bigint) => ({
  resourceConstraints: { [scope]: { value } },
});

walk(
  "flyteplugins-core",
  [
    row("AllocationStatus", "an answer has a status", () => [GRANTED, EXHAUSTED, NAMESPACE_QUOTA_EXCEEDED], [1, 2, 3]),
    row(
      "AllocationUndefined",
      "an error is no status: the call fails",
      async (t) => {
        const { call } = await flyte(t);
        const { error } = await call(method.allocateResource, { resourceNamespace: "ex:none", allocationToken: "a" });
        return error?.code;
      },
      "NOT_FOUND",
    ),
    row(
      "AllocationStatusGranted",
      "there is room",
      async (t) => (await (await flyte(t)).allocate("a"))?.status,
      GRANTED,
    ),
    row(
      "AllocationStatusExhausted",
      "the pool is full",
      async (t) => (await (await flyte(t, 0n)).allocate("a"))?.status,
      EXHAUSTED,
    ),
    row(
      "AllocationStatusNamespaceQuotaExceeded",
      "the part of a namespace is used up",
      async (t) => {
        const { allocate } = await flyte(t);
        await allocate("a");
        return (await allocate("b", capped("namespaceScope", 1n)))?.status;
      },
      NAMESPACE_QUOTA_EXCEEDED,
    ),
    row(
      "AllocationStatusString",
      "a status is an enum of the API, by name",
      () => [GRANTED, EXHAUSTED].map((status) => AllocationStatusSchema.value[status]?.name),
      ["ALLOCATION_STATUS_GRANTED", "ALLOCATION_STATUS_EXHAUSTED"],
    ),
    ...absent("AllocationStatusValues", "IsAAllocationStatus"),
    row(
      "ResourceConstraint",
      "a cap counts the request itself",
      async (t) => {
        const { allocate } = await flyte(t);
        return (await allocate("a", capped("projectScope", 0n)))?.status;
      },
      NAMESPACE_QUOTA_EXCEEDED,
    ),
    row(
      "ResourceConstraintsSpec",
      "a scope without a cap constrains nothing",
      async (t) => {
        const { allocate } = await flyte(t);
        await allocate("a");
        return (await allocate("b", { resourceConstraints: {} }))?.status;
      },
      GRANTED,
    ),
    row(
      "ResourceManager",
      "a token that is released makes room",
      async (t) => {
        const { allocate, release } = await flyte(t, 1n);
        await allocate("a");
        await release("a");
        return (await allocate("b"))?.status;
      },
      GRANTED,
    ),
    ...absent("GetID"),
    row(
      "AllocateResource",
      "repeating it grants the same token, and shortens no lease",
      async (t) => {
        const { allocate } = await flyte(t);
        const lease = (seconds: bigint) => ({ lease: { seconds, nanos: 0 } });
        const first = await allocate("a", lease(3_600n));
        const again = await allocate("a", lease(1n));
        const other = await allocate("b");
        const otherAgain = await allocate("b", lease(1n));
        const isShorter = Number(again?.expireTime?.seconds ?? 0n) < Number(first?.expireTime?.seconds) - 60;
        return [again?.held, again?.fence === first?.fence, isShorter, other?.expireTime, otherAgain?.expireTime];
      },
      [true, true, false, undefined, undefined],
    ),
    row(
      "ReleaseResource",
      "a token that nobody holds is released with success",
      async (t) => {
        const { allocate, release } = await flyte(t);
        await allocate("a");
        return [await release("a"), await release("a")];
      },
      [ReleaseOutcome.RELEASED, ReleaseOutcome.NOT_HELD],
    ),
    row("ResourceNamespace", "it is the name of the pool", async (t) => (await flyte(t)).pool?.name, POOL),
    row(
      "CreateSubNamespace",
      "parts are joined by a colon",
      async (t) => {
        const { call } = await flyte(t);
        const made = await call(method.registerResourceQuota, { resourceNamespace: `${POOL}:sub`, quota: 1n });
        return made.ok?.pool?.name;
      },
      `${POOL}:sub`,
    ),
    row("ResourceRegistrar", "a pool is there once it is registered", async (t) => (await flyte(t)).pool?.version, 1n),
    row(
      "RegisterResourceQuota",
      "by name and quota: tokens are held until they are released",
      async (t) => {
        const { pool, allocate } = await flyte(t);
        return [pool?.quota, pool?.defaultLease?.seconds, (await allocate("a"))?.expireTime];
      },
      [2n, 0n, undefined],
    ),
  ],
  /^(Allocation|IsAAllocation|Resource|CreateSubNamespace|RegisterResource)/,
);

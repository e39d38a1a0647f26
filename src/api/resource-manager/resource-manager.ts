import type { ResourceManager as Service } from "../../gen/gangway/v1/resource_manager_pb.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { allocate, batchAllocate } from "./allocate.ts";
import { deletePool, freezePool, getPool, listAllocations, listPools, registerPool } from "./pools.ts";
import { forceRelease, reconcileQuota } from "./quota-admin.ts";
import type { TokenOperations } from "./quota-ports.ts";
import { batchRelease, release, renew } from "./release-and-renew.ts";
import { waitForResource } from "./wait-for-resource.ts";

export function resourceManager({
  resources,
}: {
  readonly resources: TokenOperations;
}): ServiceHandlers<typeof Service> {
  return {
    registerResourceQuota: (request, context) => registerPool(resources, request, context),
    allocateResource: (request, context) => allocate(resources, request, context),
    releaseResource: (request, context) => release(resources, request, context),
    batchAllocateResources: (request, context) => batchAllocate(resources, request, context),
    batchReleaseResources: (request, context) => batchRelease(resources, request, context),
    renewAllocations: (request, context) => renew(resources, request, context),
    waitForResource: (request, context) => waitForResource(resources, request, context),
    freezePool: ({ name, reason }, context) => freezePool(resources, { name, reason }, context),
    unfreezePool: ({ name }, context) => freezePool(resources, { name, reason: null }, context),
    deletePool: (request, context) => deletePool(resources, request, context),
    getPool: ({ name }) => getPool(resources, name),
    listPools: (request, context) => listPools(resources, request, context),
    listAllocations: (request, context) => listAllocations(resources, request, context),
    forceRelease: (request, context) => forceRelease(resources, request, context),
    reconcileQuota: (request, context) => reconcileQuota(resources, request, context),
  };
}

import type { ResourceManager as Service } from "../gen/gangway/v1/resource_manager_pb.ts";
import { allocate, batchAllocate } from "./allocate.ts";
import type { ServiceHandlers } from "./handler.ts";
import { getPool, listAllocations, listPools, registerPool } from "./pools.ts";
import { forceRelease, reconcileQuota } from "./quota-admin.ts";
import type { ResourceManager } from "./quota-ports.ts";
import { batchRelease, release, renew } from "./release-and-renew.ts";
import { waitForResource } from "./wait-for-resource.ts";

export type ResourcePorts = {
  readonly resources: ResourceManager;
  /** Called after a change that may let a gang go. */
  readonly wakePlanner: () => void;
};

export function resourceManager({ resources, wakePlanner }: ResourcePorts): ServiceHandlers<typeof Service> {
  const thenWake = async <T>(answer: Promise<T>): Promise<T> => {
    const response = await answer;
    wakePlanner();
    return response;
  };
  return {
    registerResourceQuota: (request, context) => thenWake(registerPool(resources, request, context)),
    allocateResource: (request, context) => allocate(resources, request, context),
    releaseResource: (request, context) => release(resources, request, context),
    batchAllocateResources: (request, context) => batchAllocate(resources, request, context),
    batchReleaseResources: (request, context) => batchRelease(resources, request, context),
    renewAllocations: (request, context) => renew(resources, request, context),
    waitForResource: (request, context) => waitForResource(resources, request, context),
    getPool: ({ name }) => getPool(resources, name),
    listPools: (request) => listPools(resources, request),
    listAllocations: (request) => listAllocations(resources, request),
    forceRelease: (request, context) => thenWake(forceRelease(resources, request, context)),
    reconcileQuota: (request, context) => thenWake(reconcileQuota(resources, request, context)),
  };
}

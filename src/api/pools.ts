import type {
  ListAllocationsRequest,
  ListPoolsRequest,
  RegisterResourceQuotaRequest,
  AllocationFilter as SentFilter,
} from "../gen/gangway/v1/resource_manager_pb.ts";
import type { CallContext } from "./call.ts";
import { changed, found } from "./change-outcome.ts";
import { durabilityFromProto, spanMs, toProtoAllocation, toProtoPool } from "./convert-quota.ts";
import { tooMany } from "./quota-errors.ts";
import type { AllocationFilter, PoolRecord, PoolSettings, RegisterOutcome, ResourceManager } from "./quota-ports.ts";
import { badPageToken, failedPrecondition, invalidFields, notFound } from "./rpc-error.ts";

const PAGE_SIZE_DEFAULT = 100;

/** Makes a pool or changes one. */
export async function registerPool(
  resources: ResourceManager,
  request: RegisterResourceQuotaRequest,
  { identity }: CallContext,
) {
  const settings = toSettings(request);
  const outcome = await resources.registerPool(settings, Number(request.version), identity);
  return { pool: toProtoPool(registered(outcome, settings.name)) };
}

/** Of two leases that are asked for together neither gives way; one that is asked for alone bounds the other, which stays as it can. */
function toSettings(request: RegisterResourceQuotaRequest): PoolSettings {
  const { quota = 0n, projectDefault, namespaceDefault, queue, domain, defaultLease, maxLease } = request;
  const longestMs = maxLease === undefined ? 0 : spanMs(maxLease);
  if (longestMs > 0 && defaultLease !== undefined && spanMs(defaultLease) > longestMs) {
    const message = `must not be longer than max_lease, which is ${longestMs / 1000}s`;
    throw invalidFields([{ field: "default_lease", message }]);
  }
  return {
    name: request.resourceNamespace,
    quota: Number(quota),
    projectDefault: projectDefault === undefined ? null : Number(projectDefault),
    namespaceDefault: namespaceDefault === undefined ? null : Number(namespaceDefault),
    queue: queue ?? null,
    domain: domain || null,
    defaultLeaseMs: defaultLease === undefined ? null : spanMs(defaultLease),
    maxLeaseMs: maxLease === undefined ? null : spanMs(maxLease),
    durability: durabilityFromProto(request.durability),
  };
}

function registered(outcome: RegisterOutcome, name: string): PoolRecord {
  switch (outcome.kind) {
    case "fixed": {
      const { field, is } = outcome;
      const description = `has ${field} ${is}, which is fixed since it was first registered`;
      throw failedPrecondition({ type: `${field.toUpperCase()}_FIXED`, subject: `pool ${name}`, description });
    }
    case "tooManyPools":
      throw tooMany("TOO_MANY_POOLS", {
        subject: "the service",
        description: `has ${outcome.poolsMax} pools, which is as many as there may be`,
      });
    case "unknownQueue":
      throw notFound({ type: "queue", name: outcome.name });
    default:
      return changed(outcome, { type: "pool", name });
  }
}

export async function getPool(resources: ResourceManager, name: string) {
  return { pool: toProtoPool(found(await resources.getPool(name), { type: "pool", name })) };
}

export async function listPools(resources: ResourceManager, { prefix, pageSize, pageToken }: ListPoolsRequest) {
  const page = await resources.listPools({ prefix, ...pageOf({ pageSize, pageToken }) });
  if (page === "badCursor") throw badPageToken();
  return { pools: page.pools.map(toProtoPool), nextPageToken: page.next ?? "" };
}

export async function listAllocations(resources: ResourceManager, request: ListAllocationsRequest) {
  const page = await resources.listAllocations({ filter: toFilter(request.filter), ...pageOf(request) });
  if (page === "badCursor") throw badPageToken();
  if (page === "noGrantTimes") {
    const message = "must be absent for a pool of durability REDIS, which does not keep when its tokens were granted";
    throw invalidFields([{ field: "filter.older_than", message }]);
  }
  return { allocations: page.allocations.map(toProtoAllocation), nextPageToken: page.next ?? "" };
}

function toFilter(filter: SentFilter | undefined): AllocationFilter {
  return {
    pool: filter?.pool || null,
    project: filter?.project || null,
    namespace: filter?.namespace || null,
    holder: filter?.holder || null,
    olderThanMs: filter?.olderThan === undefined ? null : spanMs(filter.olderThan),
  };
}

export function pageOf({ pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string }) {
  return { pageSize: pageSize || PAGE_SIZE_DEFAULT, after: pageToken || null };
}

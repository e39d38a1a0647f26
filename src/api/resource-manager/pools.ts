import type { AllocationFilter } from "../../core/quota/admin.ts";
import type { PoolRegistration, RegisterOutcome, ShownPool } from "../../core/quota/pools.ts";
import type {
  DeletePoolRequest,
  ListAllocationsRequest,
  ListPoolsRequest,
  RegisterResourceQuotaRequest,
  AllocationFilter as SentFilter,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { CallContext } from "../rpc/call.ts";
import { withoutHiddenUser } from "../rpc/hidden-user.ts";
import { badPageToken, failedPrecondition, invalidFields, notFound } from "../rpc/rpc-error.ts";
import { durabilityFromProto, spanMs, toProtoAllocation, toProtoPool } from "./convert-quota.ts";
import type { TokenOperations } from "./quota-ports.ts";

const PAGE_SIZE_DEFAULT = 100;

/** Creates or changes a pool. */
export async function registerPool(
  resources: TokenOperations,
  request: RegisterResourceQuotaRequest,
  { identity }: CallContext,
) {
  const registration = toRegistration(request);
  const outcome = await resources.registerPool(registration, Number(request.version), identity.subject);
  return { pool: toProtoPool(registered(outcome, registration.name)) };
}

/**
 * Refuses a default lease above the longest lease if the request sets both. If it sets only one, the store adapts the
 * other.
 */
function toRegistration(request: RegisterResourceQuotaRequest): PoolRegistration {
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

function registered(outcome: RegisterOutcome<ShownPool>, name: string): ShownPool {
  switch (outcome.kind) {
    case "fixed": {
      const { field, is } = outcome;
      const description = `has ${field} ${is}; the first registration fixed it, and no later one can change it`;
      throw failedPrecondition({ type: `${field.toUpperCase()}_FIXED`, subject: `pool ${name}`, description });
    }
    case "unknownQueue":
      throw notFound({ type: "queue", name: outcome.name });
    default:
      return changedRecord(outcome, { type: "pool", name });
  }
}

export async function deletePool(
  resources: TokenOperations,
  { name, version }: DeletePoolRequest,
  { identity, access }: CallContext,
) {
  const outcome = await resources.deletePool(name, Number(version), identity.subject);
  changedRecord(withoutHiddenUser(outcome, access), { type: "pool", name });
  return {};
}

/** Freezes a pool. A null reason ends the freeze. */
export async function freezePool(
  resources: TokenOperations,
  change: { readonly name: string; readonly reason: string | null },
  { identity }: CallContext,
) {
  const outcome = await resources.freezePool({ ...change, actor: identity.subject });
  return { pool: toProtoPool(changedRecord(outcome, { type: "pool", name: change.name })) };
}

export async function getPool(resources: TokenOperations, name: string) {
  return { pool: toProtoPool(existingRecord(await resources.getPool(name), { type: "pool", name })) };
}

export async function listPools(
  resources: TokenOperations,
  { prefix, pageSize, pageToken }: ListPoolsRequest,
  { access }: Pick<CallContext, "access">,
) {
  const within = access.pools("pools.get");
  const page = await resources.listPools({ prefix, within, ...pageOf({ pageSize, pageToken }) });
  if (page === "badCursor") throw badPageToken();
  return { pools: page.pools.map(toProtoPool), nextPageToken: page.next ?? "" };
}

/** Lists tokens of the pools whose tokens the caller may see, and its own. */
export async function listAllocations(
  resources: TokenOperations,
  request: ListAllocationsRequest,
  { access, identity }: Pick<CallContext, "access" | "identity">,
) {
  const pools = access.pools("tokens.get");
  const shown = pools === null ? null : { pools, holder: identity.subject };
  const page = await resources.listAllocations({ filter: { ...toFilter(request.filter), shown }, ...pageOf(request) });
  if (page === "badCursor") throw badPageToken();
  if (page === "noGrantTimes") {
    const message = "must be omitted for a pool of durability REDIS, which does not keep the times of grants";
    const field = request.filter?.neverLapses ? "filter.never_lapses" : "filter.older_than";
    throw invalidFields([{ field, message }]);
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
    neverLapses: filter?.neverLapses ?? false,
  };
}

export function pageOf({ pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string }) {
  return { pageSize: pageSize || PAGE_SIZE_DEFAULT, after: pageToken || null };
}

import type { AuditQuery } from "../../core/admin/audit.ts";
import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import type { AllocationQuery, ForcedRelease, PoolQuery, ReconcileRequest } from "../../core/quota/admin.ts";
import { AMOUNT_MAX } from "../../core/quota/allocations.ts";
import type {
  PoolChange,
  PoolFreeze,
  PoolRecord,
  PoolRegistration,
  RegisterOutcome,
  ShownPool,
} from "../../core/quota/pools.ts";
import type { AdminPorts } from "./admin-ports.ts";
import { deletePool } from "./delete-pool.ts";
import { forceRelease } from "./force-release.ts";
import { listAllocations } from "./list-allocations.ts";
import { withUse } from "./pool-use.ts";
import { reconcile } from "./reconcile.ts";

/** Pools and their tokens, as admins see and change them. */
export function createPoolAdmin(ports: AdminPorts) {
  const { store, wakePlanner } = ports;
  return {
    registerPool: (registration: PoolRegistration, version: number, actor: string) =>
      registerPool(ports, registration, { version, actor }),
    deletePool: (name: string, version: number, actor: string) => deletePool(ports, name, { version, actor }),
    freezePool: (change: PoolFreeze) => freezePool(ports, change),
    getPool: async (name: string) => {
      const stored = await store.get(name);
      return stored === null ? null : ((await withUse(ports, [stored]))[0] ?? null);
    },
    listPools: async (query: PoolQuery) => {
      const page = await store.list(query);
      return page === "badCursor" ? page : { pools: await withUse(ports, page.pools), next: page.next };
    },
    listAllocations: (query: AllocationQuery) => listAllocations(ports, query),
    forceRelease: async (forced: ForcedRelease) => {
      const answer = await forceRelease(ports, forced);
      if (answer.kind === "released") wakePlanner();
      return answer;
    },
    reconcile: async (request: ReconcileRequest) => {
      const answer = await reconcile(ports, request);
      if ("repaired" in answer && answer.repaired) wakePlanner();
      return answer;
    },
    listAudit: (query: AuditQuery) => store.listAudit(query),
  };
}

/** The ledger enforces the new limits at once. The answer waits until the counters have them, if they are there. */
async function registerPool(
  ports: AdminPorts,
  registration: PoolRegistration,
  by: { readonly version: number; readonly actor: string },
): Promise<RegisterOutcome<ShownPool>> {
  const outcome = await ports.store.register(changeOf(registration), by);
  ports.cache.forget(registration.name);
  return outcome.kind === "done" ? { kind: "done", record: await followUp(ports, outcome.record) } : outcome;
}

/** As for a registration. Counters of durability REDIS that are away meanwhile get the freeze a second later. */
async function freezePool(ports: AdminPorts, change: PoolFreeze): Promise<ChangeOutcome<ShownPool>> {
  const outcome = await ports.store.freeze(change);
  return outcome.kind === "done" ? { kind: "done", record: await followUp(ports, outcome.record) } : outcome;
}

/** Gives the counters the new limits of a pool. It is changed, so counters that are away now are no error. */
async function followUp(ports: AdminPorts, record: PoolRecord): Promise<ShownPool> {
  await ports.limitChanges.changed(record);
  const [shown] = await withUse(ports, [record]).catch(() => []);
  return shown ?? { ...record, waiters: 0 };
}

function changeOf(registration: PoolRegistration): PoolChange {
  const { name, quota, queue, domain, durability } = registration;
  return {
    name,
    quota: nullFor(AMOUNT_MAX, quota),
    projectDefault: nullFor(AMOUNT_MAX, registration.projectDefault),
    namespaceDefault: nullFor(AMOUNT_MAX, registration.namespaceDefault),
    queue: nullFor("", queue),
    domain: domain ?? undefined,
    defaultLeaseMs: nullFor(0, registration.defaultLeaseMs),
    maxLeaseMs: nullFor(0, registration.maxLeaseMs),
    durability: durability ?? undefined,
  };
}

/** Returns null for the value that means "none", and undefined if no value is given. */
function nullFor<T>(none: T, value: T | null): T | null | undefined {
  return value === none ? null : (value ?? undefined);
}

import { AMOUNT_MAX } from "../../core/quota/lines.ts";
import type { AdminPorts } from "./admin-ports.ts";
import { type Forced, forceRelease } from "./force-release.ts";
import { type AllocationQuery, listAllocations } from "./list-allocations.ts";
import { withLive } from "./live-use.ts";
import type { Page, PoolChange } from "./ports.ts";
import { tellLimits } from "./push-limits.ts";
import { type ReconcileRequest, reconcile } from "./reconcile.ts";

/** What registering a pool sets; null: as it is, or a new pool's own. */
export type PoolWishes = {
  readonly name: string;
  readonly quota: number | null;
  /** `AMOUNT_MAX` lifts it; so of the namespace's. */
  readonly projectDefault: number | null;
  readonly namespaceDefault: number | null;
  /** Empty: none. */
  readonly queue: string | null;
  readonly domain: string | null;
  /** 0: tokens do not lapse. */
  readonly defaultLeaseMs: number | null;
  /** 0: any. */
  readonly maxLeaseMs: number | null;
  readonly durability: "LEDGER" | "REDIS" | null;
};

/** Pools and what is held of them, as admins see and change them. */
export function createPoolAdmin(ports: AdminPorts) {
  const { store } = ports;
  return {
    registerPool: (wishes: PoolWishes, version: number, actor: string) =>
      registerPool(ports, wishes, { version, actor }),
    getPool: async (name: string) => {
      const stored = await store.get(name);
      return stored === null ? null : ((await withLive(ports, [stored]))[0] ?? null);
    },
    listPools: async (query: Page & { readonly prefix: string }) => {
      const page = await store.list(query);
      return page === "badCursor" ? page : { pools: await withLive(ports, page.pools), next: page.next };
    },
    listAllocations: (query: AllocationQuery) => listAllocations(ports, query),
    forceRelease: (forced: Forced) => forceRelease(ports, forced),
    reconcile: (request: ReconcileRequest) => reconcile(ports, request),
    listAudit: (query: Page & { readonly filter: AuditFilter }) => {
      const { actor, action, subject } = query.filter;
      return store.listAudit({
        ...query,
        filter: { actor: actor ?? "", action: action ?? "", subject: subject ?? "" },
      });
    },
  };
}

type AuditFilter = {
  readonly actor: string | null;
  readonly action: string | null;
  readonly subject: string | null;
};

/** The ledger's limits hold at once; the counters are told before the answer, where they are there. */
async function registerPool(ports: AdminPorts, wishes: PoolWishes, by: { version: number; actor: string }) {
  const outcome = await ports.store.register(changeOf(wishes), by);
  ports.facts.forget(wishes.name);
  if (outcome.kind !== "done") return outcome;
  const { record } = outcome;
  await tellLimits(ports, record);
  ports.onPoolChanged();
  // Registered: what the counters cannot say now is no reason to say otherwise.
  const [shown] = await withLive(ports, [record]).catch(() => [{ ...record, waiters: 0 }]);
  return { kind: "done" as const, record: shown ?? { ...record, waiters: 0 } };
}

function changeOf(wishes: PoolWishes): PoolChange {
  const { name, quota, queue, domain, durability } = wishes;
  return {
    name,
    quota: quota ?? undefined,
    projectDefault: unless(AMOUNT_MAX, wishes.projectDefault),
    namespaceDefault: unless(AMOUNT_MAX, wishes.namespaceDefault),
    queue: unless("", queue),
    domain: domain ?? undefined,
    defaultLeaseMs: unless(0, wishes.defaultLeaseMs),
    maxLeaseMs: unless(0, wishes.maxLeaseMs),
    durability: durability ?? undefined,
  };
}

/** What is wished: null for the word that stands for none, undefined where nothing is. */
function unless<T>(none: T, wished: T | null): T | null | undefined {
  return wished === none ? null : (wished ?? undefined);
}

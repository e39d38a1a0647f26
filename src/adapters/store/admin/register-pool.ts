/** Serves admins and plugins that register pools: which settings change, what is refused, and the audit entry. */
import {
  type PoolChange,
  type PoolRecord,
  type PoolSettings,
  type RegisterOutcome,
  UNCHANGED,
} from "../../../core/quota/pools.ts";
import { type Db, type Executor, onlyRow, storable, undoable } from "../db/db.ts";
import { QUEUES_DOMAIN, raiseLimitsVersion, takeDomain } from "../ledger/quota-domains.ts";
import { appendAudit } from "./audit.ts";
import { getPool } from "./list-pools.ts";
import { keepQueue } from "./queues.ts";

/** A pool of the store, before the counters add its waiters. */
type StoredOutcome = RegisterOutcome<PoolRecord>;

const HOUR_MS = 3_600_000;
const FIRST: Omit<PoolSettings, "name"> = {
  quota: null,
  projectDefault: null,
  namespaceDefault: null,
  queue: null,
  domain: QUEUES_DOMAIN,
  defaultLeaseMs: HOUR_MS,
  maxLeaseMs: null,
  durability: "LEDGER",
};

/**
 * Makes a pool or changes one, if it is at `version` (0: whatever it is at), and notes in the same transaction who did
 * so. Its limits hold for the ledger from this transaction on; one below use takes nothing away. Settings that change
 * nothing leave no trace. A default lease above the longest one is the longest one.
 */
export function registerPool(
  db: Db,
  change: PoolChange,
  by: { readonly version: number; readonly actor: string; readonly poolsMax: number; readonly nowMs: number },
): Promise<StoredOutcome> {
  const { nowMs, poolsMax } = by;
  return undoable<StoredOutcome>(db, async (tx, undo) => {
    // Queues are locked before domains.
    if (typeof change.queue === "string") await keepQueue(tx, change.queue);
    const domain = await takeDomainOf(tx, change);
    const before = await getPool(tx, change.name);
    const settings = resolved(change, before);
    const refused =
      versionRefusal(before, by.version) ??
      fixedRefusal(change, settings, before) ??
      (await missing(tx, { settings, before, poolsMax }));
    if (refused !== null) return undo(refused);
    if (before !== null && isSame(before, settings)) return { kind: "done", record: before };
    const { name, quota, projectDefault, namespaceDefault, queue, defaultLeaseMs, maxLeaseMs, durability } = settings;
    await tx.query(WRITE_POOL, [
      name,
      domain,
      durability,
      quota,
      projectDefault,
      namespaceDefault,
      queue,
      defaultLeaseMs,
      maxLeaseMs,
      nowMs,
    ]);
    await raiseLimitsVersion(tx, domain);
    await appendAudit(tx, {
      timeMs: nowMs,
      actor: by.actor,
      action: "RegisterResourceQuota",
      subject: name,
      reason: "",
      details: { before: before && resolved({ ...UNCHANGED, name }, before), after: settings },
    });
    const record = await getPool(tx, name);
    if (record === null) throw new Error(`pool ${name} is gone in the transaction that wrote it`);
    return { kind: "done", record };
  });
}

/**
 * Takes the domain that the pool is in, or will be, and returns its name. Registrations follow each other by the domain
 * that is always there.
 */
async function takeDomainOf(tx: Executor, change: PoolChange): Promise<string> {
  await takeDomain(tx, QUEUES_DOMAIN);
  await tx.query(ENSURE_DOMAIN, [change.domain ?? QUEUES_DOMAIN]);
  const rows = await tx.query<{ name: string }>(TAKE_DOMAIN_OF, [change.name, change.domain ?? QUEUES_DOMAIN]);
  return onlyRow(rows).name;
}

const ENSURE_DOMAIN = `
insert into quota_domains (name, epoch) values ($1, 0)
on conflict (name) do nothing`;

const TAKE_DOMAIN_OF = `
select name from quota_domains
 where name = coalesce((select domain from pools where name = $1), $2)
   for no key update`;

function resolved(change: PoolChange, before: PoolRecord | null): PoolSettings {
  const kept = before ?? FIRST;
  const defaultLeaseMs = given(change.defaultLeaseMs, kept.defaultLeaseMs);
  const maxLeaseMs = given(change.maxLeaseMs, kept.maxLeaseMs);
  return {
    name: change.name,
    quota: given(change.quota, kept.quota),
    projectDefault: given(change.projectDefault, kept.projectDefault),
    namespaceDefault: given(change.namespaceDefault, kept.namespaceDefault),
    queue: given(change.queue, kept.queue),
    domain: given(change.domain, kept.domain),
    defaultLeaseMs:
      defaultLeaseMs === null || maxLeaseMs === null ? defaultLeaseMs : Math.min(defaultLeaseMs, maxLeaseMs),
    maxLeaseMs,
    durability: given(change.durability, kept.durability),
  };
}

function given<T>(wanted: T | undefined, otherwise: T): T {
  return wanted === undefined ? otherwise : wanted;
}

function isSame(before: PoolRecord, settings: PoolSettings): boolean {
  return (Object.keys(settings) as (keyof PoolSettings)[]).every((field) => before[field] === settings[field]);
}

function versionRefusal(before: PoolRecord | null, version: number): StoredOutcome | null {
  if (version === 0) return null;
  if (before === null) return { kind: "notFound" };
  return before.version === version ? null : { kind: "stale" };
}

function fixedRefusal(change: PoolChange, settings: PoolSettings, before: PoolRecord | null): StoredOutcome | null {
  for (const field of ["domain", "durability"] as const) {
    if (before !== null && (change[field] ?? before[field]) !== before[field]) {
      return { kind: "fixed", field, is: before[field] };
    }
    if (settings.queue !== null && settings[field] !== FIRST[field]) {
      return { kind: "fixed", field, is: before?.[field] ?? FIRST[field] };
    }
  }
  return null;
}

async function missing(
  tx: Executor,
  of: {
    readonly settings: PoolSettings;
    readonly before: PoolRecord | null;
    readonly poolsMax: number;
  },
): Promise<StoredOutcome | null> {
  const { settings, before, poolsMax } = of;
  const [facts] = await tx.query<{ queue: boolean; pools: number }>(FACTS, [storable(settings.queue ?? "")]);
  if (settings.queue !== null && facts?.queue !== true) return { kind: "unknownQueue", name: settings.queue };
  if (before === null && (facts?.pools ?? 0) >= poolsMax) return { kind: "tooManyPools", poolsMax };
  return null;
}

const FACTS = `
select exists (select from queues where name = $1) as queue,
       (select count(*) from pools) as pools`;

const WRITE_POOL = `
insert into pools as p (
  name, domain, durability, quota, project_default, namespace_default, queue,
  default_lease_ms, max_lease_ms, create_ms, update_ms
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
on conflict (name) do update
   set quota = excluded.quota,
       project_default = excluded.project_default, namespace_default = excluded.namespace_default,
       queue = excluded.queue, default_lease_ms = excluded.default_lease_ms, max_lease_ms = excluded.max_lease_ms,
       version = p.version + 1, update_ms = excluded.update_ms`;

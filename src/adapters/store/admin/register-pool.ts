/** Serves admins and plugins that register pools: which settings change, what is refused, and the audit entry. */
import {
  type PoolChange,
  type PoolRecord,
  type PoolSettings,
  type RegisterOutcome,
  UNCHANGED,
} from "../../../core/quota/pools.ts";
import { type Db, type Executor, onlyRow, storable, undoable } from "../db/db.ts";
import { QUEUES_DOMAIN, takeDomain } from "../ledger/quota-domains.ts";
import { auditParams, INSERT_AUDIT } from "./audit.ts";
import { getPool, SELECT_POOLS } from "./list-pools.ts";
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
 * nothing leave no trace. A default lease above the longest one is the longest one. Tokens of a new pool of which only
 * the quota is given do not lapse, as in Flyte.
 */
export function registerPool(
  db: Db,
  change: PoolChange,
  by: { readonly version: number; readonly actor: string; readonly poolsMax: number; readonly nowMs: number },
): Promise<StoredOutcome> {
  const { nowMs, poolsMax } = by;
  return undoable<StoredOutcome>(db, async (tx, undo) => {
    // Queues are locked before domains. No queue has an empty name. One that is made from here on is not known.
    const knowsQueue = (await keepQueue(tx, change.queue ?? "")) || change.queue == null;
    // Registrations follow each other by the domain that is always there.
    await takeDomain(tx, QUEUES_DOMAIN);
    const { before, pools } = await readFacts(tx, change.name);
    const settings = resolved(change, before);
    const refused =
      versionRefusal(before, by.version) ??
      fixedRefusal(change, settings, before) ??
      missing(settings, { knowsQueue, isFull: before === null && pools >= poolsMax, poolsMax });
    if (refused !== null) return undo(refused);
    if (before !== null && isSame(before, settings)) return { kind: "done", record: before };
    await writePool(tx, settings, { before, actor: by.actor, nowMs });
    const record = await getPool(tx, change.name);
    if (record === null) throw new Error(`pool ${change.name} is gone in the transaction that wrote it`);
    return { kind: "done", record };
  });
}

/** A pool before its change, and the number of pools. */
type Facts = { readonly before: PoolRecord | null; readonly pools: number };

async function readFacts(tx: Executor, name: string): Promise<Facts> {
  return onlyRow(await tx.query<Facts>(FACTS, [storable(name)]));
}

const FACTS = `
select (select row_to_json(p) from (${SELECT_POOLS} where p.name = $1) p) as before,
       (select count(*) from pools) as pools`;

/** A registration as in Flyte: of a pool's settings it gives the quota alone. */
function isPlain({ name: _name, quota: _quota, ...others }: PoolChange): boolean {
  return Object.values(others).every((setting) => setting === undefined);
}

function resolved(change: PoolChange, before: PoolRecord | null): PoolSettings {
  const kept = before ?? (isPlain(change) ? { ...FIRST, defaultLeaseMs: null } : FIRST);
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

function missing(
  { queue }: PoolSettings,
  of: { readonly knowsQueue: boolean; readonly isFull: boolean; readonly poolsMax: number },
): StoredOutcome | null {
  if (queue !== null && !of.knowsQueue) return { kind: "unknownQueue", name: queue };
  return of.isFull ? { kind: "tooManyPools", poolsMax: of.poolsMax } : null;
}

/** Writes a pool, the version of its domain's limits, and the audit entry. */
async function writePool(
  tx: Executor,
  settings: PoolSettings,
  { before, actor, nowMs }: { readonly before: PoolRecord | null; readonly actor: string; readonly nowMs: number },
): Promise<void> {
  const { name, quota, projectDefault, namespaceDefault, queue, defaultLeaseMs, maxLeaseMs, durability } = settings;
  const details = { before: before && resolved({ ...UNCHANGED, name }, before), after: settings };
  await tx.query(WRITE_POOL, [
    ...auditParams(tx, { timeMs: nowMs, actor, action: "RegisterResourceQuota", subject: name, details }),
    name,
    settings.domain,
    durability,
    quota,
    projectDefault,
    namespaceDefault,
    queue,
    defaultLeaseMs,
    maxLeaseMs,
    nowMs,
  ]);
}

/** The pool is written after its domain, which may be new. */
const WRITE_POOL = `
with raised as (
  insert into quota_domains as d (name, epoch, limits_version) values ($13, 0, 1)
  on conflict (name) do update set limits_version = d.limits_version + 1
  returning d.name
), noted as (${INSERT_AUDIT}
)
insert into pools as p (
  name, domain, durability, quota, project_default, namespace_default, queue,
  default_lease_ms, max_lease_ms, create_ms, update_ms
)
select $12, r.name, $14, $15::bigint, $16::bigint, $17::bigint, $18, $19::bigint, $20::bigint, $21::bigint, $21::bigint
  from raised r
on conflict (name) do update
   set quota = excluded.quota,
       project_default = excluded.project_default, namespace_default = excluded.namespace_default,
       queue = excluded.queue, default_lease_ms = excluded.default_lease_ms, max_lease_ms = excluded.max_lease_ms,
       version = p.version + 1, update_ms = excluded.update_ms`;

/**
 * Serves quota admins who raise a queue's quota for some time. A grant counts while its row is there. Its end is one
 * transaction with a new version of the limits, so counters and planners follow it as any change of limits. Until some
 * process has recorded it, the ledger alone already refuses what only the grant would allow.
 */
import type { QuotaGrant, QuotaGrantOutcome } from "../../../core/admin/quota-grant.ts";
import { AMOUNT_MAX } from "../../../core/quota/allocations.ts";
import { type Db, type Executor, storable } from "../db/db.ts";
import { QUEUES_DOMAIN, takeDomain } from "../ledger/quota-domains.ts";
import { appendAudit, auditParams, INSERT_AUDIT, SERVICE } from "./audit.ts";

/** Grants a quota, or replaces the queue's grant of the pool. One that is there as asked stays as it is. */
export function grantQuota(db: Db, grant: QuotaGrant): Promise<QuotaGrantOutcome> {
  return db.tx(async (tx) => {
    const found = await takeGrant(tx, grant);
    if (found === null) return { kind: "unknownQueue" };
    const { nominal, before } = found;
    if (nominal === null) return { kind: "noQuota" };
    if (grant.amount > AMOUNT_MAX - nominal) return { kind: "tooMuch", nominal };
    if (before?.amount === grant.amount && before.untilMs === grant.untilMs) return { kind: "done", grant: before };
    const noted = auditParams(tx, entryOf("GrantQuota", { before, after: grant }));
    await tx.query(WRITE_GRANT, [...noted, ...columnsOf(grant)]);
    return { kind: "done", grant };
  });
}

/** Ends a grant before its time. */
export function revokeGrant(
  db: Db,
  { queue, flavor, actor, nowMs }: { queue: string; flavor: string; actor: string; nowMs: number },
): Promise<QuotaGrantOutcome> {
  return db.tx(async (tx) => {
    const found = await takeGrant(tx, { queue, flavor });
    if (found === null) return { kind: "unknownQueue" };
    const { before } = found;
    if (before === null) return { kind: "noGrant" };
    const noted = auditParams(tx, { ...entryOf("RevokeQuotaGrant", { before, after: null }), actor, timeMs: nowMs });
    await tx.query(DELETE_GRANT, [...noted, storable(queue), storable(flavor)]);
    return { kind: "done", grant: before };
  });
}

type TakenGrant = { readonly nominal: number | null; readonly before: QuotaGrant | null };

/** Locks a queue and the domain. Null: the queue does not exist. */
async function takeGrant(tx: Executor, of: Pick<QuotaGrant, "queue" | "flavor">): Promise<TakenGrant | null> {
  const names = [storable(of.queue), storable(of.flavor)];
  const queues = await tx.query("select 1 from queues where name = $1 for no key update", [names[0]]);
  if (queues.length === 0) return null;
  await takeDomain(tx, QUEUES_DOMAIN);
  const [quota] = await tx.query<{ nominal: number }>(
    "select nominal from queue_quotas where queue = $1 and flavor = $2",
    names,
  );
  const [before] = await tx.query<QuotaGrant>(`${SELECT_GRANTS} where queue = $1 and flavor = $2`, names);
  return { nominal: quota?.nominal ?? null, before: before ?? null };
}

const SELECT_GRANTS = `
select queue, flavor, amount, until_ms as "untilMs", actor, reason, at_ms as "atMs" from quota_grants`;

type Change = { readonly before: QuotaGrant | null; readonly after: QuotaGrant | null };

function entryOf(action: "GrantQuota" | "RevokeQuotaGrant" | "EndQuotaGrant", { before, after }: Change) {
  const { queue = "", actor = "", reason = "", atMs = 0 } = after ?? before ?? {};
  const shown = (grant: QuotaGrant | null) =>
    grant && { pool: grant.flavor, amount: grant.amount, until: new Date(grant.untilMs).toISOString() };
  const details = { before: shown(before), after: shown(after) };
  return { timeMs: atMs, actor, action, subject: queue, reason: after === null ? "" : reason, details };
}

function columnsOf({ queue, flavor, amount, actor, reason, atMs, untilMs }: QuotaGrant): readonly unknown[] {
  return [storable(queue), storable(flavor), amount, storable(actor), storable(reason), atMs, untilMs];
}

const RAISE_LIMITS = "update quota_domains set limits_version = limits_version + 1 where name = 'default'";

const WRITE_GRANT = `
with raised as (${RAISE_LIMITS}
), noted as (${INSERT_AUDIT}
)
insert into quota_grants (queue, flavor, amount, actor, reason, at_ms, until_ms)
values ($12, $13, $14, $15, $16, $17, $18)
on conflict (queue, flavor) do update
   set amount = excluded.amount, actor = excluded.actor, reason = excluded.reason, at_ms = excluded.at_ms,
       until_ms = excluded.until_ms`;

const DELETE_GRANT = `
with raised as (${RAISE_LIMITS}
), noted as (${INSERT_AUDIT}
)
delete from quota_grants where queue = $12 and flavor = $13`;

/** Lists grants by queue and pool. Null: those of all queues. */
export function listGrants(executor: Executor, queue: string | null): Promise<readonly QuotaGrant[]> {
  const where = "where $1::text is null or queue = $1 order by queue, flavor";
  return executor.query<QuotaGrant>(`${SELECT_GRANTS} ${where}`, [queue === null ? null : storable(queue)]);
}

/** How many grants one transaction ends. The next call ends the others. */
const ENDED_MAX = 100;

/** Ends the grants whose time has come, and returns them. Any process may do so, at any time. */
export async function endGrants(db: Db, nowMs: number): Promise<readonly QuotaGrant[]> {
  return db.tx(async (tx) => {
    await takeDomain(tx, QUEUES_DOMAIN);
    const ended = await tx.query<QuotaGrant>(END_GRANTS, [nowMs, ENDED_MAX]);
    const noteOf = (before: QuotaGrant) => entryOf("EndQuotaGrant", { before, after: null });
    await appendAudit(tx, ...ended.map((before) => ({ ...noteOf(before), actor: SERVICE, timeMs: nowMs })));
    return ended;
  });
}

const END_GRANTS = `
with due as (
  select queue, flavor from quota_grants where until_ms <= $1 order by queue, flavor limit $2 for update
), ended as (
  delete from quota_grants where (queue, flavor) in (select queue, flavor from due)
  returning queue, flavor, amount, until_ms as "untilMs", actor, reason, at_ms as "atMs"
), raised as (
  update quota_domains set limits_version = limits_version + 1
   where name = 'default' and exists (select from ended)
)
select * from ended order by queue, flavor`;

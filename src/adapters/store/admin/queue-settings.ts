/** The settings of a queue, as rows keep them. */
import type { QueueRecord, QueueSettings } from "../../../core/admin/queue.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../core/plan/model/queue-policy.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import type { Executor } from "../db/db.ts";

/** All settings of a queue, each with its value. */
export type WholeSettings = Pick<
  QueueRecord,
  | "name"
  | "parent"
  | "strategy"
  | "stopPolicy"
  | "maxRunningJobs"
  | "maxWaitingJobs"
  | "policy"
  | "onClusterLost"
  | "quotas"
>;

/** A row with the columns of QUEUE_SETTINGS. */
export type SettingsRow = Omit<WholeSettings, "policy"> & { readonly policy: Partial<QueuePolicy> | null };

/** A row of queue_quotas with its grant, as a plan reads it. Omits what is null. */
const FLAVOR_QUOTA = `
json_strip_nulls(json_build_object(
  'flavor', flavor, 'resource', resource, 'nominal', nominal,
  'borrowingLimit', borrowing_limit, 'lendingLimit', lending_limit, 'granted', g.amount, 'grantedUntilMs', g.until_ms
))`;

/** The columns of the settings of `queues q`. */
export const QUEUE_SETTINGS = `
q.name, q.parent, q.strategy, q.stop_policy as "stopPolicy", q.max_running_jobs as "maxRunningJobs",
q.max_waiting_jobs as "maxWaitingJobs", q.policy, q.on_cluster_lost as "onClusterLost",
coalesce((
  select json_agg(${FLAVOR_QUOTA} order by position)
    from queue_quotas left join quota_grants g using (queue, flavor) where queue = q.name
), '[]') as quotas`;

/** The row with the whole policy. A part that the stored policy does not have has its default. */
export function withPolicy<Row extends SettingsRow>(row: Row): Omit<Row, "policy"> & { readonly policy: QueuePolicy } {
  return { ...row, policy: { ...DEFAULT_POLICY, ...row.policy } };
}

/** The policy as the column keeps it. Null: the default policy. */
export function policyJson(policy: QueuePolicy): string | null {
  const text = canonicalJson(policy);
  return text === canonicalJson(DEFAULT_POLICY) ? null : text;
}

/** The settings that a queue has after a change. Null: the change makes it. */
export function changedSettings(before: WholeSettings | null, change: QueueSettings): WholeSettings {
  const { name, parent = null, strategy, maxRunningJobs = null, maxWaitingJobs = null } = change;
  const { policy = DEFAULT_POLICY, onClusterLost = null, quotas } = change;
  const stopPolicy = change.stopPolicy ?? before?.stopPolicy ?? "NONE";
  return { name, parent, strategy, stopPolicy, maxRunningJobs, maxWaitingJobs, policy, onClusterLost, quotas };
}

export function isSameSettings(one: WholeSettings, other: WholeSettings): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

/** The settings of a queue that exists. Grants are none. */
export async function readSettings(tx: Executor, name: string): Promise<WholeSettings> {
  const [row] = await tx.query<SettingsRow>(READ_SETTINGS, [name]);
  if (row === undefined) throw new Error(`queue ${name} is gone in the transaction that has locked it`);
  const quotas = row.quotas.map(({ granted: _, grantedUntilMs: __, ...quota }) => quota);
  return withPolicy({ ...row, quotas });
}

const READ_SETTINGS = `select ${QUEUE_SETTINGS} from queues q where q.name = $1`;

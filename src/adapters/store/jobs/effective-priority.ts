/** The ageing of the queue in a row of `queues q`. SQL null: priorities of its jobs that wait do not grow. */
export const AGEING = "nullif(q.policy -> 'ageing', 'null'::jsonb)";

/** Since when a row of `jobs j` waits, as `waitsSinceMs` says. */
export const WAITS_SINCE = "coalesce((j.gang ->> 'waitsSinceMs')::bigint, j.create_ms)";

/** The effective priority of a row of `jobs j` in the queue of a row of `queues q`, as `effectivePriority` says. */
export function effectivePrioritySql(nowMs: string): string {
  return `
case when ${AGEING} is null then j.priority::bigint
     else greatest(j.priority::bigint, least(
       j.priority + (q.policy #>> '{ageing,limit}')::bigint,
       coalesce((select min(value) from priority_classes where value > j.priority)::bigint, 2147483648) - 1,
       j.priority + (q.policy #>> '{ageing,step}')::bigint * greatest(0,
         (${nowMs} - ${WAITS_SINCE})
           / (q.policy #>> '{ageing,intervalMs}')::bigint
       )))
 end`;
}

/** The fences of admissions: numbers that rise over all admissions of the installation. */
import type { Executor } from "../db/db.ts";
import { QUEUES_DOMAIN } from "./quota-domains.ts";

/** Takes that many fences, the lowest first. Those that are not used leave gaps. */
export async function takeFences(tx: Executor, count: number): Promise<readonly string[]> {
  if (count === 0) return [];
  const taken = await tx.query<{ fence: string }>(TAKE_FENCES, [count]);
  return taken.map(({ fence }) => fence);
}

/** A restore and a fail-over raise the epoch, so that fences rise although the sequence may go back. */
const fenceOf = (counter: string) => `(coalesce(d.epoch, 0) << 36 | ${counter})::text`;

const TAKE_FENCES = `
select ${fenceOf("nextval('admission_fences')")} as fence
  from generate_series(1, $1::int) left join quota_domains d on d.name = '${QUEUES_DOMAIN}'`;

/** SQL of the last fence that was taken. */
export const LAST_FENCE = `
select ${fenceOf("f.last_value")} from admission_fences f left join quota_domains d on d.name = '${QUEUES_DOMAIN}'`;

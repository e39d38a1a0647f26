import type { AskedUnder } from "../../core/quota/ledger.ts";
import { type Executor, json } from "./db.ts";

/**
 * Of grants and releases that workers ask for in the name of a job's admission, says which still count: whose bucket's lease is the present one
 * and whose admission has not released its tokens. Both stay so until the transaction ends: who takes the bucket or releases the tokens waits,
 * and so finds what was committed. To be asked before domains and pools are taken, in the order in which records take them.
 */
export async function takeLeases(tx: Executor, asked: readonly AskedUnder[]): Promise<(one: AskedUnder) => boolean> {
  const wanted = asked.flatMap(({ holder, lease }) =>
    holder?.kind === "admission" && lease !== undefined
      ? [{ jobUid: holder.jobUid, admission: holder.admission, ...lease }]
      : [],
  );
  const rows = wanted.length === 0 ? [] : await tx.query<Parameters<typeof keyOf>[0]>(TAKE, [json(wanted)]);
  const present = new Set(rows.map(keyOf));
  return ({ holder, lease }) =>
    lease === undefined || (holder?.kind === "admission" && present.has(keyOf({ ...holder, ...lease })));
}

function keyOf(of: {
  readonly jobUid: string;
  readonly admission: number;
  readonly bucket: number;
  readonly epoch: number;
}): string {
  return `${of.jobUid}/${of.admission}/${of.bucket}/${of.epoch}`;
}

const TAKE = `
select a.job_uid as "jobUid", a.number as admission, l.bucket, l.epoch
  from bucket_leases l, admissions a
 where a.tokens_released_ms is null
   and (a.job_uid, a.number, l.bucket, l.epoch) in (
         select "jobUid", admission, bucket, epoch
           from json_to_recordset($1::json) as w ("jobUid" uuid, admission int, bucket smallint, epoch bigint)
       )
 order by l.bucket, a.job_uid, a.number
   for key share of l for share of a`;

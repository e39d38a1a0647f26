import type { SharedTime } from "../../../runtime/decision-time.ts";
import { type Executor, onlyRow } from "../db/db.ts";
import type { LeaseEpoch } from "./leases.ts";

/** The lease of the one process that notes the correction. */
export const CLOCK_LEASE = "clock";

/** The database's clock, and what was noted of it. A part of the statements that read it. */
export const SHARED_TIME = `
(select json_build_object(
          'databaseMs', (extract(epoch from clock_timestamp()) * 1000)::bigint,
          'correctionMs', correction_ms,
          'notedMs', noted_ms)
   from decision_clock)`;

export type StartRead = SharedTime & {
  /** A process may hold the lease of the clock: no other has declared it dead yet. */
  readonly isHeld: boolean;
  /** Grows while any member lives. */
  readonly renewals: number;
};

/** Reads the time for a process that starts. */
export async function readTime(executor: Executor): Promise<StartRead> {
  type Row = { readonly time: SharedTime } & Omit<StartRead, keyof SharedTime>;
  const { time, isHeld, renewals } = onlyRow(await executor.query<Row>(READ, [CLOCK_LEASE]));
  return { ...time, isHeld, renewals };
}

const READ = `
select ${SHARED_TIME} as time,
       exists (select from leases join workers on workers.name = leases.holder where leases.name = $1) as "isHeld",
       (select coalesce(sum(counter), 0)::bigint from workers) as renewals`;

/** Notes the correction, unless another process holds the lease of the clock by now. */
export async function noteCorrection(
  executor: Executor,
  {
    epoch,
    correctionMs,
    notedMs,
  }: { readonly correctionMs: number; readonly notedMs: number } & Pick<LeaseEpoch, "epoch">,
): Promise<void> {
  await executor.query(NOTE, [CLOCK_LEASE, epoch, correctionMs, notedMs]);
}

const NOTE = `
with lease as (
  select 1 from leases where name = $1::text and epoch = $2::bigint for key share
)
update decision_clock set correction_ms = $3::bigint, noted_ms = $4::bigint where exists (select from lease)`;

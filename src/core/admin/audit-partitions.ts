/** Which partitions the audit log gets, and which it loses. */
import { maxOf } from "../../runtime/lists.ts";

/** A table that holds the entries of a range of time. */
export type AuditPartition = {
  readonly name: string;
  /** Its entries are older. Null: it takes the entries of times that have no partition. */
  readonly endMs: number | null;
};

/** From the first time on, before the second. */
export type TimeRange = { readonly fromMs: number; readonly endMs: number };

const DAY_MS = 86_400_000;
/**
 * A partition spans this part of the time that entries are kept. So an entry stays a twelfth longer at most, and a list
 * of entries looks into few partitions.
 */
const SPANS = 12;
/** Partitions are there so long before their time at least: processes may be away as long. */
const AHEAD_MS = 7 * DAY_MS;

/**
 * The next partition to be made. Null: there are enough. It begins where the last one ends, but a day from now at the
 * earliest: PostgreSQL refuses entries that are being written to the default partition while theirs is made.
 */
export function nextPartition(
  lastEndMs: number | null,
  { nowMs, keptMs }: { readonly nowMs: number; readonly keptMs: number },
): TimeRange | null {
  const spanMs = Math.ceil(keptMs / SPANS / DAY_MS) * DAY_MS;
  if (lastEndMs !== null && lastEndMs >= nowMs + Math.max(spanMs, AHEAD_MS)) return null;
  const fromMs = Math.max(lastEndMs ?? 0, dayAfter(nowMs + DAY_MS));
  return { fromMs, endMs: fromMs + spanMs };
}

/** The beginning of the next day, in UTC. */
export function dayAfter(timeMs: number): number {
  return (Math.floor(timeMs / DAY_MS) + 1) * DAY_MS;
}

/** The time at which the last partition ends. Null: only the default partition is left. */
export function lastEnd(partitions: readonly AuditPartition[]): number | null {
  const ends = partitions.flatMap(({ endMs }) => endMs ?? []);
  return ends.length === 0 ? null : maxOf(ends);
}

/** A partition whose entries are all older than the time. Null: there is none. */
export function outdatedPartition(partitions: readonly AuditPartition[], beforeMs: number): AuditPartition | null {
  return partitions.find(({ endMs }) => endMs !== null && endMs <= beforeMs) ?? null;
}

/** Logins of browsers. Each is found by the hash of its cookie's secret alone. */
import {
  type ClaimedSession,
  type NewSessionOutcome,
  SESSIONS_MAX,
  SESSIONS_OF_SUBJECT_MAX,
  type SessionRecord,
} from "../../../core/access/console-session.ts";
import { type Db, type Executor, json, onlyRow } from "../db/db.ts";

const COLUMNS = `id_hash as "idHash", subject, tokens, expires_ms as "expiresAtMs", renew_ms as "renewAtMs"`;

/**
 * Keeps a new session. Removes those that have expired, and the oldest of its subject beyond `SESSIONS_OF_SUBJECT_MAX`.
 * Sessions are made one after the other, so that each call counts those before it.
 */
export function makeSession(db: Db, session: SessionRecord, nowMs: number): Promise<NewSessionOutcome> {
  const { idHash, subject, tokens, expiresAtMs, renewAtMs } = session;
  return db.tx(async (tx) => {
    await tx.query(LOCK_SESSIONS);
    await deleteExpiredSessions(tx, nowMs);
    await tx.query(DELETE_OLDEST, [subject, SESSIONS_OF_SUBJECT_MAX - 1]);
    const { sessions } = onlyRow(await tx.query<{ readonly sessions: number }>(COUNT));
    if (sessions >= SESSIONS_MAX) return "full";
    await tx.query(MAKE, [idHash, subject, json(tokens), nowMs, expiresAtMs, renewAtMs]);
    return "made";
  });
}

const LOCK_SESSIONS = "select 1 from installation for no key update";

const DELETE_OLDEST = `
with oldest as (
  select id_hash from console_sessions where subject = $1 order by create_ms desc, id_hash offset $2::int
), locked as (
  select s.id_hash from console_sessions s join oldest using (id_hash) order by s.id_hash for update of s
)
delete from console_sessions s using locked where s.id_hash = locked.id_hash`;

const COUNT = "select count(*)::int as sessions from console_sessions";

const MAKE = `
insert into console_sessions (id_hash, subject, tokens, create_ms, expires_ms, renew_ms)
values ($1::text, $2::text, $3::json, $4::bigint, $5::bigint, $6::bigint)`;

/** Null: there is no such session, or it has expired. */
export async function findSession(executor: Executor, idHash: string, nowMs: number): Promise<SessionRecord | null> {
  const [session] = await executor.query<SessionRecord>(FIND, [idHash, nowMs]);
  return session ?? null;
}

const FIND = `select ${COLUMNS} from console_sessions where id_hash = $1 and expires_ms > $2::bigint`;

/** Returns the session that was deleted. Null: there is none, or none with this claim. `claimMs` null: any. */
export async function deleteSession(
  executor: Executor,
  idHash: string,
  claimMs: number | null = null,
): Promise<SessionRecord | null> {
  const [session] = await executor.query<SessionRecord>(DELETE, [idHash, claimMs]);
  return session ?? null;
}

const DELETE = `
delete from console_sessions where id_hash = $1 and ($2::bigint is null or claim_ms = $2::bigint)
returning ${COLUMNS}`;

/** Deletes sessions that have expired, but leaves those that another process deletes or renews at this moment. */
export async function deleteExpiredSessions(executor: Executor, nowMs: number): Promise<void> {
  await executor.query(DELETE_EXPIRED, [nowMs]);
}

const DELETE_EXPIRED = `
with expired as (
  select id_hash from console_sessions where expires_ms <= $1::bigint order by id_hash for update skip locked
)
delete from console_sessions s using expired where s.id_hash = expired.id_hash`;

/**
 * Returns at most `max` sessions that are due to be renewed. No other process gets them for `claimMs`, by the
 * database's clock. Whether they are due is a matter of the machine's clock, as their tokens are.
 */
export function claimDueSessions(
  executor: Executor,
  { nowMs, claimMs, max }: { readonly nowMs: number; readonly claimMs: number; readonly max: number },
): Promise<readonly ClaimedSession[]> {
  return executor.query<ClaimedSession>(CLAIM, [nowMs, claimMs, max]);
}

const CLAIM = `
with clock as (
  select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms
), due as (
  select id_hash from console_sessions, clock
   where renew_ms <= $1::bigint and expires_ms > $1::bigint and (claim_ms is null or claim_ms <= clock.ms)
   order by id_hash limit $3 for update of console_sessions skip locked
)
update console_sessions s set claim_ms = clock.ms + $2::bigint from due, clock where s.id_hash = due.id_hash
returning s.id_hash as "idHash", s.subject, s.tokens, s.expires_ms as "expiresAtMs", s.renew_ms as "renewAtMs",
  s.claim_ms as "claimMs"`;

/** Keeps renewed tokens, and gives the claim back. False: the session is gone, or another process has claimed it. */
export async function renewSession(
  executor: Executor,
  { idHash, tokens, expiresAtMs, renewAtMs }: Omit<SessionRecord, "subject">,
  claimMs: number,
): Promise<boolean> {
  const rows = await executor.query(RENEW, [idHash, json(tokens), expiresAtMs, renewAtMs, claimMs]);
  return rows.length > 0;
}

const RENEW = `
update console_sessions set tokens = $2::json, expires_ms = $3::bigint, renew_ms = $4::bigint, claim_ms = null
 where id_hash = $1 and claim_ms = $5::bigint
returning 1`;

import type { RobotOutcome, RobotPage, RobotToken } from "../../../core/access/robot.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { appendAudit } from "./audit.ts";

const COLUMNS = `
name, owner, create_ms as "createTimeMs", expires_ms as "expiresAtMs", last_use_ms as "lastUseMs",
revoked_ms as "revokedMs"`;

/** Keeps the hash of a new token. Callers at the same time may together exceed the maximum by a few. */
export function makeRobot(
  db: Db,
  { name, owner, expiresAtMs, hash }: Pick<RobotToken, "name" | "owner" | "expiresAtMs"> & { readonly hash: Buffer },
  { nowMs, max }: { readonly nowMs: number; readonly max: number },
): Promise<RobotOutcome> {
  return db.tx(async (tx) => {
    const params = [name, owner, nowMs, expiresAtMs, hash.toString("hex"), max];
    const [robot] = await tx.query<RobotToken>(MAKE, params);
    if (robot === undefined) {
      const { exists } = onlyRow(await tx.query<{ exists: boolean }>(EXISTS, [name]));
      return exists ? { kind: "exists" } : { kind: "full", max };
    }
    const details = { before: null, after: { owner, expiresAtMs } };
    await appendAudit(tx, { timeMs: nowMs, action: "CreateRobotToken", subject: name, details });
    return { kind: "made", robot };
  });
}

const MAKE = `
insert into robot_tokens (name, owner, create_ms, expires_ms, hash)
select $1::text, $2::text, $3::bigint, $4::bigint, $5::text
 where (select count(*) from robot_tokens where revoked_ms is null) < $6::bigint
on conflict (name) do nothing
returning ${COLUMNS}`;

const EXISTS = "select exists (select from robot_tokens where name = $1) as exists";

/** The robot of a token. Null: there is none. */
export async function findRobot(executor: Executor, hash: Buffer): Promise<RobotToken | null> {
  const [robot] = await executor.query<RobotToken>(FIND, [hash.toString("hex")]);
  return robot ?? null;
}

const FIND = `select ${COLUMNS} from robot_tokens where hash = $1`;

/** Records that the token of a robot was shown. */
export async function noteUse(executor: Executor, name: string, nowMs: number): Promise<void> {
  await executor.query(NOTE_USE, [name, nowMs]);
}

const NOTE_USE = `
update robot_tokens set last_use_ms = $2::bigint
 where name = $1 and (last_use_ms is null or last_use_ms < $2::bigint)`;

/** Ends a token for ever. Null: there is no such robot. Revoking again changes nothing. */
export function revokeRobot(db: Db, name: string, nowMs: number): Promise<RobotToken | null> {
  return db.tx(async (tx) => {
    const [robot] = await tx.query<RobotToken>(REVOKE, [name, nowMs]);
    if (robot === undefined) return (await tx.query<RobotToken>(GET, [name]))[0] ?? null;
    const details = { before: { owner: robot.owner, expiresAtMs: robot.expiresAtMs }, after: null };
    await appendAudit(tx, { timeMs: nowMs, action: "RevokeRobotToken", subject: name, details });
    return robot;
  });
}

const REVOKE = `
update robot_tokens set revoked_ms = $2::bigint
 where name = $1 and revoked_ms is null
returning ${COLUMNS}`;

const GET = `select ${COLUMNS} from robot_tokens where name = $1`;

/** A page by name, revoked robots included. Who read of credentials is in the audit log. */
export async function listRobots(
  db: Db,
  { after, pageSize }: { readonly after: string | null; readonly pageSize: number },
  nowMs: number,
): Promise<RobotPage | "badCursor"> {
  const key = after === null ? [null] : decodeCursor(after, ORDER, ["string"]);
  if (key === null) return "badCursor";
  const rows = await db.tx(async (tx) => {
    const read = await tx.query<RobotToken>(LIST, [key[0] ?? null, pageSize + 1]);
    const details = { robots: Math.min(read.length, pageSize) };
    await appendAudit(tx, { timeMs: nowMs, action: "ListRobotTokens", subject: "", details });
    return read;
  });
  const robots = rows.slice(0, pageSize);
  const last = robots.at(-1);
  return { robots, next: rows.length > pageSize && last !== undefined ? encodeCursor(ORDER, [last.name]) : null };
}

const ORDER = "robots";

const LIST = `
select ${COLUMNS} from robot_tokens
 where $1::text is null or name > $1::text
 order by name
 limit $2`;

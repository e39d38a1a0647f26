import type { RobotOutcome, RobotPage, RobotToken } from "../../../core/access/robot.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Executor, onlyRow } from "../db/db.ts";

const COLUMNS = `
name, owner, create_ms as "createTimeMs", expires_ms as "expiresAtMs", last_use_ms as "lastUseMs",
revoked_ms as "revokedMs"`;

/** Keeps the hash of a new token. Callers at the same time may together exceed the maximum by a few. */
export async function makeRobot(
  executor: Executor,
  { name, owner, expiresAtMs, hash }: Pick<RobotToken, "name" | "owner" | "expiresAtMs"> & { readonly hash: Buffer },
  { nowMs, max }: { readonly nowMs: number; readonly max: number },
): Promise<RobotOutcome> {
  const params = [name, owner, nowMs, expiresAtMs, hash.toString("hex"), max];
  const [robot] = await executor.query<RobotToken>(MAKE, params);
  if (robot !== undefined) return { kind: "made", robot };
  const { exists } = onlyRow(await executor.query<{ exists: boolean }>(EXISTS, [name]));
  return exists ? { kind: "exists" } : { kind: "full", max };
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
export async function revokeRobot(executor: Executor, name: string, nowMs: number): Promise<RobotToken | null> {
  const [robot] = await executor.query<RobotToken>(REVOKE, [name, nowMs]);
  return robot ?? null;
}

const REVOKE = `
update robot_tokens set revoked_ms = coalesce(revoked_ms, $2::bigint)
 where name = $1
returning ${COLUMNS}`;

/** A page by name, revoked robots included. */
export async function listRobots(
  executor: Executor,
  { after, pageSize }: { readonly after: string | null; readonly pageSize: number },
): Promise<RobotPage | "badCursor"> {
  const key = after === null ? [null] : decodeCursor(after, ORDER, ["string"]);
  if (key === null) return "badCursor";
  const rows = await executor.query<RobotToken>(LIST, [key[0] ?? null, pageSize + 1]);
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

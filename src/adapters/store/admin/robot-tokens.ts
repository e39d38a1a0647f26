import type { RobotBounds, RobotOutcome, RobotPage, RobotToken } from "../../../core/access/robot.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { appendAudit } from "./audit.ts";

const COLUMNS = `
name, owner, create_ms as "createTimeMs", expires_ms as "expiresAtMs", last_use_ms as "lastUseMs",
revoked_ms as "revokedMs"`;

/** Keeps the hash of a new token. Robots are made one after the other, so that each call counts those before it. */
export function makeRobot(
  db: Db,
  { name, owner, expiresAtMs, hash }: Pick<RobotToken, "name" | "owner" | "expiresAtMs"> & { readonly hash: Buffer },
  { nowMs, max, ownedMax }: RobotBounds & { readonly nowMs: number },
): Promise<RobotOutcome> {
  return db.tx(async (tx) => {
    await tx.query(LOCK);
    const { exists, all, owned } = onlyRow(await tx.query<Counted>(COUNT, [name, owner, nowMs]));
    if (exists) return { kind: "exists" };
    if (all >= max) return { kind: "full", max };
    if (ownedMax !== null && owned >= ownedMax) return { kind: "ownerFull", max: ownedMax };
    const params = [name, owner, nowMs, expiresAtMs, hash.toString("hex")];
    const robot = onlyRow(await tx.query<RobotToken>(MAKE, params));
    const details = { before: null, after: { owner, expiresAtMs } };
    await appendAudit(tx, { timeMs: nowMs, action: "CreateRobotToken", subject: name, details });
    return { kind: "made", robot };
  });
}

const MAKE = `
insert into robot_tokens (name, owner, create_ms, expires_ms, hash)
values ($1::text, $2::text, $3::bigint, $4::bigint, $5::text)
returning ${COLUMNS}`;

const LOCK = "select 1 from installation for no key update";

type Counted = { readonly exists: boolean; readonly all: number; readonly owned: number };

const COUNT = `
select count(*) filter (where name = $1::text) > 0 as exists,
       (count(*) filter (where revoked_ms is null))::int as all,
       (count(*) filter (where revoked_ms is null and owner = $2::text and expires_ms > $3::bigint))::int as owned
  from robot_tokens`;

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

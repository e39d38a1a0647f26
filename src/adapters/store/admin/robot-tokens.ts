import type {
  NewRobot,
  RobotBounds,
  RobotOutcome,
  RobotPage,
  RobotPageRequest,
  RobotScope,
  RobotToken,
} from "../../../core/access/robot.ts";
import { INSTALLATION } from "../../../core/access/scope.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { appendAudit } from "./audit.ts";
import { findFullTenant, lockRobots } from "./tenant-limits.ts";

const COLUMNS = `
name, owner, namespace, project, create_ms as "createTimeMs", expires_ms as "expiresAtMs", last_use_ms as "lastUseMs",
revoked_ms as "revokedMs"`;

/** The namespace with its project, or the project alone, that a robot belongs to. Both null: the installation. */
type Home = { readonly namespace: string | null; readonly project: string | null };
type Row = Omit<RobotToken, "scope"> & Home;

/**
 * Keeps the hash of a new token. Robots are made one after the other, so that each call counts those before it.
 * `nowMs`: the machine's clock, by which tokens expire. `auditMs`: the time of the entry of the audit log.
 */
export function makeRobot(
  db: Db,
  robot: NewRobot & { readonly expiresAtMs: number; readonly hash: Buffer },
  { nowMs, auditMs, max, ownedMax }: RobotBounds & { readonly nowMs: number; readonly auditMs: number },
): Promise<RobotOutcome> {
  const { name, owner, scope, expiresAtMs, hash } = robot;
  return db.tx(async (tx) => {
    const home = await homeOf(tx, scope);
    if (home === null) return { kind: "unknownNamespace" };
    await lockRobots(tx);
    const { exists, all, owned } = onlyRow(await tx.query<Counted>(COUNT, [name, owner, nowMs]));
    if (exists) return { kind: "exists" };
    if (all >= max) return { kind: "full", max };
    if (ownedMax !== null && owned >= ownedMax) return { kind: "ownerFull", max: ownedMax };
    const full = await findFullTenant(tx, home, nowMs);
    if (full !== null) return { kind: "tenantFull", ...full };
    const params = [name, owner, nowMs, expiresAtMs, hash.toString("hex"), home.namespace, home.project];
    const made = onlyRow(await tx.query<Row>(MAKE, params));
    await appendAudit(tx, {
      timeMs: auditMs,
      action: "CreateRobotToken",
      subject: name,
      details: { before: null, after: settingsOf(made) },
    });
    return { kind: "made", robot: toRobot(made) };
  });
}

/** Keeps others from deleting the namespace until the transaction ends. Null: it does not exist. */
async function homeOf(tx: Executor, { kind, name }: RobotScope): Promise<Home | null> {
  if (kind !== "namespace") return { namespace: null, project: kind === "project" ? name : null };
  const [found] = await tx.query<{ project: string }>(KEEP_NAMESPACE, [name]);
  return found === undefined ? null : { namespace: name, project: found.project };
}

const KEEP_NAMESPACE = "select project from namespaces where name = $1 for key share";

function toRobot({ namespace, project, ...robot }: Row): RobotToken {
  return { ...robot, scope: scopeOf({ namespace, project }) };
}

function scopeOf({ namespace, project }: Home): RobotScope {
  if (namespace !== null) return { kind: "namespace", name: namespace };
  return project === null ? { kind: "installation", name: INSTALLATION.name } : { kind: "project", name: project };
}

function settingsOf({ owner, expiresAtMs, namespace, project }: Row) {
  return { owner, expiresAtMs, namespace, project };
}

const MAKE = `
insert into robot_tokens (name, owner, create_ms, expires_ms, hash, namespace, project)
values ($1::text, $2::text, $3::bigint, $4::bigint, $5::text, $6::text, $7::text)
returning ${COLUMNS}`;

type Counted = { readonly exists: boolean; readonly all: number; readonly owned: number };

const COUNT = `
select count(*) filter (where name = $1::text) > 0 as exists,
       (count(*) filter (where revoked_ms is null))::int as all,
       (count(*) filter (where revoked_ms is null and owner = $2::text and expires_ms > $3::bigint))::int as owned
  from robot_tokens`;

/** The robot of a token. Null: there is none. */
export async function findRobot(executor: Executor, hash: Buffer): Promise<RobotToken | null> {
  const [robot] = await executor.query<Row>(FIND, [hash.toString("hex")]);
  return robot === undefined ? null : toRobot(robot);
}

const FIND = `select ${COLUMNS} from robot_tokens where hash = $1`;

/** Null: there is no such robot. */
export async function getRobot(executor: Executor, name: string): Promise<RobotToken | null> {
  const [robot] = await executor.query<Row>(GET, [name]);
  return robot === undefined ? null : toRobot(robot);
}

const GET = `select ${COLUMNS} from robot_tokens where name = $1`;

/** Records that the token of a robot was shown. */
export async function noteUse(executor: Executor, name: string, nowMs: number): Promise<void> {
  await executor.query(NOTE_USE, [name, nowMs]);
}

const NOTE_USE = `
update robot_tokens set last_use_ms = $2::bigint
 where name = $1 and (last_use_ms is null or last_use_ms < $2::bigint)`;

/** Ends a token for ever. Null: there is no such robot. Revoking again changes nothing. */
export function revokeRobot(
  db: Db,
  name: string,
  { nowMs, auditMs }: { readonly nowMs: number; readonly auditMs: number },
): Promise<RobotToken | null> {
  return db.tx(async (tx) => {
    const [robot] = await tx.query<Row>(REVOKE, [name, nowMs]);
    if (robot === undefined) return getRobot(tx, name);
    const details = { before: settingsOf(robot), after: null };
    await appendAudit(tx, { timeMs: auditMs, action: "RevokeRobotToken", subject: name, details });
    return toRobot(robot);
  });
}

const REVOKE = `
update robot_tokens set revoked_ms = $2::bigint
 where name = $1 and revoked_ms is null
returning ${COLUMNS}`;

/** A page by name, revoked robots included. Who read of credentials is in the audit log. */
export async function listRobots(
  db: Db,
  { after, pageSize, listed }: RobotPageRequest,
  nowMs: number,
): Promise<RobotPage | "badCursor"> {
  const key = after === null ? [null] : decodeCursor(after, ORDER, ["string"]);
  if (key === null) return "badCursor";
  const rows = await db.tx(async (tx) => {
    const params = [key[0] ?? null, pageSize + 1, listed?.namespaces ?? null, listed?.projects ?? null];
    const read = await tx.query<Row>(LIST, params);
    const details = { robots: Math.min(read.length, pageSize) };
    await appendAudit(tx, { timeMs: nowMs, action: "ListRobotTokens", subject: "", details });
    return read;
  });
  const robots = rows.slice(0, pageSize).map(toRobot);
  const last = robots.at(-1);
  return { robots, next: rows.length > pageSize && last !== undefined ? encodeCursor(ORDER, [last.name]) : null };
}

const ORDER = "robots";

const LIST = `
select ${COLUMNS} from robot_tokens
 where ($1::text is null or name > $1::text)
   and ($3::text[] is null or namespace = any($3::text[]) or namespace is null and project = any($4::text[]))
 order by name
 limit $2`;

/** Robots: callers that are no persons, each with one secret token of the service's own. */
import { type Authentication, identified, refusal } from "./identity.ts";

/**
 * Where a robot belongs. It says who may see and revoke the robot, and whose limits count its token. It gives the robot
 * no permission.
 */
export type RobotScope = { readonly kind: "installation" | "project" | "namespace"; readonly name: string };

/** What is kept of a robot's token. The secret itself is not. */
export type RobotToken = {
  readonly name: string;
  /** The subject of the caller that made it. */
  readonly owner: string;
  readonly scope: RobotScope;
  readonly createTimeMs: number;
  readonly expiresAtMs: number;
  /** When the token was last shown, to within a minute. Null: never. */
  readonly lastUseMs: number | null;
  /** Null: it was not revoked. */
  readonly revokedMs: number | null;
};

export type NewRobot = Pick<RobotToken, "name" | "owner" | "scope">;

/**
 * `exists`: a robot has or had the name. `full`: there are as many as there may be. `ownerFull`: as many of this owner
 * have tokens that count. `tenantFull`: as many of a namespace or a project have.
 */
export type RobotOutcome =
  | { readonly kind: "made"; readonly robot: RobotToken }
  | { readonly kind: "exists" }
  | { readonly kind: "full"; readonly max: number }
  | { readonly kind: "ownerFull"; readonly max: number }
  | { readonly kind: "tenantFull"; readonly tenant: RobotScope; readonly used: number; readonly max: number }
  | { readonly kind: "unknownNamespace" };

/** How many robots there may be, and how many with tokens that count of one owner. Null: any number. */
export type RobotBounds = { readonly max: number; readonly ownedMax: number | null };

/** The secret of a new robot is known at this moment alone. */
export type MadeRobot =
  | (Extract<RobotOutcome, { kind: "made" }> & { readonly secret: string })
  | Exclude<RobotOutcome, { kind: "made" }>;

export type RobotPage = { readonly robots: readonly RobotToken[]; readonly next: string | null };

/** Which robots a list has: those of these namespaces, and those that belong to these projects alone. Null: all. */
export type ListedRobots = { readonly namespaces: readonly string[]; readonly projects: readonly string[] } | null;

/** A page by name begins after the cursor. Null: at the first robot. */
export type RobotPageRequest = {
  readonly after: string | null;
  readonly pageSize: number;
  readonly listed: ListedRobots;
};

/** By this beginning, scanners of code find tokens that somebody has published. */
export const ROBOT_PREFIX = "gwt_";
/** 256 bits in base64url. */
export const ROBOT_TOKEN = /^gwt_[\w-]{43}$/;
/** Every one is looked up by an index; a list has pages. */
export const ROBOTS_MAX = 10_000;
/** A use is recorded at most this often. */
export const USE_MS = 60_000;

/** Who shows the token of this robot. Null: there is none. */
export function robotIdentity(robot: RobotToken | null, nowMs: number): Authentication {
  if (robot === null) return refusal("there is no robot with this token");
  const { name, expiresAtMs, revokedMs } = robot;
  if (revokedMs !== null) return refusal(`the token of robot ${name} was revoked`);
  if (nowMs >= expiresAtMs) return refusal(`the token of robot ${name} has expired`);
  return identified({ subject: `robot:${name}`, groups: [], method: "robot", issuer: "", expiresAtMs });
}

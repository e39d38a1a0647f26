/** The functions that the room needs of the rest of the process. */
import type {
  AccessChange,
  AccessDeletion,
  BindingRecord,
  JudgedBinding,
  NewBindingOutcome,
  NewRole,
  NewRoleOutcome,
  RoleRecord,
} from "../core/access/binding.ts";
import type { ClaimedSession, NewSessionOutcome, SessionRecord } from "../core/access/console-session.ts";
import type {
  NewRobot,
  RobotBounds,
  RobotOutcome,
  RobotPage,
  RobotPageRequest,
  RobotToken,
} from "../core/access/robot.ts";
import type { Directory } from "../core/access/scope.ts";

export type RobotStore = {
  readonly makeRobot: (
    robot: NewRobot & { readonly expiresAtMs: number; readonly hash: Buffer },
    bounds: RobotBounds & { readonly nowMs: number },
  ) => Promise<RobotOutcome>;
  readonly findRobot: (hash: Buffer) => Promise<RobotToken | null>;
  readonly noteUse: (name: string, nowMs: number) => Promise<void>;
  readonly revokeRobot: (name: string, nowMs: number) => Promise<RobotToken | null>;
  readonly getRobot: (name: string) => Promise<RobotToken | null>;
  readonly listRobots: (page: RobotPageRequest) => Promise<RobotPage | "badCursor">;
};

export type SessionStore = {
  readonly make: (session: SessionRecord, nowMs: number) => Promise<NewSessionOutcome>;
  readonly find: (idHash: string, nowMs: number) => Promise<SessionRecord | null>;
  /** Null: there was none. */
  readonly delete: (idHash: string) => Promise<SessionRecord | null>;
  readonly deleteExpired: (nowMs: number) => Promise<void>;
  /** False: it is gone, or another process has claimed it since. */
  readonly deleteClaimed: (session: Pick<ClaimedSession, "idHash" | "claimMs">) => Promise<boolean>;
  /** At most `max` sessions that are due to be renewed. No other process gets them for `claimMs`. */
  readonly claimDue: (due: {
    readonly nowMs: number;
    readonly claimMs: number;
    readonly max: number;
  }) => Promise<readonly ClaimedSession[]>;
  /** Keeps renewed tokens, and gives the claim back. False: it is gone, or another process has claimed it since. */
  readonly renew: (renewed: Omit<SessionRecord, "subject">, claimMs: number) => Promise<boolean>;
};

export type AccessStore = {
  /** Null: nothing has changed since the read with this stamp. */
  readonly readAccess: (stamp: string | null) => Promise<{
    readonly stamp: string;
    readonly roles: readonly RoleRecord[];
    readonly bindings: readonly BindingRecord[];
    readonly directory: Directory;
  } | null>;
  readonly createRole: (role: NewRole, by: AccessChange) => Promise<NewRoleOutcome>;
  readonly deleteRole: (role: AccessVersion, by: AccessChange) => Promise<AccessDeletion>;
  /** `unknownRole`: the store has no role of this name and version. */
  readonly createBinding: (binding: JudgedBinding, by: AccessChange) => Promise<NewBindingOutcome>;
  readonly deleteBinding: (binding: AccessVersion, by: AccessChange) => Promise<AccessDeletion>;
};

/** Version 0: any version. */
export type AccessVersion = { readonly name: string; readonly version: number };

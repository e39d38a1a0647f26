/** The functions that the room needs of the rest of the process. */
import type { RobotOutcome, RobotPage, RobotToken } from "../core/access/robot.ts";

export type RobotStore = {
  readonly makeRobot: (
    robot: Pick<RobotToken, "name" | "owner" | "expiresAtMs"> & { readonly hash: Buffer },
    bounds: { readonly nowMs: number; readonly max: number },
  ) => Promise<RobotOutcome>;
  readonly findRobot: (hash: Buffer) => Promise<RobotToken | null>;
  readonly noteUse: (name: string, nowMs: number) => Promise<void>;
  readonly revokeRobot: (name: string, nowMs: number) => Promise<RobotToken | null>;
  readonly listRobots: (page: {
    readonly after: string | null;
    readonly pageSize: number;
  }) => Promise<RobotPage | "badCursor">;
};

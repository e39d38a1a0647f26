/** Makes the tokens of robots, and verifies them. A secret is shown once, and kept as a hash alone. */
import { createHash } from "node:crypto";
import type { Authentication } from "../core/access/identity.ts";
import {
  type MadeRobot,
  type NewRobot,
  ROBOT_PREFIX,
  ROBOTS_MAX,
  robotIdentity,
  USE_MS,
} from "../core/access/robot.ts";
import type { Clock } from "../runtime/clock.ts";
import type { RobotStore } from "./ports.ts";

const SECRET_BYTES = 32;

export type RobotTokens = {
  /** Makes a robot with a token that expires after `ttlMs`. Nobody learns the secret again. */
  readonly make: (
    robot: NewRobot & {
      readonly ttlMs: number;
      /** How many robots of the owner may have tokens that count. Null: any number. */
      readonly ownedMax: number | null;
    },
  ) => Promise<MadeRobot>;
  readonly verify: (token: string) => Promise<Authentication>;
  readonly get: RobotStore["getRobot"];
  readonly list: RobotStore["listRobots"];
  readonly revoke: (name: string) => ReturnType<RobotStore["revokeRobot"]>;
};

export type RobotPorts = {
  readonly clock: Pick<Clock, "nowMs">;
  readonly store: RobotStore;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Called if the use of a token could not be recorded. The token counts all the same. */
  readonly onError: (error: unknown) => void;
};

export function createRobots({ clock, store, randomBytes, onError }: RobotPorts): RobotTokens {
  return {
    async make({ ttlMs, ownedMax, ...robot }) {
      const secret = ROBOT_PREFIX + Buffer.from(randomBytes(SECRET_BYTES)).toString("base64url");
      const nowMs = clock.nowMs();
      const made = { ...robot, expiresAtMs: nowMs + ttlMs, hash: hashOf(secret) };
      const outcome = await store.makeRobot(made, { nowMs, max: ROBOTS_MAX, ownedMax });
      return outcome.kind === "made" ? { ...outcome, secret } : outcome;
    },
    async verify(token) {
      const nowMs = clock.nowMs();
      const robot = await store.findRobot(hashOf(token));
      const answer = robotIdentity(robot, nowMs);
      if (robot !== null && answer.kind === "identity" && nowMs - (robot.lastUseMs ?? 0) > USE_MS) {
        store.noteUse(robot.name, nowMs).catch(onError);
      }
      return answer;
    },
    get: store.getRobot,
    list: store.listRobots,
    revoke: (name) => store.revokeRobot(name, clock.nowMs()),
  };
}

/** A secret of 256 random bits needs no slow hash. */
function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

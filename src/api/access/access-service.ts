import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { LimitCalls } from "../../core/access/call-limits.ts";
import type { RobotToken } from "../../core/access/robot.ts";
import type {
  AccessService,
  CreateRobotTokenRequest,
  ListRobotTokensRequest,
  RobotTokenSchema,
} from "../../gen/gangway/v1/access_service_pb.ts";
import { toTimestamp } from "../job/convert-job.ts";
import type { AccessAdmin, Robots } from "../ports.ts";
import { existingRecord, noRoomFor } from "../rpc/admin-outcome.ts";
import type { CallContext } from "../rpc/call.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { alreadyExists, badPageToken, tooMany } from "../rpc/rpc-error.ts";
import { rolesAndBindings } from "./roles-and-bindings.ts";

const PAGE_SIZE_DEFAULT = 100;
const TTL_MS_DEFAULT = 90 * 86_400_000;

export function accessService({
  robots,
  access,
  limits,
}: {
  readonly robots: Robots;
  readonly access: AccessAdmin;
  readonly limits: Pick<LimitCalls, "robotsOf">;
}): ServiceHandlers<typeof AccessService> {
  return {
    ...rolesAndBindings(access),
    whoAmI: async (_request, { identity: { subject, groups, method, issuer, expiresAtMs } }) => {
      const expires = expiresAtMs === null ? {} : { expireTime: timestampFromMs(expiresAtMs) };
      return { identity: { subject, groups: [...groups], method, issuer, ...expires } };
    },
    createRobotToken: (request, context) => createRobot({ robots, access, limits }, request, context),
    listRobotTokens: (request) => listRobots(robots, request),
    revokeRobotToken: async ({ name }) => ({
      robot: toProtoRobot(existingRecord(await robots.revoke(name), { type: "robot", name })),
    }),
  };
}

/** Who has a robot's token is that robot: it must not get more by it than it has. */
async function createRobot(
  {
    robots,
    access,
    limits,
  }: { readonly robots: Robots; readonly access: AccessAdmin; readonly limits: Pick<LimitCalls, "robotsOf"> },
  { name, ttl }: CreateRobotTokenRequest,
  { identity, access: callAccess }: CallContext,
) {
  const beyond = await access.beyondSubject(`robot:${name}`, identity);
  if (beyond?.kind === "beyond") throw callAccess.beyond(beyond);
  const ttlMs = ttl === undefined ? TTL_MS_DEFAULT : durationMs(ttl);
  const ownedMax = limits.robotsOf(identity);
  const outcome = await robots.make({ name, owner: identity.subject, ttlMs, ownedMax });
  if (outcome.kind === "exists") {
    throw alreadyExists("ROBOT_EXISTS", `robot ${name} exists, or has existed: choose another name`);
  }
  if (outcome.kind === "full") throw noRoomFor({ type: "robot", name }, outcome.max);
  if (outcome.kind === "ownerFull") {
    const description = `has made ${outcome.max} robots whose tokens count, which is its limit: revoke one first`;
    throw tooMany("TOO_MANY_ROBOTS_OF_CALLER", { subject: `caller ${identity.subject}`, description });
  }
  return { robot: toProtoRobot(outcome.robot), secret: outcome.secret };
}

async function listRobots(robots: Robots, { pageSize, pageToken }: ListRobotTokensRequest) {
  const page = await robots.list({ after: pageToken || null, pageSize: pageSize || PAGE_SIZE_DEFAULT });
  if (page === "badCursor") throw badPageToken();
  return { robots: page.robots.map(toProtoRobot), nextPageToken: page.next ?? "" };
}

function toProtoRobot(robot: RobotToken): MessageInitShape<typeof RobotTokenSchema> {
  const { name, owner, createTimeMs, expiresAtMs, lastUseMs, revokedMs } = robot;
  return {
    name,
    owner,
    createTime: timestampFromMs(createTimeMs),
    expireTime: timestampFromMs(expiresAtMs),
    lastUseTime: toTimestamp(lastUseMs),
    revokeTime: toTimestamp(revokedMs),
  };
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { LimitCalls } from "../../core/access/call-limits.ts";
import { scopeNotes } from "../../core/access/check-access.ts";
import type { MadeRobot, NewRobot, RobotScope, RobotToken } from "../../core/access/robot.ts";
import { type BoundScope, placeText } from "../../core/access/scope.ts";
import type {
  AccessService,
  CreateRobotTokenRequest,
  ListRobotTokensRequest,
  RobotTokenSchema,
} from "../../gen/gangway/v1/access_service_pb.ts";
import type { AccessAdmin, Robots } from "../ports.ts";
import { existingRecord, noRoomFor } from "../rpc/admin-outcome.ts";
import type { CallContext } from "../rpc/call.ts";
import type { CallAccess } from "../rpc/call-access.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { alreadyExists, badPageToken, invalidFields, notFound, type RpcError, tooMany } from "../rpc/rpc-error.ts";
import { toTimestamp } from "../rpc/timestamp.ts";
import { sentScope, toProtoScope } from "./convert-access.ts";
import { rolesAndBindings } from "./roles-and-bindings.ts";

const PAGE_SIZE_DEFAULT = 100;
const TTL_MS_DEFAULT = 90 * 86_400_000;

type Ports = {
  readonly robots: Robots;
  readonly access: AccessAdmin;
  readonly limits: Pick<LimitCalls, "robotsOf">;
};

export function accessService({ robots, access, limits }: Ports): ServiceHandlers<typeof AccessService> {
  return {
    ...rolesAndBindings(access),
    whoAmI: async (_request, { identity: { subject, groups, method, issuer, expiresAtMs } }) => {
      const expires = expiresAtMs === null ? {} : { expireTime: timestampFromMs(expiresAtMs) };
      return { identity: { subject, groups: [...groups], method, issuer, ...expires } };
    },
    createRobotToken: (request, context) => createRobot({ robots, access, limits }, request, context),
    listRobotTokens: (request, context) => listRobots(robots, request, context.access),
    revokeRobotToken: ({ name }, context) => revokeRobot(robots, name, context.access),
  };
}

/** Who has a robot's token is that robot: it must not get more by it than it has. */
async function createRobot(
  { robots, access, limits }: Ports,
  { name, ttl, scope: sent }: CreateRobotTokenRequest,
  { identity, access: callAccess }: CallContext,
) {
  const scope = robotScope(sentScope(sent));
  const subject = `robot:${name}`;
  const beyond = await access.beyondSubject(subject, identity);
  if (beyond?.kind === "beyond") throw callAccess.beyondSubject(subject, beyond);
  const ttlMs = ttl === undefined ? TTL_MS_DEFAULT : durationMs(ttl);
  const ownedMax = limits.robotsOf(identity);
  const outcome = await robots.make({ name, owner: identity.subject, scope, ttlMs, ownedMax });
  if (outcome.kind !== "made") throw notMade(outcome, { name, owner: identity.subject, scope });
  return { robot: toProtoRobot(outcome.robot), secret: outcome.secret };
}

/** The scope of a request. Throws unless robots may belong to it. */
function robotScope({ kind, name }: BoundScope): RobotScope {
  if (kind !== "installation" && kind !== "project" && kind !== "namespace") {
    const message = "must be a namespace or a project; omit it for a robot of the installation";
    throw invalidFields([{ field: "scope", message }]);
  }
  const notes = scopeNotes({ kind, name });
  if (notes.length > 0) throw invalidFields(notes);
  return { kind, name };
}

const REVOKE_ONE = "revoke one first: gangway robot revoke NAME";

function notMade(outcome: Exclude<MadeRobot, { kind: "made" }>, { name, owner, scope }: NewRobot): RpcError {
  switch (outcome.kind) {
    case "exists":
      return alreadyExists("ROBOT_EXISTS", `robot ${name} exists, or has existed: choose another name`);
    case "full":
      return noRoomFor({ type: "robot", name }, outcome.max);
    case "ownerFull": {
      const description = `has made ${outcome.max} robots whose tokens count, which is its limit: ${REVOKE_ONE}`;
      return tooMany("TOO_MANY_ROBOTS_OF_CALLER", { subject: `caller ${owner}`, description });
    }
    case "unknownNamespace":
      return notFound({ type: "namespace", name: scope.name });
    case "tenantFull": {
      const { tenant, used, max } = outcome;
      const robots = used === 1 ? "1 robot whose token counts" : `${used} robots whose tokens count`;
      const description = `has ${robots}, and its max_robot_tokens is ${max}: ${REVOKE_ONE}`;
      return tooMany("TOO_MANY_ROBOT_TOKENS", { subject: placeText(tenant), description });
    }
  }
}

async function listRobots(robots: Robots, { pageSize, pageToken }: ListRobotTokensRequest, access: CallAccess) {
  const [namespaces, projects] = [access.namespaces("robots.get"), access.projects("robots.get")];
  const listed = namespaces === null || projects === null ? null : { namespaces, projects };
  const page = await robots.list({ after: pageToken || null, pageSize: pageSize || PAGE_SIZE_DEFAULT, listed });
  if (page === "badCursor") throw badPageToken();
  return { robots: page.robots.map(toProtoRobot), nextPageToken: page.next ?? "" };
}

/** The scope of a robot never changes, so that it can be judged before. */
async function revokeRobot(robots: Robots, name: string, access: CallAccess) {
  const found = await robots.get(name);
  const isSeen = found !== null && (access.may("robots.get", found.scope) || access.may("robots.revoke", found.scope));
  const { scope } = existingRecord(isSeen ? found : null, { type: "robot", name });
  access.demand("robots.revoke", scope);
  return { robot: toProtoRobot(existingRecord(await robots.revoke(name), { type: "robot", name })) };
}

function toProtoRobot(robot: RobotToken): MessageInitShape<typeof RobotTokenSchema> {
  const { name, owner, scope, createTimeMs, expiresAtMs, lastUseMs, revokedMs } = robot;
  return {
    name,
    owner,
    scope: toProtoScope(scope),
    createTime: timestampFromMs(createTimeMs),
    expireTime: timestampFromMs(expiresAtMs),
    lastUseTime: toTimestamp(lastUseMs),
    revokeTime: toTimestamp(revokedMs),
  };
}

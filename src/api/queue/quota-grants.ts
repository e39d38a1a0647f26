/** Serves quota admins who raise a queue's quota for some time. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { GRANT_MS_MAX, type QuotaGrant, type QuotaGrantOutcome } from "../../core/admin/quota-grant.ts";
import type {
  GrantQuotaRequest,
  ListQuotaGrantsRequest,
  QuotaGrantSchema,
  RevokeQuotaGrantRequest,
} from "../../gen/gangway/v1/queue_service_pb.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Admin } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { failedPrecondition, invalidFields, notFound } from "../rpc/rpc-error.ts";

type GrantPorts = {
  readonly admin: Pick<Admin, "grantQuota" | "revokeGrant" | "listGrants">;
  readonly limitsChanged: () => Promise<void>;
  readonly clock: Pick<Clock, "nowMs">;
};

export async function grantQuota(ports: GrantPorts, request: GrantQuotaRequest, { identity }: CallContext) {
  const { queue, flavor, reason } = request;
  const untilMs = endOf(request, ports.clock.nowMs());
  const outcome = await ports.admin.grantQuota({
    ...{ queue, flavor, reason, untilMs },
    amount: Number(request.amount),
    actor: identity.subject,
  });
  const grant = granted(outcome, { queue, flavor });
  await ports.limitsChanged();
  return { grant: toProtoGrant(grant) };
}

/** The time at which a grant ends. Refuses one that is over or too far away. */
function endOf({ end }: GrantQuotaRequest, nowMs: number): number {
  const untilMs = end.case === "until" ? timestampMs(end.value) : nowMs + (end.value ? durationMs(end.value) : 0);
  const field = end.case === "until" ? "until" : "duration";
  if (untilMs <= nowMs) throw invalidFields([{ field, message: "must end in the future" }]);
  if (untilMs - nowMs <= GRANT_MS_MAX) return Math.floor(untilMs);
  throw invalidFields([{ field, message: "must end within 366 days" }]);
}

export async function revokeQuotaGrant(
  ports: GrantPorts,
  { queue, flavor }: RevokeQuotaGrantRequest,
  { identity }: CallContext,
) {
  granted(await ports.admin.revokeGrant({ queue, flavor, actor: identity.subject }), { queue, flavor });
  await ports.limitsChanged();
  return {};
}

/** The grants of the queues that the caller may see. */
export async function listQuotaGrants(
  { admin }: Pick<GrantPorts, "admin">,
  { queue }: ListQuotaGrantsRequest,
  { access }: Pick<CallContext, "access">,
) {
  const grants = await admin.listGrants(queue || null);
  const isSeen = (grant: QuotaGrant) => access.may("queues.get", { kind: "queue", name: grant.queue });
  return { grants: grants.filter(isSeen).map(toProtoGrant) };
}

function granted(outcome: QuotaGrantOutcome, of: { readonly queue: string; readonly flavor: string }): QuotaGrant {
  const subject = `queue ${of.queue}`;
  switch (outcome.kind) {
    case "done":
      return outcome.grant;
    case "unknownQueue":
      throw notFound({ type: "queue", name: of.queue });
    case "noGrant":
      throw notFound({ type: "quota grant", name: `${of.flavor} of ${subject}` });
    case "noQuota": {
      const description = `has no quota of ${of.flavor} that could be raised; give it one by UpdateQueue first`;
      throw failedPrecondition({ type: "NO_QUOTA", subject, description });
    }
    case "tooMuch": {
      const message = `must not be more than 9007199254740991 together with the quota, which is ${outcome.nominal}`;
      throw invalidFields([{ field: "amount", message }]);
    }
  }
}

function toProtoGrant({ queue, flavor, amount, untilMs, actor, reason, atMs }: QuotaGrant) {
  return {
    ...{ queue, flavor, actor, reason },
    amount: BigInt(amount),
    until: timestampFromMs(untilMs),
    createTime: timestampFromMs(atMs),
  } satisfies MessageInitShape<typeof QuotaGrantSchema>;
}

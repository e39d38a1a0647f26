import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import type { QueueOutcome, QueueRecord, QueueSettings } from "../../core/admin/queue.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import { DEFAULT_POLICY } from "../../core/plan/model/queue-policy.ts";
import type { StopPolicy } from "../../core/plan/model/queue-stop.ts";
import type { TreeProblem } from "../../core/quota/check-tree.ts";
import { OnClusterLost } from "../../gen/gangway/v1/namespace_service_pb.ts";
import {
  type FlavorQuota,
  type Queue,
  type QueueSchema,
  type QueueService,
  QueueStopPolicy,
  QueueStrategy,
} from "../../gen/gangway/v1/queue_service_pb.ts";
import type { Clock } from "../../runtime/clock.ts";
import { sentOnClusterLost } from "../namespace/namespace-service.ts";
import type { Admin } from "../ports.ts";
import { toProtoFreeze } from "../resource-manager/convert-quota.ts";
import { listAuditEntries } from "../resource-manager/quota-admin.ts";
import type { TokenOperations } from "../resource-manager/quota-ports.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { withoutHiddenUser } from "../rpc/hidden-user.ts";
import { failedPrecondition, invalidFields } from "../rpc/rpc-error.ts";
import { policyFromProto, policyNotes, policyToProto } from "./convert-policy.ts";
import { grantQuota, listQuotaGrants, revokeQuotaGrant } from "./quota-grants.ts";

const STRATEGY = {
  STRICT_FIFO: QueueStrategy.STRICT_FIFO,
  BEST_EFFORT_FIFO: QueueStrategy.BEST_EFFORT_FIFO,
} as const satisfies Readonly<Record<QueueRecord["strategy"], QueueStrategy>>;

const STOP_POLICY = {
  NONE: QueueStopPolicy.NONE,
  HOLD: QueueStopPolicy.HOLD,
  HOLD_AND_DRAIN: QueueStopPolicy.HOLD_AND_DRAIN,
} as const satisfies Readonly<Record<StopPolicy, QueueStopPolicy>>;

/** Unspecified: null, the policy stays as it is. */
function stopPolicyOf(sent: QueueStopPolicy | undefined): StopPolicy | null {
  switch (sent) {
    case QueueStopPolicy.NONE:
      return "NONE";
    case QueueStopPolicy.HOLD:
      return "HOLD";
    case QueueStopPolicy.HOLD_AND_DRAIN:
      return "HOLD_AND_DRAIN";
    default:
      return null;
  }
}

type QueuePorts = {
  readonly admin: Admin;
  readonly resources: TokenOperations;
  /** Gives the counters the new limits and wakes the planner. */
  readonly limitsChanged: () => Promise<void>;
  readonly clock: Pick<Clock, "nowMs">;
};

export function queueService(ports: QueuePorts): ServiceHandlers<typeof QueueService> {
  const { admin, resources, limitsChanged } = ports;
  /** A null reason ends the freeze. */
  const freeze = async (change: { readonly name: string; readonly reason: string | null; readonly actor: string }) => {
    const record = changedRecord(await admin.freezeQueue(change), queueRef(change.name));
    await limitsChanged();
    return { queue: toProtoQueue(record) };
  };
  return {
    createQueue: async ({ queue }, { identity, access }) => {
      const sent = sentQueue(queue);
      const outcome = generalOutcome(await admin.createQueue(sent, identity.subject), sent.name);
      const record = changedRecord(outcome, queueRef(sent.name));
      await limitsChanged();
      await access.refresh();
      return { queue: toProtoQueue(record) };
    },
    getQueue: async ({ name }) => ({ queue: toProtoQueue(existingRecord(await admin.getQueue(name), queueRef(name))) }),
    listQueues: async (_request, { access }) => {
      const isSeen = ({ name }: QueueRecord) => access.may("queues.get", { kind: "queue", name });
      return { queues: (await admin.listQueues()).filter(isSeen).map(toProtoQueue) };
    },
    updateQueue: async ({ queue }, { identity, access }) => {
      const sent = sentQueue(queue);
      const version = Number(queue?.resourceVersion ?? "");
      const outcome = generalOutcome(await admin.updateQueue({ ...sent, version }, identity.subject), sent.name);
      const record = changedRecord(outcome, queueRef(sent.name));
      await limitsChanged();
      await access.refresh();
      return { queue: toProtoQueue(record) };
    },
    freezeQueue: ({ name, reason }, { identity }) => freeze({ name, reason, actor: identity.subject }),
    unfreezeQueue: ({ name }, { identity }) => freeze({ name, reason: null, actor: identity.subject }),
    grantQuota: (request, context) => grantQuota(ports, request, context),
    listQuotaGrants: (request, context) => listQuotaGrants(ports, request, context),
    revokeQuotaGrant: (request, context) => revokeQuotaGrant(ports, request, context),
    deleteQueue: async ({ name }, { identity, access }) => {
      const outcome = await admin.deleteQueue(name, identity.subject);
      changedRecord(withoutHiddenUser(outcome, access), queueRef(name));
      await limitsChanged();
      await access.refresh();
      return {};
    },
    listAuditEntries: (request) => listAuditEntries(resources, request),
  };
}

function queueRef(name: string) {
  return { type: "queue", name };
}

/** Throws the outcomes that only queues have; returns the others. */
function generalOutcome(outcome: QueueOutcome, name: string): ChangeOutcome<QueueRecord> {
  if (outcome.kind === "misplaced") {
    throw invalidFields([{ field: "queue.parent", message: problemWords(outcome.problem) }]);
  }
  if (outcome.kind !== "apart") return outcome;
  const { pool, domain, durability } = outcome;
  const description =
    `has a quota for pool ${pool}, which is in quota domain ${domain} with durability ${durability}; ` +
    "pools of queues are in domain default with durability LEDGER";
  throw failedPrecondition({ type: "QUEUE_APART", subject: `queue ${name}`, description });
}

function problemWords(problem: TreeProblem): string {
  switch (problem.kind) {
    case "unknownParent":
      return `queue ${problem.parent} does not exist`;
    case "circle":
      return `must not put the queue below itself: ${problem.path.join(" is below ")}`;
    case "tooDeep":
      return `must not make a path to the root longer than ${problem.depthMax} queues`;
  }
}

function sentQueue(queue: Queue | undefined): QueueSettings {
  const parent = queue?.parent || null;
  const sent = queue?.quotas ?? [];
  const policy = queue === undefined ? DEFAULT_POLICY : policyFromProto(queue);
  const wrongQuotas = sent.flatMap((quota, at) => quotaNotes(quota, { at, quotas: sent, parent }));
  const notes = [...wrongQuotas, ...policyNotes(policy, parent)];
  if (notes.length > 0) throw invalidFields(notes);
  const strategy = queue?.strategy === QueueStrategy.STRICT_FIFO ? "STRICT_FIFO" : "BEST_EFFORT_FIFO";
  const quotas = sent.map(({ flavor, resource, nominal, borrowingLimit, lendingLimit }) => ({
    flavor,
    resource,
    nominal: Number(nominal),
    ...(borrowingLimit === undefined ? {} : { borrowingLimit: Number(borrowingLimit) }),
    ...(lendingLimit === undefined ? {} : { lendingLimit: Number(lendingLimit) }),
  }));
  const stopPolicy = stopPolicyOf(queue?.stopPolicy);
  const maxRunningJobs = queue?.maxRunningJobs || null;
  const maxWaitingJobs = queue?.maxWaitingJobs || null;
  const onClusterLost = sentOnClusterLost(queue?.onClusterLost);
  const settings = { name: queue?.name ?? "", parent, maxRunningJobs, maxWaitingJobs, policy, onClusterLost, quotas };
  return { ...settings, strategy, ...(stopPolicy === null ? {} : { stopPolicy }) };
}

function quotaNotes(
  { flavor, borrowingLimit, lendingLimit }: FlavorQuota,
  of: { readonly at: number; readonly quotas: readonly FlavorQuota[]; readonly parent: string | null },
): readonly FieldNote[] {
  const field = (name: string) => `queue.quotas[${of.at}].${name}`;
  const notes: FieldNote[] = [];
  if (of.quotas.findIndex((other) => other.flavor === flavor) < of.at) {
    notes.push({
      field: field("flavor"),
      message: `must differ from the flavors of the other quotas, but ${flavor} is named twice`,
    });
  }
  const message = "must not be set for a queue without a parent: there is no other queue to borrow from or lend to";
  if (of.parent === null && borrowingLimit !== undefined) notes.push({ field: field("borrowing_limit"), message });
  if (of.parent === null && lendingLimit !== undefined) notes.push({ field: field("lending_limit"), message });
  return notes;
}

function toProtoQueue(record: QueueRecord): MessageInitShape<typeof QueueSchema> {
  const { used, borrowed, lent, share, waiting, admitted, lost } = record;
  return {
    name: record.name,
    strategy: STRATEGY[record.strategy],
    parent: record.parent ?? "",
    stopPolicy: STOP_POLICY[record.stopPolicy],
    stoppedBy: record.stoppedBy ?? "",
    ...(record.freeze === null ? {} : { freeze: toProtoFreeze(record.freeze) }),
    frozenBy: record.frozenBy ?? "",
    maxRunningJobs: record.maxRunningJobs ?? 0,
    maxWaitingJobs: record.maxWaitingJobs ?? 0,
    ...policyToProto(record.policy),
    onClusterLost: OnClusterLost[record.onClusterLost ?? "UNSPECIFIED"],
    quotas: record.quotas.map(
      ({ flavor, resource, nominal, borrowingLimit, lendingLimit, granted, grantedUntilMs }) => ({
        flavor,
        resource,
        nominal: BigInt(nominal),
        ...(borrowingLimit === undefined ? {} : { borrowingLimit: BigInt(borrowingLimit) }),
        ...(lendingLimit === undefined ? {} : { lendingLimit: BigInt(lendingLimit) }),
        granted: BigInt(granted ?? 0),
        ...(grantedUntilMs === undefined ? {} : { grantedUntil: timestampFromMs(grantedUntilMs) }),
      }),
    ),
    resourceVersion: String(record.version),
    createTime: timestampFromMs(record.createTimeMs),
    updateTime: timestampFromMs(record.updateTimeMs),
    use: {
      ...{ used: toAmounts(used), borrowed: toAmounts(borrowed), lent: toAmounts(lent), share },
      ...{ waitingJobs: waiting, admittedJobs: admitted, lost: toAmounts(lost) },
    },
  };
}

function toAmounts(amounts: Readonly<Record<string, number>>): Record<string, bigint> {
  return Object.fromEntries(Object.entries(amounts).map(([flavor, amount]) => [flavor, BigInt(amount)]));
}

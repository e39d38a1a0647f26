import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { FieldNote } from "../core/job/sent.ts";
import type { TreeProblem } from "../core/quota/check-tree.ts";
import type { FlavorQuota, Queue, QueueSchema, QueueService } from "../gen/gangway/v1/queue_service_pb.ts";
import { changed, found } from "./change-outcome.ts";
import { queueStrategyFromProto, queueStrategyToProto } from "./convert-enums.ts";
import type { ServiceHandlers } from "./handler.ts";
import type { Admin, ChangeOutcome, QueueOutcome, QueueRecord, QueueSettings } from "./ports.ts";
import { listAuditEntries } from "./quota-admin.ts";
import type { ResourceManager } from "./quota-ports.ts";
import { invalidFields } from "./rpc-error.ts";

export type QueuePorts = {
  readonly admin: Admin;
  readonly resources: ResourceManager;
  readonly wakePlanner: () => void;
};

export function queueService({ admin, resources, wakePlanner }: QueuePorts): ServiceHandlers<typeof QueueService> {
  return {
    createQueue: async ({ queue }) => {
      const sent = sentQueue(queue);
      const record = changed(placed(await admin.createQueue(sent)), named(sent.name));
      wakePlanner();
      return { queue: toProtoQueue(record) };
    },
    getQueue: async ({ name }) => ({ queue: toProtoQueue(found(await admin.getQueue(name), named(name))) }),
    listQueues: async () => ({ queues: (await admin.listQueues()).map(toProtoQueue) }),
    updateQueue: async ({ queue }) => {
      const sent = sentQueue(queue);
      const version = Number(queue?.resourceVersion ?? "");
      const record = changed(placed(await admin.updateQueue({ ...sent, version })), named(sent.name));
      wakePlanner();
      return { queue: toProtoQueue(record) };
    },
    deleteQueue: async ({ name }) => {
      changed(await admin.deleteQueue(name), named(name));
      wakePlanner();
      return {};
    },
    listAuditEntries: (request) => listAuditEntries(resources, request),
  };
}

function named(name: string) {
  return { type: "queue", name };
}

/** The outcome without what is said of the parent alone, which is thrown. */
function placed(outcome: QueueOutcome): ChangeOutcome<QueueRecord> {
  if (outcome.kind !== "misplaced") return outcome;
  throw invalidFields([{ field: "queue.parent", message: problemWords(outcome.problem) }]);
}

function problemWords(problem: TreeProblem): string {
  switch (problem.kind) {
    case "unknownParent":
      return `there is no queue ${problem.parent}`;
    case "circle":
      return `would put the queue below itself: ${problem.path.join(" is below ")}`;
    case "tooDeep":
      return `a path to the root may have ${problem.depthMax} queues at most`;
  }
}

function sentQueue(queue: Queue | undefined): QueueSettings {
  const parent = queue?.parent || null;
  const sent = queue?.quotas ?? [];
  const notes = sent.flatMap((quota, at) => quotaNotes(quota, { at, quotas: sent, parent }));
  if (notes.length > 0) throw invalidFields(notes);
  const strategy = queueStrategyFromProto(queue?.strategy ?? 0) ?? "BEST_EFFORT_FIFO";
  const quotas = sent.map(({ flavor, resource, nominal, borrowingLimit, lendingLimit }) => ({
    flavor,
    resource,
    nominal: Number(nominal),
    ...(borrowingLimit === undefined ? {} : { borrowingLimit: Number(borrowingLimit) }),
    ...(lendingLimit === undefined ? {} : { lendingLimit: Number(lendingLimit) }),
  }));
  return { name: queue?.name ?? "", parent, strategy, quotas };
}

function quotaNotes(
  { flavor, borrowingLimit, lendingLimit }: FlavorQuota,
  of: { readonly at: number; readonly quotas: readonly FlavorQuota[]; readonly parent: string | null },
): readonly FieldNote[] {
  const field = (name: string) => `queue.quotas[${of.at}].${name}`;
  const notes: FieldNote[] = [];
  if (of.quotas.findIndex((other) => other.flavor === flavor) < of.at) {
    notes.push({ field: field("flavor"), message: `names ${flavor}, as another quota of the queue does` });
  }
  const message = "needs a parent: the queue would stand alone, with nobody to borrow from or lend to";
  if (of.parent === null && borrowingLimit !== undefined) notes.push({ field: field("borrowing_limit"), message });
  if (of.parent === null && lendingLimit !== undefined) notes.push({ field: field("lending_limit"), message });
  return notes;
}

function toProtoQueue(record: QueueRecord): MessageInitShape<typeof QueueSchema> {
  const used = Object.entries(record.used).map(([flavor, amount]) => [flavor, BigInt(amount)] as const);
  return {
    name: record.name,
    strategy: queueStrategyToProto(record.strategy),
    parent: record.parent ?? "",
    quotas: record.quotas.map(({ flavor, resource, nominal, borrowingLimit, lendingLimit }) => ({
      flavor,
      resource,
      nominal: BigInt(nominal),
      ...(borrowingLimit === undefined ? {} : { borrowingLimit: BigInt(borrowingLimit) }),
      ...(lendingLimit === undefined ? {} : { lendingLimit: BigInt(lendingLimit) }),
    })),
    resourceVersion: String(record.version),
    createTime: timestampFromMs(record.createTimeMs),
    updateTime: timestampFromMs(record.updateTimeMs),
    use: { used: Object.fromEntries(used), waitingJobs: record.waiting, admittedJobs: record.admitted },
  };
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { FieldNote } from "../core/job/sent.ts";
import type { Queue, QueueSchema, QueueService } from "../gen/gangway/v1/queue_service_pb.ts";
import { changed, found } from "./change-outcome.ts";
import { queueStrategyFromProto, queueStrategyToProto } from "./convert-enums.ts";
import type { ServiceHandlers } from "./handler.ts";
import type { Admin, QueueRecord } from "./ports.ts";
import { invalidFields } from "./rpc-error.ts";

export type QueuePorts = { readonly admin: Admin; readonly wakePlanner: () => void };

export function queueService({ admin, wakePlanner }: QueuePorts): ServiceHandlers<typeof QueueService> {
  return {
    createQueue: async ({ queue }) => {
      const sent = sentQueue(queue);
      const record = changed(await admin.createQueue(sent), named(sent.name));
      wakePlanner();
      return { queue: toProtoQueue(record) };
    },
    getQueue: async ({ name }) => ({ queue: toProtoQueue(found(await admin.getQueue(name), named(name))) }),
    listQueues: async () => ({ queues: (await admin.listQueues()).map(toProtoQueue) }),
    updateQueue: async ({ queue }) => {
      const sent = sentQueue(queue);
      const version = Number(queue?.resourceVersion ?? "");
      const record = changed(await admin.updateQueue({ ...sent, version }), named(sent.name));
      wakePlanner();
      return { queue: toProtoQueue(record) };
    },
    deleteQueue: async ({ name }) => {
      changed(await admin.deleteQueue(name), named(name));
      return {};
    },
  };
}

function named(name: string) {
  return { type: "queue", name };
}

function sentQueue(queue: Queue | undefined): Pick<QueueRecord, "name" | "strategy" | "quotas"> {
  const quotas = (queue?.quotas ?? []).map(({ flavor, resource, nominal }) => ({
    flavor,
    resource,
    nominal: Number(nominal),
  }));
  const twice: FieldNote[] = quotas
    .map(({ flavor }, at) => ({ flavor, field: `queue.quotas[${at}].flavor`, at }))
    .filter(({ flavor, at }) => quotas.findIndex((other) => other.flavor === flavor) < at)
    .map(({ flavor, field }) => ({ field, message: `names ${flavor}, as another quota of the queue does` }));
  if (twice.length > 0) throw invalidFields(twice);
  const strategy = queueStrategyFromProto(queue?.strategy ?? 0) ?? "BEST_EFFORT_FIFO";
  return { name: queue?.name ?? "", strategy, quotas };
}

function toProtoQueue(record: QueueRecord): MessageInitShape<typeof QueueSchema> {
  const used = Object.entries(record.used).map(([flavor, amount]) => [flavor, BigInt(amount)] as const);
  return {
    name: record.name,
    strategy: queueStrategyToProto(record.strategy),
    quotas: record.quotas.map(({ flavor, resource, nominal }) => ({ flavor, resource, nominal: BigInt(nominal) })),
    resourceVersion: String(record.version),
    createTime: timestampFromMs(record.createTimeMs),
    updateTime: timestampFromMs(record.updateTimeMs),
    use: { used: Object.fromEntries(used), waitingJobs: record.waiting, admittedJobs: record.admitted },
  };
}

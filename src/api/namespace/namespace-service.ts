import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { NamespaceRecord } from "../../core/admin/namespace.ts";
import type { Namespace, NamespaceSchema, NamespaceService } from "../../gen/gangway/v1/namespace_service_pb.ts";
import type { Admin } from "../ports.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { invalidFields } from "../rpc/rpc-error.ts";

export function namespaceService(admin: Admin): ServiceHandlers<typeof NamespaceService> {
  return {
    createNamespace: async ({ namespace }) => {
      const sent = await sentNamespace(admin, namespace);
      return { namespace: toProtoNamespace(changedRecord(await admin.createNamespace(sent), namespaceRef(sent.name))) };
    },
    getNamespace: async ({ name }) => ({
      namespace: toProtoNamespace(existingRecord(await admin.getNamespace(name), namespaceRef(name))),
    }),
    listNamespaces: async () => ({ namespaces: (await admin.listNamespaces()).map(toProtoNamespace) }),
    updateNamespace: async ({ namespace }) => {
      const sent = await sentNamespace(admin, namespace);
      const version = Number(namespace?.resourceVersion ?? "");
      return {
        namespace: toProtoNamespace(
          changedRecord(await admin.updateNamespace({ ...sent, version }), namespaceRef(sent.name)),
        ),
      };
    },
    deleteNamespace: async ({ name }) => {
      changedRecord(await admin.deleteNamespace(name), namespaceRef(name));
      return {};
    },
  };
}

function namespaceRef(name: string) {
  return { type: "namespace", name };
}

/** Refuses a default queue that does not exist: every job that names no queue would be refused. */
async function sentNamespace(
  admin: Admin,
  namespace: Namespace | undefined,
): Promise<Pick<NamespaceRecord, "name" | "project" | "defaultQueue">> {
  const defaultQueue = namespace?.defaultQueue || "default";
  if (namespace?.defaultQueue && (await admin.getQueue(defaultQueue)) === null) {
    throw invalidFields([{ field: "namespace.default_queue", message: `queue ${defaultQueue} does not exist` }]);
  }
  return { name: namespace?.name ?? "", project: namespace?.project || "default", defaultQueue };
}

function toProtoNamespace(record: NamespaceRecord): MessageInitShape<typeof NamespaceSchema> {
  return {
    name: record.name,
    project: record.project,
    defaultQueue: record.defaultQueue,
    resourceVersion: String(record.version),
    createTime: timestampFromMs(record.createTimeMs),
  };
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Namespace, NamespaceSchema, NamespaceService } from "../gen/gangway/v1/namespace_service_pb.ts";
import { changed, found } from "./change-outcome.ts";
import type { ServiceHandlers } from "./handler.ts";
import type { Admin, NamespaceRecord } from "./ports.ts";
import { invalidFields } from "./rpc-error.ts";

export function namespaceService(admin: Admin): ServiceHandlers<typeof NamespaceService> {
  return {
    createNamespace: async ({ namespace }) => {
      const sent = await sentNamespace(admin, namespace);
      return { namespace: toProtoNamespace(changed(await admin.createNamespace(sent), named(sent.name))) };
    },
    getNamespace: async ({ name }) => ({
      namespace: toProtoNamespace(found(await admin.getNamespace(name), named(name))),
    }),
    listNamespaces: async () => ({ namespaces: (await admin.listNamespaces()).map(toProtoNamespace) }),
    updateNamespace: async ({ namespace }) => {
      const sent = await sentNamespace(admin, namespace);
      const version = Number(namespace?.resourceVersion ?? "");
      return {
        namespace: toProtoNamespace(changed(await admin.updateNamespace({ ...sent, version }), named(sent.name))),
      };
    },
    deleteNamespace: async ({ name }) => {
      changed(await admin.deleteNamespace(name), named(name));
      return {};
    },
  };
}

function named(name: string) {
  return { type: "namespace", name };
}

/** The default queue must exist: jobs that name none would else be refused one by one. */
async function sentNamespace(
  admin: Admin,
  namespace: Namespace | undefined,
): Promise<Pick<NamespaceRecord, "name" | "project" | "defaultQueue">> {
  const defaultQueue = namespace?.defaultQueue || "default";
  if (namespace?.defaultQueue && (await admin.getQueue(defaultQueue)) === null) {
    throw invalidFields([{ field: "namespace.default_queue", message: `there is no queue ${defaultQueue}` }]);
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

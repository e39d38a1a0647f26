import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { NamespaceChange, NamespaceOutcome, NamespaceRecord, NamespaceRules } from "../../core/admin/namespace.ts";
import { ON_CLUSTER_LOST, type OnClusterLost } from "../../core/job/spec.ts";
import { type PodPolicyDefault, policyInForce } from "../../core/pods/policy/pod-policy.ts";
import {
  type Namespace,
  type NamespaceSchema,
  type NamespaceService,
  OnClusterLost as OnClusterLostPb,
} from "../../gen/gangway/v1/namespace_service_pb.ts";
import type { Admin } from "../ports.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { withoutHiddenUser } from "../rpc/hidden-user.ts";
import { invalidFields } from "../rpc/rpc-error.ts";
import { sentPodPolicy, toProtoPodPolicy } from "./convert-pod-policy.ts";
import { listTenantLimits, setTenantLimits } from "./tenant-limits.ts";

export function namespaceService(
  ports: { readonly admin: Admin; readonly limitsChanged: () => Promise<void> },
  { podPolicyDefault, isReserved }: NamespaceRules,
): ServiceHandlers<typeof NamespaceService> {
  const { admin } = ports;
  const toProtoNamespace = (record: NamespaceRecord) => protoNamespace(record, podPolicyDefault);
  return {
    createNamespace: async ({ namespace }, { access }) => {
      const sent = sentNamespace(namespace);
      if (isReserved(sent.name)) throw invalidFields([{ field: "namespace.name", message: RESERVED }]);
      const made = changedNamespace(await admin.createNamespace(sent), sent.name);
      await access.refresh();
      return { namespace: toProtoNamespace(made) };
    },
    getNamespace: async ({ name }) => ({
      namespace: toProtoNamespace(existingRecord(await admin.getNamespace(name), namespaceRef(name))),
    }),
    listNamespaces: async (_request, { access }) => {
      const isSeen = ({ name }: NamespaceRecord) => access.may("namespaces.get", { kind: "namespace", name });
      return { namespaces: (await admin.listNamespaces()).filter(isSeen).map(toProtoNamespace) };
    },
    updateNamespace: async ({ namespace }, { access }) => {
      const sent = sentNamespace(namespace);
      const version = Number(namespace?.resourceVersion ?? "");
      const changed = changedNamespace(await admin.updateNamespace({ ...sent, version }), sent.name);
      await access.refresh();
      return { namespace: toProtoNamespace(changed) };
    },
    deleteNamespace: async ({ name }, { access }) => {
      changedRecord(withoutHiddenUser(await admin.deleteNamespace(name), access), namespaceRef(name));
      await access.refresh();
      return {};
    },
    setTenantLimits: (request, context) => setTenantLimits(ports, request, context),
    listTenantLimits: (_request, context) => listTenantLimits(admin, context),
  };
}

function namespaceRef(name: string) {
  return { type: "namespace", name };
}

/** Refuses a default queue that does not exist: every job that names no queue would be refused. */
function changedNamespace(outcome: NamespaceOutcome, name: string): NamespaceRecord {
  if (outcome.kind !== "unknownQueue") return changedRecord(outcome, namespaceRef(name));
  throw invalidFields([{ field: "namespace.default_queue", message: `queue ${outcome.name} does not exist` }]);
}

function sentNamespace(namespace: Namespace | undefined): NamespaceChange {
  const policy = namespace?.podPolicy;
  const onClusterLost = sentOnClusterLost(namespace?.onClusterLost);
  return {
    name: namespace?.name ?? "",
    project: namespace?.project || "default",
    defaultQueue: namespace?.defaultQueue || "default",
    namesQueue: Boolean(namespace?.defaultQueue),
    ...(policy === undefined ? {} : { podPolicy: sentPodPolicy(policy) }),
    ...(namespace?.keepFailureLogs === undefined ? {} : { keepFailureLogs: namespace.keepFailureLogs }),
    ...(onClusterLost === null ? {} : { onClusterLost }),
  };
}

/** Null: the request does not say. */
export function sentOnClusterLost(sent: OnClusterLostPb | undefined): OnClusterLost | null {
  return ON_CLUSTER_LOST.find((policy) => OnClusterLostPb[policy] === sent) ?? null;
}

const RESERVED = "is reserved: no job may run there, because its service accounts and secrets are the system's";

function protoNamespace(
  record: NamespaceRecord,
  podPolicyDefault: PodPolicyDefault,
): MessageInitShape<typeof NamespaceSchema> {
  const { podPolicy } = record;
  const { level, allow, warn, limits } = policyInForce(podPolicy, podPolicyDefault);
  return {
    name: record.name,
    project: record.project,
    defaultQueue: record.defaultQueue,
    resourceVersion: String(record.version),
    createTime: timestampFromMs(record.createTimeMs),
    ...(podPolicy === null ? {} : { podPolicy: toProtoPodPolicy(podPolicy) }),
    keepFailureLogs: record.keepFailureLogs,
    onClusterLost: OnClusterLostPb[record.onClusterLost],
    effectivePodPolicy: toProtoPodPolicy({ level, allow: [...allow, ...warn], limits }),
  };
}

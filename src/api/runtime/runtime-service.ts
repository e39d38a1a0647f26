import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ListedRuntime, RuntimeOutcome } from "../../core/admin/training-runtime.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import { runtimeErrors } from "../../core/kinds/trainjob/check-runtime.ts";
import {
  type RuntimeName,
  type RuntimeSettings,
  runtimeText,
  type TrainingRuntime,
} from "../../core/kinds/trainjob/training-runtime.ts";
import type {
  ListRuntimesRequest,
  Runtime,
  RuntimeSchema,
  RuntimeService,
} from "../../gen/gangway/v1/runtime_service_pb.ts";
import type { JsonObject } from "../../runtime/json.ts";
import type { TrainingRuntimes } from "../ports.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { CallAccess } from "../rpc/call-access.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { badPageToken, failedPrecondition, invalidFields, notFound, tooMany } from "../rpc/rpc-error.ts";

const PAGE_SIZE_DEFAULT = 100;

export function runtimeService(runtimes: TrainingRuntimes): ServiceHandlers<typeof RuntimeService> {
  return {
    createRuntime: async ({ runtime, validateOnly }) => {
      const sent = sentRuntime(runtime);
      return { runtime: changed(await runtimes.create(sent, { isTried: validateOnly }), sent) };
    },
    getRuntime: async ({ namespace, name }) => {
      const found = existingRecord(await runtimes.find({ namespace, name }), refOf({ namespace, name }));
      return { runtime: toProtoRuntime(found) };
    },
    listRuntimes: (request, { access }) => listRuntimes(runtimes, request, access),
    updateRuntime: async ({ runtime, validateOnly }) => {
      const sent = sentRuntime(runtime);
      const change = { ...sent, version: Number(runtime?.resourceVersion ?? "") };
      return { runtime: changed(await runtimes.update(change, { isTried: validateOnly }), sent) };
    },
    deleteRuntime: async ({ namespace, name }) => {
      changed(await runtimes.remove({ namespace, name }), { namespace, name });
      return {};
    },
  };
}

async function listRuntimes(runtimes: TrainingRuntimes, request: ListRuntimesRequest, access: CallAccess) {
  const { namespace, allNamespaces, pageSize, pageToken } = request;
  if (allNamespaces && namespace !== "") {
    throw invalidFields([{ field: "namespace", message: "must be empty if all_namespaces is true" }]);
  }
  const page = await runtimes.list({
    namespaces: allNamespaces ? seenNamespaces(access) : [...new Set([namespace, ""])],
    after: pageToken || null,
    pageSize: pageSize || PAGE_SIZE_DEFAULT,
  });
  if (page === "badCursor") throw badPageToken();
  return { runtimes: page.runtimes.map(toProtoRuntime), nextPageToken: page.next ?? "" };
}

/** Null: all. Everyone who may call the RPC sees the runtimes of the installation. */
function seenNamespaces(access: CallAccess): readonly string[] | null {
  const seen = access.namespaces("runtimes.get");
  return seen === null ? null : [...seen, ""];
}

function refOf(of: RuntimeName) {
  return { type: "training runtime", name: runtimeText(of) };
}

function sentRuntime(sent: Runtime | undefined): RuntimeSettings {
  const { namespace = "", name = "", labels = {}, spec } = sent ?? {};
  if (spec === undefined) throw invalidFields([{ field: "runtime.spec", message: "must be set" }]);
  const errors = runtimeErrors(spec as JsonObject);
  if (errors.length > 0) throw invalidFields(errors.map(({ path, ...error }) => ({ field: fieldOf(path), ...error })));
  return { namespace, name, labels: { ...labels }, spec: spec as JsonObject };
}

/** Empty: the request as a whole. */
function fieldOf(path: string): FieldNote["field"] {
  return path === "" ? "" : `runtime.${path}`;
}

/** Returns the runtime after a change. Throws if it was refused. */
function changed(outcome: RuntimeOutcome, of: RuntimeName) {
  const ref = refOf(of);
  switch (outcome.kind) {
    case "unknownNamespace":
      throw notFound({ type: "namespace", name: of.namespace });
    case "shipped":
      throw failedPrecondition({
        type: "SHIPPED_RUNTIME",
        subject: `${ref.type} ${ref.name}`,
        description: "is shipped with Gangway, so it cannot be created, changed or deleted; use another name",
      });
    case "full": {
      const home = of.namespace === "" ? "the installation" : `namespace ${of.namespace}`;
      const description = `has ${outcome.max} training runtimes, which is the maximum; delete one that no job needs`;
      throw tooMany("TOO_MANY_TRAINING_RUNTIMES", { subject: home, description });
    }
    default:
      return toProtoRuntime(changedRecord(outcome, ref));
  }
}

function toProtoRuntime(runtime: ListedRuntime & Partial<TrainingRuntime>): MessageInitShape<typeof RuntimeSchema> {
  const { namespace, name, labels, spec, isShipped = false } = runtime;
  return {
    ...{ namespace, name, labels: { ...labels }, shipped: isShipped },
    ...(spec === undefined ? {} : { spec: spec as Exclude<Runtime["spec"], undefined> }),
    ...(isShipped
      ? {}
      : { resourceVersion: String(runtime.version), createTime: timestampFromMs(runtime.createTimeMs) }),
  };
}

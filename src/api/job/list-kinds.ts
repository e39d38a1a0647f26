import type { JsonObject as ProtoJson } from "@bufbuild/protobuf";
import { isService, type Kind } from "../../core/kinds/kind.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import { restartPolicyToProto, restartScopeToProto } from "./convert-enums.ts";

/** Returns the served kinds with their roles, defaults, schemas and examples. */
export function listKinds(kinds: Registry) {
  return { kinds: kinds.all.map((kind) => toProtoKind(kind, kinds)) };
}

function toProtoKind(kind: Kind, { defaultKind, entryOf }: Registry) {
  const withoutPods = isService(kind);
  const roles = kind.roles?.map(({ name, min, max }) => ({
    name,
    minReplicas: min,
    maxReplicas: max ?? undefined,
  })) ?? [{ name: "" }];
  return {
    name: kind.name,
    withoutPods,
    isDefault: kind === defaultKind,
    plugin: entryOf(kind.name)?.id ?? "",
    description: kind.description,
    apiVersion: kind.apiVersion,
    replicaSpecsField: kind.replicaSpecsField,
    hasOwnForm: kind.readSpec !== undefined,
    roles,
    defaultContainer: kind.defaultContainer ?? "",
    portName: kind.defaultPort?.name ?? "",
    port: kind.defaultPort?.number ?? 0,
    defaultRestartPolicy: restartPolicyToProto(kind.defaults.restartPolicy),
    defaultRestartScope: restartScopeToProto(kind.defaults.restartScope),
    defaultBackoffLimit: kind.defaults.backoffLimit ?? undefined,
    kindSpecSchema: kind.kindSpecSchema as ProtoJson,
    example: kind.example as ProtoJson,
  };
}

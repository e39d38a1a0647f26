import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AccessSource, BindingRecord, BoundTo, NewBinding, RoleRecord } from "../../core/access/binding.ts";
import { type BoundScope, INSTALLATION } from "../../core/access/scope.ts";
import {
  type AccessBinding,
  type AccessBindingSchema,
  type AccessRoleSchema,
  type AccessScope,
  type AccessScopeSchema,
  AccessSource as Source,
} from "../../gen/gangway/v1/access_service_pb.ts";
import { toTimestamp } from "../rpc/timestamp.ts";

const SOURCE: Readonly<Record<AccessSource, Source>> = {
  "built-in": Source.BUILT_IN,
  file: Source.FILE,
  store: Source.CALL,
};

export function toProtoRole({ name, permissions, ...record }: RoleRecord): MessageInitShape<typeof AccessRoleSchema> {
  return { name, permissions: [...permissions], ...recorded(record) };
}

export function toProtoBinding(binding: BindingRecord): MessageInitShape<typeof AccessBindingSchema> {
  const { name, to, role, scope } = binding;
  return { name, to: { case: to.kind, value: to.name }, role, scope: toProtoScope(scope), ...recorded(binding) };
}

function recorded(record: Pick<RoleRecord, "source" | "version" | "createTimeMs" | "createdBy">) {
  const { source, version, createTimeMs, createdBy } = record;
  const resourceVersion = source === "store" ? String(version) : "";
  return { source: SOURCE[source], resourceVersion, createTime: toTimestamp(createTimeMs), createdBy };
}

export function toProtoScope({ kind, name }: BoundScope): MessageInitShape<typeof AccessScopeSchema> {
  if (kind === "installation") return {};
  return { of: { case: kind === "pool" ? "poolPrefix" : kind, value: name } };
}

/** The scope of a request. Omitted or empty: the installation. */
export function sentScope(scope: AccessScope | undefined): BoundScope {
  const of = scope?.of;
  if (of?.case === undefined) return INSTALLATION;
  return { kind: of.case === "poolPrefix" ? "pool" : of.case, name: of.value };
}

/** The binding of a request. Null: it says nobody who gets the role. */
export function sentBinding(binding: AccessBinding | undefined): NewBinding | null {
  if (binding?.to.case === undefined) return null;
  const to: BoundTo = { kind: binding.to.case, name: binding.to.value };
  return { name: binding.name, to, role: binding.role, scope: sentScope(binding.scope) };
}

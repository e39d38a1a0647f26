import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TenantLimits, TenantName, TenantRecord } from "../../core/job/tenant-limits.ts";
import type {
  ListTenantLimitsResponseSchema,
  SetTenantLimitsRequest,
  SetTenantLimitsResponseSchema,
  TenantLimitsSchema,
} from "../../gen/gangway/v1/namespace_service_pb.ts";
import type { Admin } from "../ports.ts";
import { existingRecord } from "../rpc/admin-outcome.ts";
import type { CallContext } from "../rpc/call.ts";

export async function setTenantLimits(
  { admin, limitsChanged }: { readonly admin: Admin; readonly limitsChanged: () => Promise<void> },
  { limits: sent }: SetTenantLimitsRequest,
  { identity }: Pick<CallContext, "identity">,
): Promise<MessageInitShape<typeof SetTenantLimitsResponseSchema>> {
  const tenant: TenantName = { kind: sent?.tenant.case ?? "namespace", name: sent?.tenant.value ?? "" };
  const limits: TenantLimits = {
    maxWaitingJobs: sent?.maxWaitingJobs || null,
    maxRunningJobs: sent?.maxRunningJobs || null,
    maxPods: sent?.maxPods || null,
    maxTemplateBytes: Number(sent?.maxTemplateBytes ?? 0n) || null,
    maxRobotTokens: sent?.maxRobotTokens || null,
  };
  const set = await admin.setTenantLimits({ tenant, limits }, identity.subject);
  await limitsChanged();
  return { limits: toProto(existingRecord(set, { type: tenant.kind, name: tenant.name })) };
}

/** Leaves out the tenants that the caller may not see. */
export async function listTenantLimits(
  admin: Admin,
  { access }: Pick<CallContext, "access">,
): Promise<MessageInitShape<typeof ListTenantLimitsResponseSchema>> {
  const seen = (await admin.listTenants()).filter(({ tenant }) => access.may("namespaces.get", tenant));
  return { limits: seen.map(toProto) };
}

function toProto({ tenant, limits, use }: TenantRecord): MessageInitShape<typeof TenantLimitsSchema> {
  return {
    tenant: { case: tenant.kind, value: tenant.name },
    maxWaitingJobs: limits.maxWaitingJobs ?? 0,
    maxRunningJobs: limits.maxRunningJobs ?? 0,
    maxPods: limits.maxPods ?? 0,
    maxTemplateBytes: BigInt(limits.maxTemplateBytes ?? 0),
    maxRobotTokens: limits.maxRobotTokens ?? 0,
    use: { ...use, pods: BigInt(use.pods), templateBytes: BigInt(use.templateBytes) },
  };
}

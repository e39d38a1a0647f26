import type { TenantName } from "../../job/tenant-limits.ts";

/** A namespace or a project that limits its admitted jobs. */
export type LimitedTenant = TenantName & { readonly maxRunningJobs: number };

/** The key of a tenant. Names have no space. */
export function tenantKey({ kind, name }: TenantName): string {
  return `${kind} ${name}`;
}

import { tenantsOf } from "../../job/tenant-limits.ts";
import type { PlanGang } from "../plan-gang.ts";
import { type LimitedTenant, type RunningJobs, tenantKey } from "../running-jobs.ts";

/** The admitted jobs of each namespace and project, and which of them limit these. */
export class TenantCounts {
  /** By `tenantKey`. */
  readonly limited = new Map<string, LimitedTenant>();
  readonly #counts = new Map<string, number>();
  #wereLimited = false;

  /** Sets or takes away the limit of a tenant, by its key. */
  set(key: string, tenant: LimitedTenant | null): void {
    if (tenant === null) this.limited.delete(key);
    else this.limited.set(key, tenant);
  }

  /** Counts an admitted job more or less. */
  count(gang: PlanGang, times: 1 | -1): void {
    for (const tenant of tenantsOf(gang)) {
      const key = tenantKey(tenant);
      const count = (this.#counts.get(key) ?? 0) + times;
      if (count === 0) this.#counts.delete(key);
      else this.#counts.set(key, count);
    }
  }

  addTo(running: RunningJobs): void {
    for (const key of this.limited.keys()) running.addOf(key, this.#counts.get(key) ?? 0);
  }

  /** True if some tenant has a limit, or had one when this was last asked. */
  areLimited(): boolean {
    const were = this.#wereLimited;
    this.#wereLimited = this.limited.size > 0;
    return were || this.#wereLimited;
  }
}

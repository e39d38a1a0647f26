import { tenantsOf } from "../../job/tenant-limits.ts";
import { type LimitedTenant, tenantKey } from "../model/limited-tenant.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { PlanQueue } from "../model/snapshot.ts";

/** The reason of a job that waits because its queue runs as many jobs as it may. */
export const QUEUE_FULL = "QueueFull";
/** The reason of a job that waits because its namespace or its project runs as many jobs as it may. */
export const TENANT_FULL = "TenantFull";

type Limited = Pick<PlanQueue, "name" | "parent" | "maxRunningJobs">;

/** Where an admitted job counts. */
type Place = Pick<PlanGang, "queue" | "namespace" | "project">;

/**
 * How many jobs are admitted in each queue and in those below it, and in each namespace and project with a limit.
 * Counts nothing of queues if none has a limit.
 */
export class RunningJobs {
  readonly #queues: ReadonlyMap<string, Limited>;
  readonly #tenants: ReadonlyMap<string, LimitedTenant>;
  /** By queue, and by the key of a tenant, which no queue has. */
  readonly #counts = new Map<string, number>();
  readonly #isLimited: boolean;

  constructor(queues: ReadonlyMap<string, Limited>, tenants: ReadonlyMap<string, LimitedTenant> = new Map()) {
    this.#queues = queues;
    this.#tenants = tenants;
    this.#isLimited = [...queues.values()].some(({ maxRunningJobs = null }) => maxRunningJobs !== null);
  }

  /** Counts one job more. */
  add(place: Place): void {
    this.addIn(place.queue, 1);
    if (this.#tenants.size === 0) return;
    for (const tenant of tenantsOf(place)) this.addOf(tenantKey(tenant), 1);
  }

  /** Counts more jobs of a queue alone. */
  addIn(queue: string, jobs: number): void {
    if (!this.#isLimited) return;
    for (const { name } of this.#path(queue)) this.#counts.set(name, this.of(name) + jobs);
  }

  /** Counts more jobs of a tenant alone, by its key. */
  addOf(tenant: string, jobs: number): void {
    if (this.#tenants.has(tenant)) this.#counts.set(tenant, this.of(tenant) + jobs);
  }

  /** The jobs of a queue, or of a tenant by its key. */
  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** The nearest queue on the path to the root that may not run one more job. Null: there is none. */
  fullAt(queue: string): string | null {
    if (!this.#isLimited) return null;
    for (const { name, maxRunningJobs = null } of this.#path(queue)) {
      if (maxRunningJobs !== null && this.of(name) >= maxRunningJobs) return name;
    }
    return null;
  }

  /** The tenant of a job that may not run one more: its namespace, else its project. Null: there is none. */
  fullTenant(place: Pick<Place, "namespace" | "project">): LimitedTenant | null {
    if (this.#tenants.size === 0) return null;
    for (const tenant of tenantsOf(place)) {
      const limited = this.#tenants.get(tenantKey(tenant));
      if (limited !== undefined && this.of(tenantKey(limited)) >= limited.maxRunningJobs) return limited;
    }
    return null;
  }

  #path(queue: string): readonly Limited[] {
    const path: Limited[] = [];
    let at = this.#queues.get(queue);
    // A tree that changes meanwhile may be read as a circle.
    for (; at !== undefined && path.length < this.#queues.size; at = this.#queues.get(at.parent ?? "")) path.push(at);
    return path;
  }
}

/** Why jobs of a queue or a tenant wait: `queue nlp runs 3 jobs, and may run 3 at most`. */
export function fullMessage(full: string, of: { readonly running: number; readonly limit: number }): string {
  return `${full} runs ${of.running} ${of.running === 1 ? "job" : "jobs"}, and may run ${of.limit} at most`;
}

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

  /** True if some tenant has a limit, or had one when that was recorded last. */
  areLimited(): boolean {
    return this.#wereLimited || this.limited.size > 0;
  }

  /** Records whether some tenant has a limit. */
  noteLimited(): void {
    this.#wereLimited = this.limited.size > 0;
  }
}

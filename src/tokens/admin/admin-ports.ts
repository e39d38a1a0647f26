import type { QuotaEvents } from "../../core/quota/events.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Domains } from "../domain/domains.ts";
import type { LimitChanges } from "../limit-changes.ts";
import type { PoolCache } from "../pool-cache.ts";
import type { QuotaStore } from "../ports.ts";

export type AdminPorts = {
  readonly clock: Clock;
  readonly domains: Domains;
  readonly store: QuotaStore;
  readonly events: QuotaEvents;
  readonly cache: PoolCache;
  readonly limitChanges: Pick<LimitChanges, "changed">;
  readonly wakePlanner: () => void;
};

import type { Clock } from "../../runtime/clock.ts";
import type { Domains } from "./domains.ts";
import type { PoolFacts } from "./pool-facts.ts";
import type { QuotaEvents, QuotaStore } from "./ports.ts";

/** What admins' operations need. */
export type AdminPorts = {
  readonly clock: Clock;
  readonly domains: Domains;
  readonly store: QuotaStore;
  readonly events: QuotaEvents;
  readonly facts: PoolFacts;
  readonly onPoolChanged: () => void;
};

import { CounterState } from "../../core/quota/counter-state.ts";
import type { Counters } from "../../core/quota/counters.ts";

/** Counters that live in this process alone and are closed until they are opened: what serves a single process. */
export function inProcessCounters(): Counters {
  const state = new CounterState();
  return {
    open: async (epoch, rows, limits) => state.open(epoch, rows, limits),
    grant: async (request) => state.grant(request),
    free: async (epoch, fence) => state.free(epoch, fence),
    setLimits: async (epoch, limits) => state.setLimits(epoch, limits),
    used: async () => state.used(),
  };
}

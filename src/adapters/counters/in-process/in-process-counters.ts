import { CounterState } from "../../../core/quota/counter-state.ts";
import type { Counters } from "../../../core/quota/counters.ts";

/**
 * Serves installations of a single process: counters in memory, which are lost with the process. They are closed until
 * they are opened.
 */
export function inProcessCounters(): Counters {
  const listeners = new Set<(waiter: string) => void>();
  // Runs after the call that made the offer has answered, since a listener may call the counters again.
  const state = new CounterState((waiter) => {
    queueMicrotask(() => {
      for (const listener of listeners) listener(waiter);
    });
  });
  return {
    open: async (epoch, of) => state.open(epoch, of),
    grant: async (request) => state.grant(request),
    grantAll: async (epoch, requests) => state.grantAll(epoch, requests),
    free: async (epoch, allocations) => state.free(epoch, allocations),
    giveBack: async (tokens) => state.giveBack(tokens),
    shrink: async (epoch, allocations) => state.shrink(epoch, allocations),
    turnOver: async (epoch, turns) => state.turnOver(epoch, turns),
    confirm: async (epoch, allocations) => state.confirm(epoch, allocations),
    renew: async (epoch, of) => state.renew(epoch, of),
    stand: async (request) => state.stand(request),
    leave: async (epoch, waiter) => state.leave(epoch, waiter),
    tick: async (epoch, of) => state.tick(epoch, of),
    report: async (epoch) => state.report(epoch),
    setLimits: async (epoch, limits) => state.setLimits(epoch, limits),
    used: async () => state.used(),
    moment: async (epoch, tokens) => state.moment(epoch, tokens),
    held: async (after, count) => state.held(after, count),
    find: async (tokens) => state.find(tokens),
    waiting: async () => state.waiting(),
    onOffer: (listener) => {
      const own = (waiter: string) => listener(waiter);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
  };
}

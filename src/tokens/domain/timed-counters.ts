import type { Counters } from "../../core/quota/counters.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Wraps counters, and reports the duration of each call, also of a failed one. */
export function timedCounters<C extends Counters>(
  counters: C,
  clock: Pick<Clock, "monotonicMs">,
  onScript: (facts: { readonly verb: string; readonly tookMs: number }) => void,
): C {
  const timed = <Given extends readonly unknown[], Answer>(
    verb: string,
    call: (...given: Given) => Promise<Answer>,
  ): ((...given: Given) => Promise<Answer>) => {
    return async (...given) => {
      const startedMs = clock.monotonicMs();
      try {
        return await call(...given);
      } finally {
        onScript({ verb, tookMs: clock.monotonicMs() - startedMs });
      }
    };
  };
  return {
    ...counters,
    open: timed("open", counters.open),
    grant: timed("grant", counters.grant),
    grantAll: timed("grantAll", counters.grantAll),
    free: timed("free", counters.free),
    giveBack: timed("giveBack", counters.giveBack),
    shrink: timed("shrink", counters.shrink),
    turnOver: timed("turnOver", counters.turnOver),
    confirm: timed("confirm", counters.confirm),
    renew: timed("renew", counters.renew),
    stand: timed("stand", counters.stand),
    leave: timed("leave", counters.leave),
    tick: timed("tick", counters.tick),
    report: timed("report", counters.report),
    setLimits: timed("setLimits", counters.setLimits),
    used: timed("used", counters.used),
    moment: timed("moment", counters.moment),
    held: timed("held", counters.held),
    find: timed("find", counters.find),
    waiting: timed("waiting", counters.waiting),
  };
}

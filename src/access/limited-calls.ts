/** Lets calls of one caller in up to its limits, so that it leaves room for others. */
import {
  type CallLimitSettings,
  type CallLimits,
  type CallPlace,
  costOfBytes,
  type LimitCalls,
  type LimitedCall,
  limitsOf,
  type PlaceName,
  placeOf,
  UNLIMITED_CALL,
} from "../core/access/call-limits.ts";
import type { Identity } from "../core/access/identity.ts";
import type { Clock } from "../runtime/clock.ts";
import { type Soon, whenThere } from "../runtime/soon.ts";
import { type CallRates, dearest } from "./call-rates.ts";
import { RefusalPace } from "./refusal-pace.ts";

export type LimitPorts = {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly settings: () => CallLimitSettings;
  readonly rates: CallRates;
  /** Called for each call that is refused. */
  readonly onLimited: (limit: LimitedCall["limit"]) => void;
};

/** Calls end at any time; most do within this one. */
const PLACE_RETRY_MS = 1_000;

export function limitCalls({ clock, settings, rates, onLimited }: LimitPorts): LimitCalls {
  const places = new Map<string, number>();
  const pace = new RefusalPace(clock);
  const limited = (subject: string, of: Pick<LimitedCall, "limit" | "max" | "retryMs">): LimitedCall => {
    onLimited(of.limit);
    const heldMs = pace.heldMs(subject);
    return { kind: "limited", ...of, retryMs: Math.max(of.retryMs - heldMs, 1), heldMs };
  };
  const take = (subject: string, cost: number, limits: CallLimits): Soon<LimitedCall | null> => {
    const rate = rateOf(limits);
    if (rate === null || cost === 0) return null;
    const { callsPerSecond: max } = rate;
    return whenThere(rates.take(subject, Math.min(cost, dearest(rate)), rate), (retryMs) =>
      retryMs === null ? null : limited(subject, { limit: "callsPerSecond", max, retryMs }),
    );
  };
  const hold = (subject: string, place: PlaceName, limits: CallLimits): CallPlace | LimitedCall => {
    const max = limits[place];
    const key = `${place} ${subject}`;
    const held = places.get(key) ?? 0;
    if (max !== null && held >= max) return limited(subject, { limit: place, max, retryMs: PLACE_RETRY_MS });
    if (max !== null) places.set(key, held + 1);
    let holds = max !== null;
    const leave = () => {
      if (!holds) return;
      holds = false;
      const left = (places.get(key) ?? 1) - 1;
      if (left > 0) places.set(key, left);
      else places.delete(key);
    };
    return {
      kind: "entered",
      isLimited: true,
      pay: (bytes) => take(subject, costOfBytes(bytes), limits),
      charge: (bytes) => {
        const cost = costOfBytes(bytes);
        const rate = rateOf(limits);
        if (rate !== null && cost > 0) void rates.take(subject, Math.min(cost, dearest(rate)), rate);
      },
      leave,
    };
  };
  const enter = (caller: Identity, rpc: string): Soon<CallPlace | LimitedCall> => {
    const place = placeOf(rpc);
    if (place === null) return UNLIMITED_CALL;
    const limits = limitsOf(caller, settings());
    const { subject } = caller;
    return whenThere(take(subject, 1, limits), (refused) => refused ?? hold(subject, place, limits));
  };
  return { enter, robotsOf: (caller) => limitsOf(caller, settings()).robots };
}

/** A burst without a limit is one without a rate. */
function rateOf({ callsPerSecond, burst }: CallLimits) {
  return callsPerSecond === null || burst === null ? null : { callsPerSecond, burst };
}

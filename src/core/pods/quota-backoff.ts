import { doublingMs } from "../../runtime/doubling.ts";
import { arrayAt, type JsonObject, objectAt } from "../../runtime/json.ts";
import { addResources, podRequests, type Resources, readResources } from "./resources.ts";

/** What has been learned of the quota of one namespace in one cluster. Times are those of whoever asks. */
export type QuotaBackoff = {
  /** By the names that quotas use; more than this is not asked for until they lapse. */
  readonly ceilings: Resources;
  readonly lapsesAtMs: number;
  /** How often in a row quotas refused after what was learned had lapsed. */
  readonly refusals: number;
};

const BACKOFF = { firstMs: 2_000, longestMs: 120_000 };
/** A server that asks to be left alone for longer is asked again all the same: it may be another one by then. */
const RETRY_AFTER_MS_MAX = 120_000;

/**
 * Learns from a refusal: until it lapses the smallest ceiling of each resource counts. While it lasts it is not made longer, so that pods that
 * fit keep nobody waiting; the next time it is twice as long, 2 s to 120 s. Source: Flyte's `ComputeResourceBackOffHandler`.
 */
export function learn(known: QuotaBackoff | null, ceilings: Resources, nowMs: number): QuotaBackoff {
  if (known !== null && nowMs < known.lapsesAtMs) {
    const names = new Set([...Object.keys(known.ceilings), ...Object.keys(ceilings)]);
    const least = (name: string) => Math.min(known.ceilings[name] ?? Infinity, ceilings[name] ?? Infinity);
    return { ...known, ceilings: Object.fromEntries([...names].map((name) => [name, least(name)])) };
  }
  const refusals = (known?.refusals ?? 0) + 1;
  const waitMs = doublingMs(BACKOFF, refusals - 1);
  return { ceilings, lapsesAtMs: nowMs + waitMs, refusals };
}

/** True if a pod may be asked for: everything has lapsed, or it asks for no more than any ceiling. A refusal that named none holds all. */
export function mayAsk(known: QuotaBackoff | null, wanted: Resources, nowMs: number): boolean {
  if (known === null || nowMs >= known.lapsesAtMs) return true;
  const ceilings = Object.entries(known.ceilings);
  return ceilings.length > 0 && ceilings.every(([name, ceiling]) => (wanted[name] ?? 0) <= ceiling);
}

/** True once nothing of it matters any more, not even how often it was refused. */
export function isForgotten(known: QuotaBackoff, nowMs: number): boolean {
  return nowMs >= known.lapsesAtMs + BACKOFF.longestMs;
}

/** Until when nothing more is asked of a server that asks for that: the latest of all that it has said, two minutes from now at most. */
export function leaveAlone(untilMs: number, retryAfterMs: number, nowMs: number): number {
  return Math.max(untilMs, nowMs + Math.min(Math.max(retryAfterMs, 0), RETRY_AFTER_MS_MAX));
}

/** What a pod takes of its namespace's quotas, by the names that they use, in thousandths. Source: Kubernetes' `PodUsageFunc`. */
export function quotaUse(podSpec: JsonObject): Resources {
  const { pods = 0, ...requests } = podRequests(podSpec);
  const containers = ["containers", "initContainers"].map((list) => arrayAt(podSpec, list));
  const limitsOf = (list: readonly unknown[]) =>
    list.map((container) => readResources(objectAt(objectAt(container, "resources"), "limits")));
  const [running = [], starting = []] = containers.map(limitsOf);
  const sum = running.reduce<Resources>(addResources, {});
  const use: Record<string, number> = { pods, "count/pods": pods };
  for (const [name, amount] of Object.entries(requests)) {
    use[`requests.${name}`] = amount;
    use[name] = amount;
  }
  for (const limits of [sum, ...starting]) {
    for (const [name, amount] of Object.entries(limits))
      use[`limits.${name}`] = Math.max(use[`limits.${name}`] ?? 0, amount);
  }
  return use;
}

import { doublingMs } from "../../../runtime/doubling.ts";
import { arrayAt, type JsonObject, objectAt } from "../../../runtime/json.ts";
import { addResources, podRequests, type Resources, readResources } from "../resources.ts";

/** The facts that refusals have shown about the quota of one namespace in one cluster, by the caller's clock. */
export type QuotaBackoff = {
  /** The ceilings, by the names that quotas use. Pods that need more wait until the ceilings expire. */
  readonly ceilings: Resources;
  readonly lapsesAtMs: number;
  /** How often in a row a quota refused a pod after the ceilings had expired. */
  readonly refusals: number;
};

const BACKOFF = { firstMs: 2_000, longestMs: 120_000 };
/** The longest time without calls that a server may ask for. A later call may reach another server. */
const RETRY_AFTER_MS_MAX = 120_000;

/**
 * Learns from a refusal. The smallest ceiling of each resource counts until it expires. A new refusal does not extend a
 * ceiling that still counts, so that pods that fit do not delay others. Each next ceiling lasts twice as long, from 2 s
 * to 120 s. Source: Flyte's `ComputeResourceBackOffHandler`.
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

/**
 * True if a pod may be created: the ceilings have expired, or the pod fits below all of them. A refusal that named no
 * resource holds back all pods.
 */
export function mayAsk(known: QuotaBackoff | null, wanted: Resources, nowMs: number): boolean {
  if (known === null || nowMs >= known.lapsesAtMs) return true;
  const ceilings = Object.entries(known.ceilings);
  return ceilings.length > 0 && ceilings.every(([name, ceiling]) => (wanted[name] ?? 0) <= ceiling);
}

/** True once the ceilings and the number of refusals have no effect any more. */
export function isForgotten(known: QuotaBackoff, nowMs: number): boolean {
  return nowMs >= known.lapsesAtMs + BACKOFF.longestMs;
}

/** The time until which a server wants no calls: the latest of its answers, at most two minutes from now. */
export function leaveAlone(untilMs: number, retryAfterMs: number, nowMs: number): number {
  return Math.max(untilMs, nowMs + Math.min(Math.max(retryAfterMs, 0), RETRY_AFTER_MS_MAX));
}

/**
 * The amounts that a pod uses of its namespace's quotas, by the names that quotas use, in thousandths. Source:
 * Kubernetes' `PodUsageFunc`.
 */
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

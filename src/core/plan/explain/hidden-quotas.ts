/**
 * Takes pools and queues that a caller may not see out of the messages for why a gang waits, and out of the answers
 * that come with them. `refuse`, `message-parts`, `cluster-messages`, `blocked-messages`, `queue-stop` and
 * `running-jobs` make the messages.
 */
import type { Scope } from "../../quota/counters.ts";
import type { BlockedPod } from "../model/blocked-pod.ts";
import type { ClusterRefusal, PlannedAdmission, QuotaRefusal } from "../model/plan-types.ts";

/** Decides which pools and queues a caller may see. */
export type MaySeeQuota = {
  readonly pool: (name: string) => boolean;
  readonly queue: (name: string) => boolean;
};

const ANOTHER = { pool: "another pool", queue: "another queue" } as const;

type Place = {
  /** The name is the group `name`. What is between it and the groups `before` and `after` goes with it. */
  readonly words: RegExp;
  readonly of: keyof MaySeeQuota;
  /** Omitted: as in `ANOTHER`. */
  readonly instead?: string;
};

/** Where messages name a pool or a queue. A name ends with a letter or a digit. */
const PLACES: readonly Place[] = [
  { of: "pool", words: /(?<before>\bneeds \d+ of )(?<name>[-\w.:/]*\w)(?<after>;)/g },
  { of: "pool", words: /(?<before>\b)pool (?<name>[-\w.:/]*\w)(?<after> uses | may use | is frozen|, which )/g },
  { of: "pool", words: /(?<before> has no quota for )(?<name>[-\w.:/]*\w)(?<after>;|$)/g },
  { of: "pool", words: /(?<before>\d [-\w./]+ \()(?<name>[-\w.:/]*\w)(?<after>\))/g },
  { of: "pool", words: /(?<before>) of flavor (?<name>[-\w.:/]*\w)(?<after>)/g, instead: "" },
  { of: "pool", words: /(?<before>\bit has no )(?<name>[-\w.:/]*\w)(?<after>;|$)/g, instead: "such pool" },
  { of: "queue", words: /(?<before>\b)queue (?<name>[-\w]*\w)(?<after> uses | may use | runs \d| in pool )/g },
  { of: "queue", words: /(?<before>\b)queue (?<name>[-\w]*\w)(?<after> is frozen| is stopped|, above )/g },
];
/** A list of pools, up to the next words. */
const LINE = /(\bin the waiting line of )([^;]*)/g;
const AND = " and ";

/** The messages without the pools and queues that the caller may not see. Their numbers stay. */
export function messageWithoutQuotas(text: string, maySee: MaySeeQuota): string {
  const shown = PLACES.reduce(
    (told, { words, of, instead }) =>
      told.replace(words, (found, ...rest) => {
        const { before = "", name = "", after = "" } = rest.at(-1) as Record<string, string>;
        return maySee[of](name) ? found : before + (instead ?? ANOTHER[of]) + after;
      }),
    text,
  );
  return shown.replace(LINE, (_, before: string, pools: string) => {
    const named = pools.split(AND).map((pool) => (maySee.pool(pool) ? pool : ANOTHER.pool));
    return before + [...new Set(named)].join(AND);
  });
}

/** The quotas of the pools that the caller may see. A queue that it may not see has no name. */
export function quotasWithoutNames(quotas: readonly QuotaRefusal[], maySee: MaySeeQuota): readonly QuotaRefusal[] {
  return quotas
    .filter(({ flavor }) => maySee.pool(flavor))
    .map((quota) => ({ ...quota, scope: scopeWithoutQueue(quota.scope, maySee) }));
}

function scopeWithoutQueue(scope: Scope, maySee: MaySeeQuota): Scope {
  return scope.kind === "queue" && !maySee.queue(scope.queue) ? { ...scope, queue: "" } : scope;
}

export function clusterWithoutPools(refusal: ClusterRefusal, maySee: MaySeeQuota): ClusterRefusal {
  const { flavor, blocked, message } = refusal;
  return {
    ...refusal,
    message: messageWithoutQuotas(message, maySee),
    flavor: flavor !== null && maySee.pool(flavor) ? flavor : null,
    blocked: blocked && blockedWithoutPools(blocked, maySee),
  };
}

function blockedWithoutPools(blocked: BlockedPod, maySee: MaySeeQuota): BlockedPod {
  const obstacles = blocked.obstacles.map((one) => {
    if (one.kind !== "label" || one.flavor === undefined || maySee.pool(one.flavor)) return one;
    const { flavor: _, ...rest } = one;
    return rest;
  });
  return { ...blocked, obstacles };
}

export function admissionWithoutPools(admission: PlannedAdmission, maySee: MaySeeQuota): PlannedAdmission {
  const shown = Object.entries(admission.flavors).filter(([, flavor]) => maySee.pool(flavor));
  const allocations = admission.allocations.filter(({ pool }) => maySee.pool(pool));
  return { ...admission, flavors: Object.fromEntries(shown), allocations };
}

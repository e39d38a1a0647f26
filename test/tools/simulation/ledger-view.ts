import type { Db } from "../../../src/adapters/store/db/db.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";

export type ViewedAllocation = {
  readonly id: number;
  readonly pool: string;
  readonly token: string;
  /** The token that it was taken from for an heir. Null: it was granted. */
  readonly cutToken: string | null;
  readonly queue: string | null;
  readonly amount: number;
  /** Null: a caller holds it. */
  readonly jobUid: string | null;
  readonly admission: number | null;
  /** True: it is held for a nominee. */
  readonly hold: boolean;
  /** The ids of its heirs, the first goes first. */
  readonly heirs: readonly number[];
};

export type ViewedQueue = {
  readonly name: string;
  readonly parent: string | null;
  readonly frozen: boolean;
  readonly policy: QueuePolicy;
  /** `nominal` is the queue's own, with what is granted until a time. */
  readonly quotas: readonly {
    readonly pool: string;
    readonly nominal: number;
    readonly borrowingLimit: number | null;
    readonly lendingLimit: number | null;
  }[];
};

/** What the ledger holds at one moment, and the limits that bind it. */
export type LedgerView = {
  readonly allocations: readonly ViewedAllocation[];
  readonly heirs: readonly {
    readonly id: number;
    readonly jobUid: string;
    readonly pool: string;
    readonly lacks: number;
    /** False: its job is no nominee any more. */
    readonly nominated: boolean;
  }[];
  readonly pools: readonly { readonly name: string; readonly quota: number | null; readonly frozen: boolean }[];
  readonly queues: readonly ViewedQueue[];
};

/** Reads the tables themselves, not through the code under test. */
export async function viewLedger(db: Db): Promise<LedgerView> {
  const [row] = await db.query<{ view: LedgerView }>(VIEW);
  if (row === undefined) throw new Error("a statement without tables has one row");
  const queues = row.view.queues.map((queue) => ({ ...queue, policy: { ...DEFAULT_POLICY, ...queue.policy } }));
  return { ...row.view, queues };
}

const VIEW = `
select json_build_object(
  'allocations', (select coalesce(json_agg(json_build_object(
      'id', id, 'pool', pool, 'token', token, 'cutToken', cut_token, 'queue', queue, 'amount', amount,
      'jobUid', job_uid, 'admission', admission, 'hold', hold, 'heirs', coalesce(heirs, '{}')
    )), '[]') from allocations where released_ms is null),
  'heirs', (select coalesce(json_agg(json_build_object(
      'id', h.id, 'jobUid', job_uid, 'pool', pool, 'lacks', lacks,
      'nominated', coalesce(j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null
                            and j.status ->> 'nomination' is not null, false)
    )), '[]') from token_heirs h left join jobs j on j.uid = h.job_uid),
  'pools', (select coalesce(json_agg(json_build_object(
      'name', name, 'quota', quota, 'frozen', frozen is not null)), '[]') from pools),
  'queues', (select coalesce(json_agg(json_build_object(
      'name', name, 'parent', parent, 'frozen', frozen is not null, 'policy', coalesce(policy, '{}'),
      'quotas', (select coalesce(json_agg(json_build_object(
          'pool', flavor, 'nominal', nominal + coalesce(g.amount, 0),
          'borrowingLimit', borrowing_limit, 'lendingLimit', lending_limit)), '[]')
        from queue_quotas left join quota_grants g using (queue, flavor) where queue = q.name)
    )), '[]') from queues q)
) as view`;

/** True if a queue, or one above it, is frozen. */
export function isQueueFrozen({ queues }: Pick<LedgerView, "queues">, name: string | null): boolean {
  return pathOf({ queues }, name).some(({ frozen }) => frozen);
}

/** A queue and those above it, itself first. */
export function pathOf({ queues }: Pick<LedgerView, "queues">, name: string | null): readonly ViewedQueue[] {
  const queue = queues.find((one) => one.name === name);
  return queue === undefined ? [] : [queue, ...pathOf({ queues }, queue.parent)];
}

type Quota = { readonly nominal: number; readonly lent: number; readonly ceiling: number };

/** The limits and the use of the queues in one pool, by Kueue's rules for trees. */
export class PoolTree {
  readonly #view: Pick<LedgerView, "queues">;
  readonly #pool: string;
  readonly #own = new Map<string, number>();

  /** `charged`: the allocations that count as used. */
  constructor(view: Pick<LedgerView, "queues">, pool: string, charged: readonly ViewedAllocation[]) {
    this.#view = view;
    this.#pool = pool;
    for (const { queue, amount, pool: of } of charged) {
      if (queue !== null && of === pool) this.add(queue, amount);
    }
  }

  /** Counts more as used by a queue itself. */
  add(queue: string, amount: number): void {
    this.#own.set(queue, (this.#own.get(queue) ?? 0) + amount);
  }

  /** What a queue uses, with what the queues below it use beyond what they keep for themselves. */
  used(queue: string): number {
    return this.#below(queue).reduce((sum, child) => {
      const { nominal, lent } = this.quota(child);
      return sum + Math.max(0, this.used(child) - (nominal - lent));
    }, this.#own.get(queue) ?? 0);
  }

  quota(name: string): Quota {
    const queue = this.#view.queues.find((one) => one.name === name);
    const line = queue?.quotas.find(({ pool }) => pool === this.#pool);
    const nominal = this.#below(name).reduce((sum, child) => sum + this.quota(child).lent, line?.nominal ?? 0);
    const lent = Math.min(nominal, line?.lendingLimit ?? nominal);
    const most = nominal + (line?.borrowingLimit ?? Number.POSITIVE_INFINITY);
    return { nominal, lent, ceiling: queue?.parent === null ? nominal : most };
  }

  #below(name: string): readonly string[] {
    return this.#view.queues.filter(({ parent }) => parent === name).map((child) => child.name);
  }
}

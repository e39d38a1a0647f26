import { bucketOf } from "../core/job/bucket.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";

/** Reports about plugins, for metrics. */
export type PluginEvents = {
  /** `outcome`: `answered`, `failed` or `cut_off`. */
  readonly pluginCalled: (facts: {
    readonly kind: string;
    readonly call: string;
    readonly outcome: string;
    readonly tookMs: number;
  }) => void;
  readonly pluginAsked: (facts: { readonly kind: string; readonly pool: string; readonly outcome: string }) => void;
  readonly pluginsWait: (facts: { readonly kind: string; readonly pool: string; readonly jobs: number }) => void;
};

/** Which jobs lack tokens of which pools, by the answers that their plugins got in the last call. */
export class TokenShortage {
  readonly #tell: PluginEvents["pluginsWait"];
  readonly #pools = new Map<string, { readonly kind: string; readonly pools: Set<string> }>();

  constructor(tell: PluginEvents["pluginsWait"]) {
    this.#tell = tell;
  }

  add(jobUid: string, kind: string, pool: string): void {
    const known = getOrCreate(this.#pools, jobUid, () => ({ kind, pools: new Set() }));
    known.pools.add(pool);
    this.#told(kind, pool);
  }

  /** Forgets what a job lacks: its plugin asks again, or the job is over. */
  clear(jobUid: string): void {
    const known = this.#pools.get(jobUid);
    this.#pools.delete(jobUid);
    for (const pool of known?.pools ?? []) this.#told(known?.kind ?? "", pool);
  }

  /** Forgets jobs of these buckets, which other workers hold now. */
  clearBuckets(buckets: ReadonlySet<number>): void {
    for (const jobUid of [...this.#pools.keys()]) if (buckets.has(bucketOf(jobUid))) this.clear(jobUid);
  }

  #told(kind: string, pool: string): void {
    const jobs = [...this.#pools.values()].filter((one) => one.kind === kind && one.pools.has(pool)).length;
    this.#tell({ kind, pool, jobs });
  }
}

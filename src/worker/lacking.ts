import { bucketOf } from "../core/job/bucket.ts";

/** What is told of plugins, for whoever measures. */
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

/** Which jobs lack tokens of which pools, as their plugins were told in their last call. */
export class Lacking {
  readonly #tell: PluginEvents["pluginsWait"];
  readonly #pools = new Map<string, { readonly kind: string; readonly pools: Set<string> }>();

  constructor(tell: PluginEvents["pluginsWait"]) {
    this.#tell = tell;
  }

  add(jobUid: string, kind: string, pool: string): void {
    const known = this.#pools.get(jobUid) ?? { kind, pools: new Set() };
    this.#pools.set(jobUid, known);
    known.pools.add(pool);
    this.#told(kind, pool);
  }

  /** The job asks anew, or asks no more. */
  clear(jobUid: string): void {
    const known = this.#pools.get(jobUid);
    this.#pools.delete(jobUid);
    for (const pool of known?.pools ?? []) this.#told(known?.kind ?? "", pool);
  }

  /** Jobs of these buckets are others' now. */
  clearBuckets(buckets: ReadonlySet<number>): void {
    for (const jobUid of [...this.#pools.keys()]) if (buckets.has(bucketOf(jobUid))) this.clear(jobUid);
  }

  #told(kind: string, pool: string): void {
    const jobs = [...this.#pools.values()].filter((one) => one.kind === kind && one.pools.has(pool)).length;
    this.#tell({ kind, pool, jobs });
  }
}

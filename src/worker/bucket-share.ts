import { type BucketLease, bucketOf } from "../core/job/bucket.ts";
import type { Term } from "../runtime/member.ts";
import type { WorkerMember, WorkerStore } from "./ports.ts";
import { ownerOf } from "./rendezvous.ts";

/** The most buckets that are handed over at a time: a worker that joins takes over step by step. */
const HAND_OVER_MAX = 64;

type BucketShareOptions = {
  readonly store: Pick<WorkerStore, "bucketsOf" | "takeBuckets" | "giveBuckets">;
  readonly member: WorkerMember;
  /** True while a step of a job of this bucket runs. */
  readonly isBusy: (bucket: number) => boolean;
  /** Called after these buckets were taken, or taken again: changes of their jobs may have been missed before. */
  readonly onTaken: (buckets: readonly number[]) => void;
  readonly onLost: (buckets: ReadonlySet<number>) => void;
};

/**
 * The buckets that this worker holds. A bucket that rendezvous hashing assigns to another worker is handed over in
 * three stages: no new step begins, running steps end, and the bucket is given up. So no step is stopped, and none runs
 * twice.
 */
export class BucketShare {
  readonly #options: BucketShareOptions;
  readonly #leases = new Map<number, BucketLease>();
  /** Buckets that this worker still holds in the store, and gives up once no step runs there. */
  #leaving = new Set<number>();
  #during: Term | null = null;

  constructor(options: BucketShareOptions) {
    this.#options = options;
  }

  /**
   * The lease under which a bucket's jobs may be recorded. Null: the bucket is not ours, or this worker is not sure of
   * it.
   */
  leaseOf(bucket: number): BucketLease | null {
    return this.#isSure() ? (this.#leases.get(bucket) ?? null) : null;
  }

  holdsJob(jobUid: string): boolean {
    return this.leaseOf(bucketOf(jobUid)) !== null;
  }

  buckets(): readonly number[] {
    return this.#isSure() ? [...this.#leases.keys()] : [];
  }

  /** Aborted once this worker is no longer sure of its buckets. Null: it is not sure now. */
  signal(): AbortSignal | null {
    return this.#isSure() ? (this.#during?.signal ?? null) : null;
  }

  /** True if a new term has begun since the last refresh. */
  isStale(): boolean {
    return !this.#isSure() && this.#options.member.term() !== null;
  }

  /** Drops a bucket after a record was refused because another worker holds it. */
  lose(bucket: number): void {
    this.#drop([bucket]);
  }

  /** Reads how the buckets are divided, takes free buckets that are ours, and gives up those of others. */
  async refresh(): Promise<void> {
    const { store, member } = this.#options;
    const term = member.term();
    if (term !== this.#during) this.#dropAll();
    this.#during = term;
    if (term === null) return;
    const view = await store.bucketsOf(term.name);
    if (!view.workers.includes(term.name) || !this.#isSure()) return this.#dropAll();
    const owners = (bucket: number) => ownerOf(bucket, view.workers) === term.name;
    this.#keep(view.mine, owners);
    await this.#leave(term.name);
    const wanted = view.free.filter(owners);
    if (wanted.length === 0) return;
    const taken = await store.takeBuckets(term.name, wanted);
    if (this.#isSure()) this.#add(taken);
  }

  /** Adopts what the store says. Buckets that belong to other workers are given up a few at a time. */
  #keep(mine: readonly BucketLease[], isOurs: (bucket: number) => boolean): void {
    const surplus = mine.map(({ bucket }) => bucket).filter((bucket) => !isOurs(bucket));
    const leaving = surplus.filter((bucket) => this.#leaving.has(bucket));
    const next = surplus.filter((bucket) => !this.#leaving.has(bucket));
    this.#leaving = new Set([...leaving, ...next.slice(0, Math.max(0, HAND_OVER_MAX - leaving.length))]);
    const kept = mine.filter(({ bucket }) => !this.#leaving.has(bucket));
    const names = new Set(kept.map(({ bucket }) => bucket));
    this.#drop([...this.#leases.keys()].filter((bucket) => !names.has(bucket)));
    this.#add(kept.filter(({ bucket, epoch }) => this.#leases.get(bucket)?.epoch !== epoch));
  }

  async #leave(name: string): Promise<void> {
    const idle = [...this.#leaving].filter((bucket) => !this.#options.isBusy(bucket));
    if (idle.length === 0) return;
    await this.#options.store.giveBuckets(name, idle);
    for (const bucket of idle) this.#leaving.delete(bucket);
  }

  #add(leases: readonly BucketLease[]): void {
    if (leases.length === 0) return;
    for (const lease of leases) this.#leases.set(lease.bucket, lease);
    this.#options.onTaken(leases.map(({ bucket }) => bucket));
  }

  #drop(buckets: readonly number[]): void {
    if (buckets.length === 0) return;
    for (const bucket of buckets) this.#leases.delete(bucket);
    this.#options.onLost(new Set(buckets));
  }

  #dropAll(): void {
    this.#leaving = new Set();
    this.#drop([...this.#leases.keys()]);
  }

  #isSure(): boolean {
    return this.#during !== null && this.#options.member.term() === this.#during;
  }
}

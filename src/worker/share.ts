import { bucketOf } from "../core/job/bucket.ts";
import type { BucketLease, WorkerMember, WorkerStore } from "./ports.ts";
import { ownerOf } from "./rendezvous.ts";

/** So many buckets are handed to other workers at a look: whoever comes takes over step by step. */
const HAND_OVER_MAX = 64;

type Term = NonNullable<ReturnType<WorkerMember["term"]>>;

export type ShareOptions = {
  readonly store: Pick<WorkerStore, "bucketsOf" | "takeBuckets" | "giveBuckets">;
  readonly member: WorkerMember;
  /** True while a step of a job of this bucket runs. */
  readonly isBusy: (bucket: number) => boolean;
  /** Called after these buckets have come, or come anew: whatever happened to their jobs meanwhile was not heard. */
  readonly onTaken: (buckets: readonly number[]) => void;
  readonly onLost: (buckets: ReadonlySet<number>) => void;
};

/**
 * The buckets that this worker holds. Those that rendezvous hashing gives to another worker are left to it: first nothing new is begun,
 * then what runs ends, then they are given free; so nothing that runs is stopped, and nothing runs twice.
 */
export class Share {
  readonly #options: ShareOptions;
  readonly #leases = new Map<number, BucketLease>();
  /** Still this worker's in the store, but left to others once nothing runs there. */
  #leaving = new Set<number>();
  #during: Term | null = null;

  constructor(options: ShareOptions) {
    this.#options = options;
  }

  /** The lease under which a bucket's jobs may be recorded; null for a bucket that is not ours, or not for sure. */
  leaseOf(bucket: number): BucketLease | null {
    return this.#isSure() ? (this.#leases.get(bucket) ?? null) : null;
  }

  holdsJob(jobUid: string): boolean {
    return this.leaseOf(bucketOf(jobUid)) !== null;
  }

  buckets(): readonly number[] {
    return this.#isSure() ? [...this.#leases.keys()] : [];
  }

  /** Aborted once this worker may not be sure of its buckets any more. */
  signal(): AbortSignal | null {
    return this.#isSure() ? (this.#during?.signal ?? null) : null;
  }

  /** True if there is something new to look at. */
  isStale(): boolean {
    return !this.#isSure() && this.#options.member.term() !== null;
  }

  /** A record was refused: another holds it. */
  lose(bucket: number): void {
    this.#drop([bucket]);
  }

  /** Reads how the buckets are shared out now; takes what is free and leaves what is another's. */
  async look(): Promise<void> {
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

  /** Keeps to what the store says; what belongs to others leaves, a few at a time. */
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

/** What a reflector has seen: objects by `namespace/name` (or name), found again by the job they belong to. */
export class ObjectStore<T> {
  readonly #objects = new Map<string, T>();
  readonly #keysByJob = new Map<string, Set<string>>();
  readonly #jobOf: (object: T) => string | null;

  constructor(jobOf: (object: T) => string | null) {
    this.#jobOf = jobOf;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  keys(): IterableIterator<string> {
    return this.#objects.keys();
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  /** The uids of the jobs of which anything is there. */
  jobUids(): IterableIterator<string> {
    return this.#keysByJob.keys();
  }

  /** The namespace of what is there of a job; null where nothing is. */
  namespaceOf(jobUid: string): string | null {
    const [key] = this.#keysByJob.get(jobUid) ?? [];
    return key?.split("/")[0] ?? null;
  }

  ofJob(jobUid: string): readonly T[] {
    const found: T[] = [];
    for (const key of this.#keysByJob.get(jobUid) ?? []) {
      const object = this.#objects.get(key);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  set(key: string, object: T): void {
    this.delete(key);
    this.#objects.set(key, object);
    const jobUid = this.#jobOf(object);
    if (jobUid === null) return;
    const keys = this.#keysByJob.get(jobUid);
    if (keys === undefined) this.#keysByJob.set(jobUid, new Set([key]));
    else keys.add(key);
  }

  delete(key: string): void {
    const object = this.#objects.get(key);
    if (object === undefined) return;
    this.#objects.delete(key);
    const jobUid = this.#jobOf(object);
    if (jobUid === null) return;
    const keys = this.#keysByJob.get(jobUid);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysByJob.delete(jobUid);
  }
}

/**
 * The objects that a reflector has seen, by `namespace/name` (or name), by the job that they belong to, and by the uid
 * of their controller.
 */
export class WatchedObjects<T> {
  readonly #objects = new Map<string, T>();
  readonly #keysByJob = new Map<string, Set<string>>();
  readonly #keysByOwner = new Map<string, Set<string>>();
  readonly #jobOf: (object: T) => string | null;
  readonly #ownerOf: (object: T) => string | null;

  constructor(jobOf: (object: T) => string | null, ownerOf: (object: T) => string | null = () => null) {
    this.#jobOf = jobOf;
    this.#ownerOf = ownerOf;
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

  /** The uids of the jobs that have objects here. */
  jobUids(): IterableIterator<string> {
    return this.#keysByJob.keys();
  }

  /** The namespace of a job's objects. Null: there are none. */
  namespaceOf(jobUid: string): string | null {
    const [key] = this.#keysByJob.get(jobUid) ?? [];
    return key?.split("/")[0] ?? null;
  }

  ofJob(jobUid: string): readonly T[] {
    return this.#all(this.#keysByJob.get(jobUid));
  }

  /** The objects whose controller has this uid, whatever their labels are. */
  ofOwner(uid: string): readonly T[] {
    return this.#all(this.#keysByOwner.get(uid));
  }

  set(key: string, object: T): void {
    this.delete(key);
    this.#objects.set(key, object);
    addTo(this.#keysByJob, this.#jobOf(object), key);
    addTo(this.#keysByOwner, this.#ownerOf(object), key);
  }

  delete(key: string): void {
    const object = this.#objects.get(key);
    if (object === undefined) return;
    this.#objects.delete(key);
    removeFrom(this.#keysByJob, this.#jobOf(object), key);
    removeFrom(this.#keysByOwner, this.#ownerOf(object), key);
  }

  #all(keys: Iterable<string> = []): readonly T[] {
    return [...keys].flatMap((key) => this.#objects.get(key) ?? []);
  }
}

type Index = Map<string, Set<string>>;

function addTo(index: Index, by: string | null, key: string): void {
  if (by === null) return;
  const keys = index.get(by);
  if (keys === undefined) index.set(by, new Set([key]));
  else keys.add(key);
}

function removeFrom(index: Index, by: string | null, key: string): void {
  if (by === null) return;
  const keys = index.get(by);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(by);
}

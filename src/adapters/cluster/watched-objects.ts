import { getOrCreate } from "../../runtime/get-or-create.ts";

/** The groups of an object, by which it can be found. Null: it is in no such group. */
export type GroupsOf<T> = {
  readonly jobOf: (object: T) => string | null;
  /** The uid of its controller. Omitted: objects are not found by controller. */
  readonly ownerOf?: (object: T) => string | null;
  /** The node that it is bound to. Omitted: objects are not found by node. */
  readonly nodeOf?: (object: T) => string | null;
};

/**
 * The objects that a reflector has seen, by `namespace/name` (or name), by the job that they belong to, by the uid of
 * their controller, and by their node.
 */
export class WatchedObjects<T> {
  readonly #objects = new Map<string, T>();
  readonly #byJob: Index<T>;
  readonly #byOwner: Index<T>;
  readonly #byNode: Index<T>;

  constructor({ jobOf, ownerOf = () => null, nodeOf = () => null }: GroupsOf<T>) {
    this.#byJob = new Index(jobOf);
    this.#byOwner = new Index(ownerOf);
    this.#byNode = new Index(nodeOf);
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
    return this.#byJob.groups();
  }

  /** The namespace of a job's objects. Null: there are none. */
  namespaceOf(jobUid: string): string | null {
    const [key] = this.#byJob.keysOf(jobUid);
    return key?.split("/")[0] ?? null;
  }

  ofJob(jobUid: string): readonly T[] {
    return this.#all(this.#byJob.keysOf(jobUid));
  }

  /** The objects whose controller has this uid, whatever their labels are. */
  ofOwner(uid: string): readonly T[] {
    return this.#all(this.#byOwner.keysOf(uid));
  }

  onNode(node: string): readonly T[] {
    return this.#all(this.#byNode.keysOf(node));
  }

  set(key: string, object: T): void {
    this.delete(key);
    this.#objects.set(key, object);
    for (const index of this.#indexes()) index.add(key, object);
  }

  delete(key: string): void {
    const object = this.#objects.get(key);
    if (object === undefined) return;
    this.#objects.delete(key);
    for (const index of this.#indexes()) index.remove(key, object);
  }

  #indexes(): readonly Index<T>[] {
    return [this.#byJob, this.#byOwner, this.#byNode];
  }

  #all(keys: Iterable<string>): readonly T[] {
    return [...keys].flatMap((key) => this.#objects.get(key) ?? []);
  }
}

/** The keys of objects by group. */
class Index<T> {
  readonly #groupOf: (object: T) => string | null;
  readonly #keys = new Map<string, Set<string>>();

  constructor(groupOf: (object: T) => string | null) {
    this.#groupOf = groupOf;
  }

  groups(): IterableIterator<string> {
    return this.#keys.keys();
  }

  keysOf(group: string): Iterable<string> {
    return this.#keys.get(group) ?? [];
  }

  add(key: string, object: T): void {
    const group = this.#groupOf(object);
    if (group === null) return;
    getOrCreate(this.#keys, group, () => new Set()).add(key);
  }

  remove(key: string, object: T): void {
    const group = this.#groupOf(object);
    if (group === null) return;
    const keys = this.#keys.get(group);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(group);
  }
}

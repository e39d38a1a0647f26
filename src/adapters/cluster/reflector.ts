/**
 * Keeps a copy of one resource of one cluster by list and watch. It serves users who see changes of their pods at once,
 * without a load on the API server that grows with the number of jobs.
 */
import type { Clock } from "../../runtime/clock.ts";
import { doublingMs } from "../../runtime/doubling.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { objectAt, stringAt } from "../../runtime/json.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { Slices } from "../../runtime/slices.ts";
import type { KubeClient, KubeResult } from "./client.ts";
import { failureFromEvent, type KubeFailure, unreachable } from "./kube-failure.ts";
import { itemsOf } from "./read-answer.ts";
import { type GroupsOf, WatchedObjects } from "./watched-objects.ts";

/** Small enough for any API server to answer at once, and large enough to list thousands of pods in few round trips. */
const PAGE_SIZE = 500;
const BACKOFF = { firstMs: 100, longestMs: 10_000 };
/** When the server ends a watch. A random part of it is added, so that not all watches end together. */
const WATCH_SECONDS_MIN = 300;
/** A list, or a watch that was open, counts as a success after this time, however it ended. */
const LONG_LIVED_MS = 5_000;
/** After this many watches without an event the reflector lists again. */
const FRUITLESS_MAX = 5;
/** Statuses of an ended watch, an expired version and a throttled call: the cluster has answered. */
const ANSWERS = [200, 410, 429];
/**
 * The most text that is kept of one cluster, as JSON: some 60,000 pods, which take a gigabyte of memory. A broken
 * server may send objects for ever.
 */
const KEPT_CHARS_MAX = 128 * 1024 * 1024;
/** A list of this many pages has more objects than Kubernetes allows. A broken server may always name a next page. */
const PAGES_MAX = 1_000;
const OBJECTS_MAX = PAGES_MAX * PAGE_SIZE;
/** The end of a watch. A watch that ends at once is opened again with backoff, not in a tight loop. */
const ENDED: KubeFailure = {
  kind: "failed",
  status: 200,
  reason: "Ended",
  message: "the watch ended",
  retryAfterMs: null,
};

/** Lists that are too large are tried again: a cluster may shrink. */
const TOO_LARGE: KubeFailure = {
  kind: "failed",
  status: 413,
  reason: "TooLarge",
  message: `the cluster has more than ${PAGES_MAX} pages of objects, or more than this process can keep`,
  retryAfterMs: null,
};
const INVALID_LIST: KubeFailure = {
  kind: "failed",
  status: 0,
  reason: "InvalidAnswer",
  message: "the server does not answer with a list of objects that have names",
  retryAfterMs: null,
};

/** The text that is kept of one cluster, and the most that may be. */
export type KeptBudget = { chars: number; readonly charsMax: number };

export function newKeptBudget(charsMax = KEPT_CHARS_MAX): KeptBudget {
  return { chars: 0, charsMax };
}

/** The version of an object that is kept, and the length of what is kept as JSON. */
type Kept = { readonly version: string; readonly chars: number };

/** An object of a list. Null: it is kept already in this version. */
type Listed<T> = Kept & { readonly object: T | null };

export type ReflectorOptions<T> = GroupsOf<T> & {
  readonly client: Pick<KubeClient, "request" | "watch">;
  /** `/api/v1/pods` */
  readonly path: string;
  /** Empty: all objects. */
  readonly labelSelector: string;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  /**
   * How long a watch may be silent, although bookmarks were requested, before it counts as dead. API servers send one a
   * minute.
   */
  readonly silenceMsMax: number;
  /** Returns the data to keep of an object. */
  readonly keep: (object: JsonObject) => T;
  /** Counts what all reflectors of the cluster keep. Omitted: this reflector's own. */
  readonly budget?: KeptBudget;
  /** Called after the store has changed. An exception is reported and has no other effect. */
  readonly onChange: (key: string, before: T | undefined, after: T | undefined) => void;
  /** Called after each complete list, and when calls begin to fail or succeed again. */
  readonly onHealth: () => void;
  readonly onError: (error: unknown, what: string) => void;
};

/**
 * Copies one resource of one cluster into a store until it is closed: a complete list, then one watch after another
 * from its version.
 *
 *   list ──complete──▶ watch ──ends, breaks, falls silent──▶ watch from the last version heard
 *    ▲                   │
 *    └── 410, refused ───┘      (after a list, objects that have vanished are reported as deleted)
 */
export class Reflector<T> {
  readonly store: WatchedObjects<T>;
  readonly #options: ReflectorOptions<T>;
  readonly #kept = new Map<string, Kept>();
  readonly #budget: KeptBudget;
  #keptChars = 0;
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #synced = false;
  #lastHeardMs: number | null = null;
  #failingSinceMs: number | null = null;
  #failure: KubeFailure | null = null;
  #reconnecting = new AbortController();
  #failuresInRow = 0;
  /** The version up to which the store is complete. Null: a list is needed. */
  #version: string | null = null;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#budget = options.budget ?? newKeptBudget();
    this.store = new WatchedObjects(options);
  }

  start(): void {
    this.#running = this.#run(this.#closing.signal).catch((error: unknown) => this.#report(error));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /** True once a list was complete. The store may be stale then, but not partial. */
  get synced(): boolean {
    return this.#synced;
  }

  /** When the server last sent anything, on the monotonic clock. Null: never. */
  get lastHeardMs(): number | null {
    return this.#lastHeardMs;
  }

  /** For how long calls have been failing. 0: they do not fail. */
  get failingForMs(): number {
    return this.#failingSinceMs === null ? 0 : this.#options.clock.monotonicMs() - this.#failingSinceMs;
  }

  /** The failure of the last call. Null: calls do not fail. */
  get failure(): KubeFailure | null {
    return this.#failingSinceMs === null ? null : this.#failure;
  }

  /** Breaks off what is under way, and calls the server again at once. Nothing that was heard is forgotten. */
  reconnect(): void {
    this.#reconnecting.abort(new Error("the connection is given up"));
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#reconnecting = new AbortController();
      using attempt = linkedController(signal, this.#reconnecting.signal);
      const startedMs = this.#options.clock.monotonicMs();
      const failure = await this.#round(attempt.signal).catch((error: unknown) => unreachable(error));
      if (signal.aborted) return;
      const isLong = this.#options.clock.monotonicMs() - startedMs > LONG_LIVED_MS;
      if (isLong && (failure === null || wasOpen(failure))) this.#failuresInRow = 0;
      if (failure === null) continue;
      if (needsList(failure) || this.#isFruitless(failure)) this.#version = null;
      await this.#backOff(failure, attempt.signal);
    }
  }

  #round(signal: AbortSignal): Promise<KubeFailure | null> {
    return this.#version === null ? this.#list(signal) : this.#watch(this.#version, signal);
  }

  #isFruitless(failure: KubeFailure): boolean {
    return this.#failuresInRow >= FRUITLESS_MAX && wasOpen(failure);
  }

  async #list(signal: AbortSignal): Promise<KubeFailure | null> {
    const listed = new Map<string, Listed<T>>();
    const slices = new Slices();
    let continueFrom = "";
    let version = "";
    let pages = 0;
    let chars = 0;
    do {
      const page = await this.#page(continueFrom, signal);
      if (page.kind === "failed") return page;
      const items = itemsOf(page.object);
      if (items === null) return INVALID_LIST;
      this.#lastHeardMs = this.#options.clock.monotonicMs();
      chars += await this.#collectAll(listed, items, slices);
      const metadata = objectAt(page.object, "metadata");
      continueFrom = stringAt(metadata, "continue") ?? "";
      version = stringAt(metadata, "resourceVersion") ?? "";
      pages += 1;
      const others = this.#budget.chars - this.#keptChars;
      if (others + chars > this.#budget.charsMax || listed.size > OBJECTS_MAX || pages > PAGES_MAX) return TOO_LARGE;
    } while (continueFrom !== "");
    await this.#replace(listed, slices);
    this.#version = version;
    this.#synced = true;
    this.#failingSinceMs = null;
    this.#options.onHealth();
    return null;
  }

  #page(continueFrom: string, signal: AbortSignal): Promise<KubeResult> {
    const { path, client } = this.#options;
    const query: Record<string, string> = { ...this.#selector(), limit: String(PAGE_SIZE) };
    if (continueFrom !== "") query["continue"] = continueFrom;
    return client.request({ method: "GET", path, query }, signal);
  }

  #selector(): Record<string, string> {
    const { labelSelector } = this.#options;
    return labelSelector === "" ? {} : { labelSelector };
  }

  async #collectAll(listed: Map<string, Listed<T>>, items: readonly JsonObject[], slices: Slices): Promise<number> {
    let chars = 0;
    for (const item of items) {
      chars += this.#collect(listed, item);
      if (slices.isOver) await slices.pause();
    }
    return chars;
  }

  /** Adds an object to a list. Keeps nothing new of one that has not changed. Returns how much text it adds. */
  #collect(listed: Map<string, Listed<T>>, object: JsonObject): number {
    const key = keyOf(object);
    const before = this.#kept.get(key);
    const isSame = before !== undefined && before.version === versionOf(object);
    const one = isSame ? { ...before, object: null } : this.#reduce(object);
    const replaced = listed.get(key)?.chars ?? 0;
    listed.set(key, one);
    return one.chars - replaced;
  }

  /** The data to keep of an object. */
  #reduce(object: JsonObject): Listed<T> & { readonly object: T } {
    const kept = this.#options.keep(object);
    return { object: kept, version: versionOf(object), chars: JSON.stringify(kept).length };
  }

  /** Changes object by object, as a watch does, and pauses in between. */
  async #replace(listed: ReadonlyMap<string, Listed<T>>, slices: Slices): Promise<void> {
    for (const key of [...this.store.keys()]) {
      if (!listed.has(key)) this.#forget(key);
      if (slices.isOver) await slices.pause();
    }
    for (const [key, { object, ...kept }] of listed) {
      if (object !== null) this.#remember(key, { object, ...kept });
      if (slices.isOver) await slices.pause();
    }
  }

  async #watch(from: string, signal: AbortSignal): Promise<KubeFailure | null> {
    const { path, client, random, silenceMsMax } = this.#options;
    const query = {
      ...this.#selector(),
      resourceVersion: from,
      allowWatchBookmarks: "true",
      timeoutSeconds: String(Math.round(WATCH_SECONDS_MIN * (1 + random()))),
    };
    const watch = await client.watch({ path, query, silenceMsMax }, signal);
    if (watch.kind === "failed") return watch;
    this.#heard();
    try {
      for await (const event of watch.events) {
        const failure = this.#take(event);
        if (failure !== null) return failure;
      }
    } catch (error) {
      return { ...unreachable(error), reason: "WatchBroken" };
    }
    return ENDED;
  }

  #take(event: JsonObject): KubeFailure | null {
    this.#heard();
    const object = objectAt(event, "object");
    const type = stringAt(event, "type");
    if (type === "ERROR") return failureFromEvent(object);
    if (type === "ADDED" || type === "MODIFIED") {
      this.#remember(keyOf(object), this.#reduce(object));
      if (this.#budget.chars > this.#budget.charsMax) return TOO_LARGE;
    }
    if (type === "DELETED") this.#forgetLast(keyOf(object), object);
    const version = versionOf(object);
    if (version !== "") this.#version = version;
    return null;
  }

  #remember(key: string, { object: after, ...kept }: Kept & { readonly object: T }): void {
    const before = this.store.get(key);
    this.store.set(key, after);
    this.#count(kept.chars - (this.#kept.get(key)?.chars ?? 0));
    this.#kept.set(key, kept);
    this.#failuresInRow = 0;
    this.#tell(key, before, after);
  }

  /** The watch delivers an object's last state together with its deletion. The state may be newer than the kept one. */
  #forgetLast(key: string, last: JsonObject): void {
    if (this.store.get(key) !== undefined) this.#remember(key, this.#reduce(last));
    this.#forget(key);
  }

  #forget(key: string): void {
    const before = this.store.get(key);
    if (before === undefined) return;
    this.store.delete(key);
    this.#count(-(this.#kept.get(key)?.chars ?? 0));
    this.#kept.delete(key);
    this.#tell(key, before, undefined);
  }

  #count(chars: number): void {
    this.#keptChars += chars;
    this.#budget.chars += chars;
  }

  #tell(key: string, before: T | undefined, after: T | undefined): void {
    try {
      this.#options.onChange(key, before, after);
    } catch (error) {
      this.#report(error);
    }
  }

  #heard(): void {
    this.#lastHeardMs = this.#options.clock.monotonicMs();
    if (this.#failingSinceMs === null) return;
    this.#failingSinceMs = null;
    this.#options.onHealth();
  }

  async #backOff(failure: KubeFailure, signal: AbortSignal): Promise<void> {
    const { clock, random, onHealth } = this.#options;
    this.#failuresInRow += 1;
    this.#failure = failure;
    if (!ANSWERS.includes(failure.status) && this.#failingSinceMs === null) {
      this.#failingSinceMs = clock.monotonicMs();
      onHealth();
    }
    if (this.#failuresInRow > 1) this.#report(failure);
    const backoffMs = doublingMs(BACKOFF, this.#failuresInRow - 1);
    await clock.sleep(Math.max(failure.retryAfterMs ?? 0, backoffMs * (0.5 + random() / 2)), signal);
  }

  #report(error: unknown): void {
    this.#options.onError(error, `reflector of ${this.#options.path}`);
  }
}

/** True for a watch that the server had opened. */
function wasOpen({ reason }: KubeFailure): boolean {
  return reason === "Ended" || reason === "WatchBroken";
}

/** True if the server cannot continue from this version. After any other failure a watch from it is tried again. */
function needsList(failure: KubeFailure): boolean {
  return failure.status >= 400 && failure.status !== 429 && failure.status < 500;
}

function keyOf(object: JsonObject): string {
  const metadata = objectAt(object, "metadata");
  const namespace = stringAt(metadata, "namespace");
  const name = stringAt(metadata, "name") ?? "";
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function versionOf(object: JsonObject): string {
  return stringAt(objectAt(object, "metadata"), "resourceVersion") ?? "";
}

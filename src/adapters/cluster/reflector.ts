import type { Clock } from "../../runtime/clock.ts";
import { doublingMs } from "../../runtime/doubling.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { ApiResult, KubeClient } from "./client.ts";
import { type ApiFailure, failureFromEvent, unreachable } from "./failure.ts";
import { ObjectStore } from "./object-store.ts";

/** Small enough for any API server to answer at once, large enough that thousands of pods take few round trips. */
const PAGE_SIZE = 500;
const BACKOFF = { firstMs: 100, longestMs: 10_000 };
/** The server ends a watch after this; a random part of it is added, so that not all watches end together. */
const WATCH_SECONDS_MIN = 300;
/** A list or watch that took so long was no failure, whatever ended it. */
const LONG_LIVED_MS = 5_000;
/** After so many watches that brought nothing a list is the surer way to hear anything. */
const FRUITLESS_MAX = 5;
/** An ended watch, a throttled call and an expired version are answers: the cluster is there. */
const ANSWERS = [200, 410, 429];
/** Watches end; one that ends at once is asked for again with growing patience, not in a tight loop. */
const ENDED: ApiFailure = {
  kind: "failed",
  status: 200,
  reason: "Ended",
  message: "the watch has ended",
  retryAfterMs: null,
};

export type ReflectorOptions<T> = {
  readonly client: Pick<KubeClient, "request" | "watch">;
  /** `/api/v1/pods` */
  readonly path: string;
  /** Empty: all objects. */
  readonly labelSelector: string;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  /**
   * A watch that says nothing for so long, though bookmarks were asked for, is taken for dead. API servers send one a
   * minute.
   */
  readonly silenceMsMax: number;
  /** What is remembered of an object. */
  readonly keep: (object: JsonObject) => T;
  readonly jobOf: (kept: T) => string | null;
  /** What controls an object, if it is to be found by that; absent: it is not. */
  readonly ownerOf?: (kept: T) => string | null;
  /** After the store has changed; an exception is reported and changes nothing. */
  readonly onChange: (key: string, before: T | undefined, after: T | undefined) => void;
  /** After the first complete list, and whenever the answer to `failingForMs` may have turned. */
  readonly onHealth: () => void;
  readonly onError: (error: unknown, what: string) => void;
};

/**
 * Mirrors one resource of one cluster into a store: a complete list, then watches from its version, again and again,
 * until it is closed.
 *
 *   list ──complete──▶ watch ──ends, breaks, falls silent──▶ watch from the last version heard
 *    ▲                   │
 *    └── 410, refused ───┘      (after a list, what has vanished is reported as deleted)
 */
export class Reflector<T> {
  readonly store: ObjectStore<T>;
  readonly #options: ReflectorOptions<T>;
  readonly #versions = new Map<string, string>();
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #synced = false;
  #lastHeardMs: number | null = null;
  #failingSinceMs: number | null = null;
  #failuresInRow = 0;
  /** The version up to which it has heard everything; null where only a list can tell. */
  #version: string | null = null;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.store = new ObjectStore(options.jobOf, options.ownerOf);
  }

  start(): void {
    this.#running = this.#run(this.#closing.signal).catch((error: unknown) => this.#report(error));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /** True once a list was complete; what is in the store may be stale, but is not partial. */
  get synced(): boolean {
    return this.#synced;
  }

  /** When the server last said anything, on the monotonic clock; null if never. */
  get lastHeardMs(): number | null {
    return this.#lastHeardMs;
  }

  /** For how long it has been trying in vain; 0 while all is well. */
  get failingForMs(): number {
    return this.#failingSinceMs === null ? 0 : this.#options.clock.monotonicMs() - this.#failingSinceMs;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const startedMs = this.#options.clock.monotonicMs();
      const failure = this.#version === null ? await this.#list(signal) : await this.#watch(this.#version, signal);
      if (signal.aborted) return;
      if (this.#options.clock.monotonicMs() - startedMs > LONG_LIVED_MS) this.#failuresInRow = 0;
      if (failure === null) continue;
      if (needsList(failure) || this.#isFruitless(failure)) this.#version = null;
      await this.#backOff(failure, signal);
    }
  }

  #isFruitless({ reason }: ApiFailure): boolean {
    return this.#failuresInRow >= FRUITLESS_MAX && (reason === "Ended" || reason === "WatchBroken");
  }

  async #list(signal: AbortSignal): Promise<ApiFailure | null> {
    const listed = new Map<string, JsonObject>();
    let continueFrom = "";
    let version = "";
    do {
      const page = await this.#page(continueFrom, signal);
      if (page.kind === "failed") return page;
      this.#lastHeardMs = this.#options.clock.monotonicMs();
      for (const item of arrayAt(page.object, "items")) if (isJsonObject(item)) listed.set(keyOf(item), item);
      const metadata = objectAt(page.object, "metadata");
      continueFrom = stringAt(metadata, "continue") ?? "";
      version = stringAt(metadata, "resourceVersion") ?? "";
    } while (continueFrom !== "");
    this.#replace(listed);
    this.#version = version;
    this.#synced = true;
    this.#failingSinceMs = null;
    this.#options.onHealth();
    return null;
  }

  #page(continueFrom: string, signal: AbortSignal): Promise<ApiResult> {
    const { path, client } = this.#options;
    const query: Record<string, string> = { ...this.#selector(), limit: String(PAGE_SIZE) };
    if (continueFrom !== "") query["continue"] = continueFrom;
    return client.request({ method: "GET", path, query }, signal);
  }

  #selector(): Record<string, string> {
    const { labelSelector } = this.#options;
    return labelSelector === "" ? {} : { labelSelector };
  }

  #replace(listed: ReadonlyMap<string, JsonObject>): void {
    for (const key of [...this.store.keys()]) if (!listed.has(key)) this.#forget(key);
    for (const [key, object] of listed) if (this.#versions.get(key) !== versionOf(object)) this.#remember(key, object);
  }

  async #watch(from: string, signal: AbortSignal): Promise<ApiFailure | null> {
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

  #take(event: JsonObject): ApiFailure | null {
    this.#heard();
    const object = objectAt(event, "object");
    const type = stringAt(event, "type");
    if (type === "ERROR") return failureFromEvent(object);
    if (type === "ADDED" || type === "MODIFIED") this.#remember(keyOf(object), object);
    if (type === "DELETED") this.#forget(keyOf(object));
    const version = versionOf(object);
    if (version !== "") this.#version = version;
    return null;
  }

  #remember(key: string, object: JsonObject): void {
    const before = this.store.get(key);
    const after = this.#options.keep(object);
    this.store.set(key, after);
    this.#versions.set(key, versionOf(object));
    this.#failuresInRow = 0;
    this.#tell(key, before, after);
  }

  #forget(key: string): void {
    const before = this.store.get(key);
    if (before === undefined) return;
    this.store.delete(key);
    this.#versions.delete(key);
    this.#tell(key, before, undefined);
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

  async #backOff(failure: ApiFailure, signal: AbortSignal): Promise<void> {
    const { clock, random, onHealth } = this.#options;
    this.#failuresInRow += 1;
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

/** The server has answered that it will not go on from this version; all else is worth another watch from it. */
function needsList(failure: ApiFailure): boolean {
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

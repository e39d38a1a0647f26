/** Serves reflectors: streams changes from a resource version on, with bookmarks, as a real API server does. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../../../runtime/clock.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import type { Faults } from "../faults.ts";
import type { SimModel } from "../model.ts";
import type { HistoryEvent } from "../objects/history.ts";
import type { KubeObject } from "../objects/kube-object.ts";
import { badRequest } from "../objects/status-error.ts";
import type { ObjectSelection } from "./listing.ts";
import { selected, tooOld } from "./listing.ts";

/** Shorter than 30 s, after which some clients take a silent connection for dead. */
const BOOKMARK_MS = 10_000;
/** Without `timeoutSeconds`, a watch lives for one to two times this long, as on kube-apiserver. */
const LIFE_MS = 1_800_000;
/** A watch with more unread bytes than this is closed. */
const BUFFER_BYTES_MAX = 16 * 1024 * 1024;

export type WatchContext = {
  readonly model: SimModel;
  readonly clock: Clock;
  readonly random: () => number;
  readonly faults: () => Faults;
};

/**
 * One open watch: streams the changes of the selected objects as JSON lines. Gangway follows its pods by watches, so
 * this one also has bookmarks, timeouts and the faults that clients must survive.
 */
export class WatchStream {
  readonly #context: WatchContext;
  readonly #selection: ObjectSelection;
  readonly #response: ServerResponse;
  readonly #bookmarks: boolean;
  readonly #ended = new AbortController();
  #cursor = 0;
  #delayed = false;

  constructor(context: WatchContext, selection: ObjectSelection, query: URLSearchParams, response: ServerResponse) {
    this.#context = context;
    this.#selection = selection;
    this.#response = response;
    this.#bookmarks = ["true", "1"].includes(query.get("allowWatchBookmarks") ?? "");
    response.on("close", () => this.#ended.abort());
  }

  get open(): boolean {
    return !this.#ended.signal.aborted;
  }

  /**
   * Starts after the requested version, or sends 410 if that version is forgotten. Without a version, sends all objects
   * as ADDED first.
   */
  start(query: URLSearchParams): void {
    const version = query.get("resourceVersion") ?? "";
    if (!/^\d*$/.test(version)) throw badRequest(`Invalid value: "${version}": strconv.ParseUint: invalid syntax`);
    const { model, random } = this.#context;
    this.#response.writeHead(200, { "content-type": "application/json", "transfer-encoding": "chunked" });
    this.#response.flushHeaders();
    if (version === "" || version === "0") {
      for (const object of selected(model, this.#selection)) this.#send("ADDED", object);
      this.#cursor = model.store.version;
    } else {
      this.#cursor = Number(version);
    }
    const timeoutMs = Number(query.get("timeoutSeconds") ?? "0") * 1000 || LIFE_MS * (1 + random());
    this.#live(timeoutMs).catch(() => this.cut());
    this.#flush();
  }

  /** Sends new events in order; after a delay if the faults have one. */
  pump(): void {
    const { clock, faults, random } = this.#context;
    const delayMs = faults().delayWatchMs ?? 0;
    if (this.#delayed) return;
    if (delayMs === 0) {
      this.#flush();
      return;
    }
    this.#delayed = true;
    const flushLate = () => {
      this.#delayed = false;
      this.#flush();
    };
    clock.sleep(random() * delayMs, this.#ended.signal).then(flushLate, flushLate);
  }

  /** Breaks the connection in the middle of the stream. */
  cut(): void {
    this.#ended.abort();
    this.#response.destroy();
  }

  /** Sends a 410 event and ends the watch, as kube-apiserver does. */
  expire(): void {
    if (!this.open) return;
    this.#line({ type: "ERROR", object: tooOld(this.#cursor, this.#context.model).body() });
    this.#end();
  }

  #end(): void {
    this.#ended.abort();
    this.#response.end();
  }

  async #live(timeoutMs: number): Promise<void> {
    const { clock } = this.#context;
    const endMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      const leftMs = endMs - clock.monotonicMs();
      await clock.sleep(Math.min(leftMs, BOOKMARK_MS), this.#ended.signal);
      if (!this.open) return;
      if (this.#bookmarks) this.#bookmark();
      if (clock.monotonicMs() >= endMs) return this.#end();
    }
  }

  #bookmark(): void {
    const { kind } = this.#selection;
    const metadata = { resourceVersion: String(this.#cursor), creationTimestamp: null };
    this.#line({ type: "BOOKMARK", object: { kind: kind.kind, apiVersion: kind.apiVersion, metadata } });
  }

  #flush(): void {
    const { model, faults, random } = this.#context;
    if (!this.open) return;
    const events = model.store.history.after(this.#cursor);
    if (events === null) this.expire();
    for (const event of events ?? []) {
      this.#cursor = event.version;
      if (event.resource !== this.#selection.kind.resource || !this.#sendEvent(event)) continue;
      if (random() < (faults().endWatch ?? 0)) {
        this.cut();
        return;
      }
    }
    if (this.#response.writableLength > BUFFER_BYTES_MAX) this.cut();
  }

  /** Sends ADDED for an object that begins to match, DELETED for one that ceases to. Returns true if it sent one. */
  #sendEvent({ object, before, removed, version }: HistoryEvent): boolean {
    const { matches } = this.#selection;
    const matched = before !== null && matches(before);
    const matchesNow = !removed && matches(object);
    if (matchesNow) this.#send(matched ? "MODIFIED" : "ADDED", object);
    else if (matched) this.#send("DELETED", removed ? object : atVersion(before, version));
    return matched || matchesNow;
  }

  #send(type: string, object: KubeObject): void {
    this.#line({ type, object });
  }

  #line(event: { readonly type: string; readonly object: JsonObject }): void {
    if (this.open) this.#response.write(`${JSON.stringify(event)}\n`);
  }
}

function atVersion(object: KubeObject, version: number): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}

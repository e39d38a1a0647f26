import type { ServerResponse } from "node:http";
import type { Clock } from "../../runtime/clock.ts";
import type { JsonObject } from "../../runtime/json.ts";
import type { Faults } from "./faults.ts";
import type { HistoryEvent } from "./history.ts";
import type { KubeObject } from "./kube-object.ts";
import type { Selection } from "./listing.ts";
import { selected, tooOld } from "./listing.ts";
import type { SimModel } from "./model.ts";
import { badRequest } from "./status-error.ts";

/** Often enough for clients that take half a minute of silence for a dead connection. */
const BOOKMARK_MS = 10_000;
/** Without `timeoutSeconds` a watch lives so long, and up to twice as long, as on kube-apiserver. */
const LIFE_MS = 1_800_000;
/** A client that lets so much pile up is cut off. */
const BUFFER_BYTES_MAX = 16 * 1024 * 1024;

export type WatchContext = {
  readonly model: SimModel;
  readonly clock: Clock;
  readonly random: () => number;
  readonly faults: () => Faults;
};

/** One open watch: JSON lines of what happens to a selection after a version. */
export class WatchStream {
  readonly #context: WatchContext;
  readonly #selection: Selection;
  readonly #response: ServerResponse;
  readonly #bookmarks: boolean;
  readonly #ended = new AbortController();
  #cursor = 0;
  #delayed = false;

  constructor(context: WatchContext, selection: Selection, query: URLSearchParams, response: ServerResponse) {
    this.#context = context;
    this.#selection = selection;
    this.#response = response;
    this.#bookmarks = ["true", "1"].includes(query.get("allowWatchBookmarks") ?? "");
    response.on("close", () => this.#ended.abort());
  }

  get open(): boolean {
    return !this.#ended.signal.aborted;
  }

  /** Begins with all objects as ADDED where no version is asked for, else after that version, or with 410 if it is forgotten. */
  start(query: URLSearchParams): void {
    const asked = query.get("resourceVersion") ?? "";
    if (!/^\d*$/.test(asked)) throw badRequest(`Invalid value: "${asked}": strconv.ParseUint: invalid syntax`);
    const { model, random } = this.#context;
    this.#response.writeHead(200, { "content-type": "application/json", "transfer-encoding": "chunked" });
    this.#response.flushHeaders();
    if (asked === "" || asked === "0") {
      for (const object of selected(model, this.#selection)) this.#send("ADDED", object);
      this.#cursor = model.store.version;
    } else {
      this.#cursor = Number(asked);
    }
    const timeoutMs = Number(query.get("timeoutSeconds") ?? "0") * 1000 || LIFE_MS * (1 + random());
    this.#live(timeoutMs).catch(() => this.cut());
    this.#flush();
  }

  /** Sends what has happened since; late if faults say so, but always in order. */
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

  /** Ends the watch as an error does, in the middle of the stream. */
  cut(): void {
    this.#ended.abort();
    this.#response.destroy();
  }

  /** Says 410 and ends, as kube-apiserver does on an open watch. */
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

  /** An object that comes to match is ADDED, one that ceases to is DELETED. True if anything was sent. */
  #sendEvent({ object, before, removed, version }: HistoryEvent): boolean {
    const { matches } = this.#selection;
    const was = before !== null && matches(before);
    const is = !removed && matches(object);
    if (is) this.#send(was ? "MODIFIED" : "ADDED", object);
    else if (was) this.#send("DELETED", removed ? object : atVersion(before, version));
    return was || is;
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

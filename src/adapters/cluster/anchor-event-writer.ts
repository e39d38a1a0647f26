import type { JobEvent } from "../../core/job/event.ts";
import { LABEL } from "../../core/job/labels.ts";
import type { AnchorEvents } from "../../core/reconcile/decision.ts";
import type { Clock } from "../../runtime/clock.ts";
import { foreignText } from "../../runtime/foreign-text.ts";
import type { JsonObject } from "../../runtime/json.ts";
import type { KubeClient } from "./client.ts";

type AnchorEventWriterOptions = {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  readonly installation: string;
  /** From 0 up to 1. Makes event names unique. */
  readonly random: () => number;
  /** The uid of an anchor by `namespace/name`, if it is seen. */
  readonly uidOf: (anchor: string) => string | undefined;
  readonly onError: (error: unknown, what: string) => void;
};

/** The most events that wait to be written. Further events are dropped, since nothing may wait for them. */
const WAITING_MAX = 1_000;
/** How many events are written at a time, so that most connections stay free for other calls. */
const TOGETHER_MAX = 2;
/** How Kubernetes bounds an event's message. */
const MESSAGE_BYTES_MAX = 1_024;

type QueuedEvent = Omit<AnchorEvents, "events"> & { readonly event: JobEvent; readonly atMs: number };

/**
 * Writes Kubernetes events without delaying anything else. No event is written twice, and events that fail or are too
 * many are lost.
 */
export class AnchorEventWriter {
  readonly #options: AnchorEventWriterOptions;
  readonly #waiting: QueuedEvent[] = [];
  readonly #closing = new AbortController();
  #sending = 0;
  #dropped = 0;

  constructor(options: AnchorEventWriterOptions) {
    this.#options = options;
  }

  write({ events, ...about }: AnchorEvents): void {
    for (const event of events) {
      if (this.#waiting.length >= WAITING_MAX) this.#drop();
      else this.#waiting.push({ ...about, event, atMs: this.#options.clock.nowMs() });
    }
    while (this.#sending < TOGETHER_MAX && this.#waiting.length > 0) void this.#send();
  }

  close(): void {
    this.#closing.abort();
    this.#waiting.length = 0;
  }

  /** Reports the first dropped event until there is room again. */
  #drop(): void {
    if (this.#dropped === 0)
      this.#options.onError(new Error("too many events wait to be written to the cluster: some are lost"), "events");
    this.#dropped += 1;
  }

  async #send(): Promise<void> {
    this.#sending += 1;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const path = `/api/v1/namespaces/${next.namespace}/events`;
      const body = this.#manifest(next);
      const made = await this.#options.client.request({ method: "POST", path, body }, this.#closing.signal);
      if (this.#closing.signal.aborted) break;
      if (made.kind === "failed") this.#options.onError(new Error(made.message), "events");
    }
    this.#dropped = 0;
    this.#sending -= 1;
  }

  #manifest({ namespace, anchor, jobUid, event, atMs }: QueuedEvent): JsonObject {
    const { installation, uidOf, random } = this.#options;
    const uid = uidOf(`${namespace}/${anchor}`);
    const at = new Date(atMs).toISOString().replace(/\.\d+Z$/, "Z");
    const suffix = Math.floor(random() * 2 ** 48)
      .toString(16)
      .padStart(12, "0");
    return {
      apiVersion: "v1",
      kind: "Event",
      metadata: {
        name: `${anchor}.${suffix}`,
        namespace,
        labels: { [LABEL.jobUid]: jobUid, [LABEL.installation]: installation },
      },
      involvedObject: {
        apiVersion: "v1",
        kind: "ConfigMap",
        namespace,
        name: anchor,
        ...(uid === undefined ? {} : { uid }),
      },
      type: event.type,
      reason: event.reason,
      message: foreignText(event.message, MESSAGE_BYTES_MAX),
      source: { component: "gangway" },
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    };
  }
}

import { LABEL } from "../../core/job/labels.ts";
import type { JobEvent } from "../../core/reconcile/decision.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { JsonObject } from "../../runtime/json.ts";
import type { KubeClient } from "./client.ts";

/** Events of one job, for people who look at the cluster; they are about the anchor, which stands for the admission there. */
export type ToldEvents = {
  readonly cluster: string;
  readonly namespace: string;
  readonly anchor: string;
  readonly jobUid: string;
  readonly events: readonly JobEvent[];
};

export type EventTellerOptions = {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  readonly installation: string;
  /** From 0 up to 1; makes names that nobody else has. */
  readonly random: () => number;
  /** The uid of an anchor as far as it is seen, by `namespace/name`. */
  readonly uidOf: (anchor: string) => string | undefined;
  readonly onError: (error: unknown, what: string) => void;
};

/** What waits to be told; more is dropped, since nothing may wait for it. */
const WAITING_MAX = 1_000;
/** So many are sent at a time, which leaves the connections to those who need them. */
const TOGETHER_MAX = 2;
/** How Kubernetes bounds an event's message. */
const MESSAGE_CHARS_MAX = 1_024;

type Waiting = Omit<ToldEvents, "events"> & { readonly event: JobEvent; readonly atMs: number };

/** Makes Kubernetes events, as well as it can and in nobody's way: none is sent twice, and what fails or is too much is lost. */
export class EventTeller {
  readonly #options: EventTellerOptions;
  readonly #waiting: Waiting[] = [];
  readonly #closing = new AbortController();
  #sending = 0;
  #dropped = 0;

  constructor(options: EventTellerOptions) {
    this.#options = options;
  }

  tell({ events, ...about }: ToldEvents): void {
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

  /** Said once until there is room again. */
  #drop(): void {
    if (this.#dropped === 0)
      this.#options.onError(new Error("too many events wait to be told: some are lost"), "events");
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

  #manifest({ namespace, anchor, jobUid, event, atMs }: Waiting): JsonObject {
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
      message: event.message.slice(0, MESSAGE_CHARS_MAX),
      source: { component: "gangway" },
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    };
  }
}

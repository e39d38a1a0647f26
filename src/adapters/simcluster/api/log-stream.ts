/** Serves `gangway logs` on simulated clusters: streams the log of a container, as `pods/log` does. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../../../runtime/clock.ts";
import { linkedController } from "../../../runtime/linked-controller.ts";
import type { SimModel } from "../model.ts";
import type { StatusCause } from "../objects/status-error.ts";
import { badRequest, CAUSE, invalid, notFound } from "../objects/status-error.ts";
import { podLog, type SimLog, type SimLogLine } from "../pods/pod-log.ts";

/** The options of a request for a log. Null: no limit. */
type LogQuery = {
  readonly container: string;
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly tailLines: number | null;
  readonly limitBytes: number | null;
  readonly sinceSeconds: number | null;
  readonly sinceMs: number | null;
};

/** Reads the options of a log as kube-apiserver does. Throws its 422 for invalid ones. */
export function readLogQuery(pod: string, query: URLSearchParams): LogQuery {
  const number = (name: string) => {
    const text = query.get(name);
    if (text === null || text === "") return null;
    if (!/^-?\d{1,18}$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
    return Number(text);
  };
  const flag = (name: string) => ["true", "1"].includes(query.get(name) ?? "");
  const since = query.get("sinceTime");
  const logQuery = {
    container: query.get("container") ?? "",
    follow: flag("follow"),
    previous: flag("previous"),
    timestamps: flag("timestamps"),
    tailLines: number("tailLines"),
    limitBytes: number("limitBytes"),
    sinceSeconds: number("sinceSeconds"),
    sinceMs: since === null || since === "" ? null : Date.parse(since),
  };
  const causes = optionCauses(logQuery);
  if (causes.length > 0) throw invalid("PodLogOptions", pod, causes);
  return logQuery;
}

function optionCauses({ tailLines, limitBytes, sinceSeconds, sinceMs }: LogQuery): readonly StatusCause[] {
  const causes: StatusCause[] = [];
  const atLeast = (field: string, value: number | null, min: number, detail: string) => {
    if (value !== null && value < min) causes.push(CAUSE.invalid(field, value, detail));
  };
  atLeast("tailLines", tailLines, 0, "must be greater than or equal to 0");
  atLeast("limitBytes", limitBytes, 1, "must be greater than 0");
  if (sinceSeconds !== null && sinceMs !== null) {
    causes.push(CAUSE.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  } else atLeast("sinceSeconds", sinceSeconds, 1, "must be greater than 0");
  return causes;
}

type LogContext = { readonly model: SimModel; readonly clock: Clock; readonly catchUp: () => void };

/**
 * Streams a container's log as plain text, with the options of `kubectl logs`: `gangway logs` has the same ones. Sends
 * no faster than the client reads.
 */
export class LogStream {
  readonly #context: LogContext;
  readonly #target: { readonly key: string; readonly uid: string };
  readonly #query: LogQuery;
  readonly #response: ServerResponse;
  readonly #closed = new AbortController();
  #changed = new AbortController();
  /** Null: the pod has no node yet, and no log. */
  #log: SimLog | null;
  #sentBytes = 0;
  /** The number of the next line to send. */
  #next = 0;

  /** Throws the refusal for a pod that does not exist, or has no such log. */
  constructor(context: LogContext, key: string, query: LogQuery, response: ServerResponse) {
    const entry = context.model.store.get("pods", key);
    if (entry === undefined) throw notFound("pods", key.slice(key.indexOf("/") + 1));
    this.#context = context;
    this.#target = { key, uid: entry.object.metadata.uid };
    this.#query = query;
    this.#response = response;
    this.#log = podLog(entry, query);
    response.on("close", () => {
      this.#closed.abort();
      this.#changed.abort();
    });
  }

  get open(): boolean {
    return !this.#closed.signal.aborted;
  }

  /** Call after each change in the cluster. */
  pump(): void {
    this.#changed.abort();
  }

  /** Breaks the connection. */
  cut(): void {
    this.#response.destroy();
  }

  /** Sends the log. With `follow`, continues until the run has ended. */
  async run(): Promise<void> {
    this.#response.writeHead(200, { "content-type": "text/plain", "transfer-encoding": "chunked" });
    this.#response.flushHeaders();
    const { model, clock, catchUp } = this.#context;
    this.#next = this.#first();
    while (this.open && this.#log !== null) {
      this.#changed = new AbortController();
      const { ended } = this.#log;
      const isWhole = await this.#sendWritten(this.#log);
      if (!isWhole || !this.#query.follow || ended) break;
      const dueMs = this.#log.nextMs(model.nowMs) ?? model.nowMs + IDLE_MS;
      using woken = linkedController(this.#closed.signal, this.#changed.signal);
      await clock.sleep(Math.max(1, dueMs - model.nowMs), woken.signal);
      catchUp();
      if (!this.#refresh()) break;
    }
    this.#response.end();
    this.#closed.abort();
  }

  /** Returns false if the byte limit was reached. */
  async #sendWritten(log: SimLog): Promise<boolean> {
    const { to } = log.range(this.#context.model.nowMs);
    for (; this.#next < to && this.open; this.#next += 1) {
      if (!(await this.#send(log.line(this.#next)))) return false;
    }
    return true;
  }

  /** The number of the first line to send. */
  #first(): number {
    if (this.#log === null) return 0;
    const { nowMs } = this.#context.model;
    const { tailLines, sinceSeconds, sinceMs } = this.#query;
    const { from, to } = this.#log.range(nowMs);
    const first = tailLines === null ? from : Math.max(from, to - tailLines);
    // A kubelet rounds to whole seconds.
    const afterMs = sinceSeconds === null ? sinceMs : nowMs - sinceSeconds * 1000;
    if (afterMs === null) return first;
    const wholeMs = Math.floor(afterMs / 1000) * 1000;
    let at = first;
    while (at < to && this.#log.line(at).atMs < wholeMs) at += 1;
    return at;
  }

  /** Reads the pod's present state. Returns false once the pod is gone. */
  #refresh(): boolean {
    const entry = this.#context.model.store.get("pods", this.#target.key);
    if (entry?.object.metadata.uid !== this.#target.uid) return false;
    this.#log = this.#log?.refreshed(entry) ?? null;
    return true;
  }

  async #send({ atMs, text }: SimLogLine): Promise<boolean> {
    const stamp = this.#query.timestamps ? `${new Date(atMs).toISOString().replace("Z", "000000Z")} ` : "";
    const bytes = Buffer.from(`${stamp}${text}\n`);
    const left = (this.#query.limitBytes ?? Number.POSITIVE_INFINITY) - this.#sentBytes;
    const sent = bytes.subarray(0, left);
    this.#sentBytes += sent.length;
    if (!this.#response.write(sent)) await drained(this.#response, this.#closed.signal);
    return sent.length === bytes.length;
  }
}

/** How often to look again while no line is due. */
const IDLE_MS = 1000;

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      response.removeListener("drain", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    response.once("drain", done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/**
 * The HTTP client of one API server. It serves operators who register clusters with any kubeconfig, and users whose
 * templates have fields of a newer Kubernetes.
 */
import { setTimeout } from "node:timers/promises";
import type { Dispatcher } from "undici";
import type { JsonObject } from "../../runtime/json.ts";
import { BLOCKS_FROM_MS, SlowDown } from "../../runtime/slow-down.ts";
import { ConnectionPool, type KubeClientOptions, type RunCode } from "./connection-pool.ts";
import { failureFromStatus, type KubeFailure, unreachable } from "./kube-failure.ts";
import { jsonLines, readObject, readRefusal } from "./read-answer.ts";

/** One call to the API server. Objects are plain JSON, so that fields which this client does not know are kept. */
export type KubeRequest = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** From the server's root, e.g. `/api/v1/pods`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON, a PATCH as a merge patch. */
  readonly body?: JsonObject;
};

export type KubeResult =
  | {
      readonly kind: "ok";
      readonly object: JsonObject;
      /** The server's clock when it answered, in whole seconds. Omitted: the answer has no date. */
      readonly dateMs?: number;
    }
  | KubeFailure;

/** An open watch: its lines as JSON until the server ends it. A broken or silent connection throws. */
type OpenWatch = { readonly kind: "open"; readonly events: AsyncIterable<JsonObject> };

/** An open answer: its bytes until the server ends it, read no faster than they are consumed. */
type OpenStream = { readonly kind: "open"; readonly bytes: AsyncIterable<Uint8Array> };

export type KubeClient = {
  /** Calls once and never throws: a failure is in the result. */
  readonly request: (request: KubeRequest, signal?: AbortSignal) => Promise<KubeResult>;
  /** Opens a watch that fails when the server sends nothing for `silenceMsMax`. */
  readonly watch: (
    request: { readonly path: string; readonly query: Readonly<Record<string, string>>; readonly silenceMsMax: number },
    signal: AbortSignal,
  ) => Promise<OpenWatch | KubeFailure>;
  /**
   * Opens an answer that is not JSON and may take any time, such as a log. A broken connection throws while it is read.
   */
  readonly stream: (
    request: Pick<KubeRequest, "path" | "query">,
    signal: AbortSignal,
  ) => Promise<OpenStream | KubeFailure>;
  /** Ends every connection at once. */
  readonly close: () => Promise<void>;
};

/**
 * Calls one API server with the address, trust and credentials of a kubeconfig. All calls share one pool of kept-alive
 * connections, and no call is repeated automatically; redirects are not followed. Throws if the kubeconfig is refused.
 *
 * client-node signs every call. Its typed calls are not used, since they drop fields that their models do not know,
 * such as a newer cluster's fields in a user's template. Its `Watch` is not used either: it cannot be ended before it
 * has opened, hides why it was refused, and swallows exceptions of callbacks.
 */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  const pool = new ConnectionPool(options);
  const pace = new SlowDown();
  const send = async (request: KubeRequest, timeouts: { bodyMs: number }, signal?: AbortSignal) => {
    // A cluster whose answers block this process is asked less often, so that the others have their time.
    const waitMs = pace.waitMs(performance.now());
    if (waitMs > 0) await setTimeout(waitMs, undefined, signal === undefined ? {} : { signal });
    const { dispatcher, headers, base } = await pool.authenticated(request);
    const query = new URLSearchParams(request.query).toString();
    const contentType = request.method === "PATCH" ? "application/merge-patch+json" : "application/json";
    return dispatcher.request({
      origin: base.origin,
      path: `${base.pathname.replace(/\/$/, "")}${request.path}${query === "" ? "" : `?${query}`}`,
      method: request.method,
      headers: { ...headers, accept: "application/json", "content-type": contentType, "user-agent": "gangway" },
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal: signal ?? null,
      headersTimeout: options.requestTimeoutMs,
      bodyTimeout: timeouts.bodyMs,
      onInfo: hintCounter(),
    });
  };
  return {
    async request(request, signal) {
      try {
        const response = await send(request, { bodyMs: options.requestTimeoutMs }, signal);
        if (response.statusCode < 200 || response.statusCode >= 300) return refusal(response);
        const reader = answerReader(options, pace);
        const object = await readObject(response.body, reader.run).finally(reader.ended);
        const dateMs = Date.parse(String(response.headers["date"]));
        return { kind: "ok", object, ...(Number.isNaN(dateMs) ? {} : { dateMs }) };
      } catch (error) {
        return unreachable(error);
      }
    },
    async watch({ path, query, silenceMsMax }, signal) {
      try {
        const request = { method: "GET", path, query: { ...query, watch: "true" } } as const;
        const response = await send(request, { bodyMs: silenceMsMax }, signal);
        if (response.statusCode === 200) return { kind: "open", events: jsonLines(response.body, options.runCode) };
        return refusal(response);
      } catch (error) {
        return unreachable(error);
      }
    },
    async stream(request, signal) {
      try {
        // No limit on silence: a program may write nothing for hours. TCP's keep-alive finds a dead connection.
        const response = await send({ method: "GET", ...request }, { bodyMs: 0 }, signal);
        if (response.statusCode === 200) return { kind: "open", bytes: response.body };
        return refusal(response);
      } catch (error) {
        return unreachable(error);
      }
    },
    close: () => pool.close(),
  };
}

/** Runs the code that reads one answer, and adds up how long it takes. */
function answerReader({ runCode = (code) => code(), onSlowAnswer }: KubeClientOptions, pace: SlowDown) {
  let tookMs = 0;
  const run: RunCode = (code) => {
    const startedMs = performance.now();
    try {
      return runCode(code);
    } finally {
      tookMs += performance.now() - startedMs;
    }
  };
  const ended = () => {
    pace.ran(tookMs, performance.now());
    if (tookMs >= BLOCKS_FROM_MS) onSlowAnswer?.(tookMs);
  };
  return { run, ended };
}

/** Each hint before an answer begins the time for its headers anew, so a server could send hints for ever. */
const HINTS_MAX = 10;

function hintCounter(): () => void {
  let hints = 0;
  return () => {
    hints += 1;
    if (hints > HINTS_MAX) throw new Error(`the server sends more than ${HINTS_MAX} hints before its answer`);
  };
}

async function refusal({ statusCode, body, headers }: Dispatcher.ResponseData): Promise<KubeFailure> {
  return failureFromStatus(statusCode, await readRefusal(body), headers);
}

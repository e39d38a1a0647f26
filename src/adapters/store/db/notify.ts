/**
 * Hints between processes. Users see a job that one process took start at once in another, although nothing polls: with
 * hints alone a planner or a worker of another process wakes within milliseconds.
 */
import type { Client } from "pg";
import type { Clock } from "../../../runtime/clock.ts";
import { doublingMs } from "../../../runtime/doubling.ts";
import { linkedController } from "../../../runtime/linked-controller.ts";
import { type Hint, HintBatch, type Hints, hintsOf, localHints } from "./hints.ts";
import { translated } from "./postgres-error.ts";

type NotifyOptions = {
  /** A direct connection: poolers that lend a connection for a transaction only do not deliver notifications. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  readonly clock: Pick<Clock, "sleep">;
  readonly random: () => number;
  /** Called when the connection is lost or cannot be made. It is tried again. */
  readonly onError: (error: unknown) => void;
};

const CHANNEL = "gangway";
/** How long hints are collected, because each notification costs the server a commit. */
const COLLECT_MS = 20;
/**
 * The wait before a lost connection is made again. It doubles, and varies so that a fleet does not reconnect at once.
 */
const RECONNECT = { firstMs: 100, longestMs: 5_000 };
/** How often a silent connection is checked, and how long it has to answer. */
const ALIVE_MS = 15_000;
const ANSWER_MS = 5_000;

/** The hints after a reconnect: this process may have missed any hint. */
const ALL: readonly Hint[] = [{ kind: "planner" }, { kind: "log" }, { kind: "jobs" }];

/**
 * Hints between the processes of one database, by LISTEN and NOTIFY on a connection of their own. While the server is
 * away, hints still work within this process. After a reconnect, the listeners of this process get every kind of hint.
 */
export function createHints(options: NotifyOptions): Hints {
  const local = localHints();
  const batch = new HintBatch();
  const stop = new AbortController();
  let wake = () => {};
  const channel: HintChannel = {
    receive: (payload) => {
      for (const hint of hintsOf(payload)) local.send(hint);
    },
    missed: () => {
      for (const hint of ALL) local.send(hint);
    },
    next: async (signal) => {
      if (batch.isEmpty) await new Promise<void>((resolve) => listenOnce(signal, resolve, (set) => (wake = set)));
      return signal.aborted ? [] : batch.take();
    },
  };
  const running = keepConnected(options, channel, stop.signal);
  return {
    send: (hint) => {
      if (stop.signal.aborted) return;
      local.send(hint);
      batch.add(hint);
      wake();
    },
    onHint: local.onHint,
    close: async () => {
      stop.abort();
      await running;
      await local.close();
    },
  };
}

/** The two directions of hints over one connection. */
type HintChannel = {
  readonly receive: (payload: string) => void;
  readonly missed: () => void;
  /** Resolves with the next payloads once there are any. Empty once the signal is aborted. */
  readonly next: (signal: AbortSignal) => Promise<readonly string[]>;
};

function listenOnce(signal: AbortSignal, resolve: () => void, setWake: (wake: () => void) => void): void {
  const done = () => {
    signal.removeEventListener("abort", done);
    setWake(() => {});
    resolve();
  };
  if (signal.aborted) done();
  else {
    signal.addEventListener("abort", done, { once: true });
    setWake(done);
  }
}

/** Makes one connection after another until the signal is aborted. Never rejects. */
async function keepConnected(options: NotifyOptions, channel: HintChannel, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await serve(options, channel, signal, () => {
        failures = 0;
      });
    } catch (error) {
      failures += 1;
      options.onError(translated(error));
      const pauseMs = doublingMs(RECONNECT, failures - 1);
      await options.clock.sleep(pauseMs * (0.5 + options.random()), signal);
    }
  }
}

/** Listens and sends on one connection. Resolves when the signal is aborted; throws when the connection is lost. */
async function serve(
  options: NotifyOptions,
  channel: HintChannel,
  signal: AbortSignal,
  onConnected: () => void,
): Promise<void> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({
    connectionString: options.url,
    connectionTimeoutMillis: options.connectTimeoutMs,
    query_timeout: ANSWER_MS,
    keepAlive: true,
    application_name: "gangway hints",
  });
  const lost = new AbortController();
  client.on("error", (error) => lost.abort(error));
  client.on("end", () => lost.abort(new Error("Connection terminated")));
  using ended = linkedController(signal, lost.signal);
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number }>(`select pg_backend_pid() as pid`);
    const ownPid = rows[0]?.pid;
    client.on("notification", ({ processId, payload = "" }) => {
      if (processId !== ownPid) channel.receive(payload);
    });
    await client.query(`listen ${CHANNEL}`);
    onConnected();
    channel.missed();
    await send(client, options, channel, ended.signal);
    if (!signal.aborted) throw lost.signal.reason;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Sends payloads until the connection ends. A pause after each lets the next hints collect. Without payloads it checks
 * whether the server still answers, because a listener does not notice a network that was cut silently.
 */
async function send(client: Client, { clock }: NotifyOptions, channel: HintChannel, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    using until = linkedController(ended, AbortSignal.timeout(ALIVE_MS));
    const payloads = await channel.next(until.signal);
    if (payloads.length > 0) await client.query(NOTIFY, [CHANNEL, payloads]);
    else if (!ended.aborted) await client.query("select 1");
    await clock.sleep(COLLECT_MS, ended);
  }
}

const NOTIFY = "select pg_notify($1, payload) from unnest($2::text[]) payload";

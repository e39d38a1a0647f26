import type { Client } from "pg";
import type { Clock } from "../../runtime/clock.ts";
import { doublingMs } from "../../runtime/doubling.ts";
import { type Hint, HintBatch, type Hints, hintsOf, localHints } from "./hints.ts";
import { translated } from "./postgres-error.ts";

export type NotifyOptions = {
  /** A direct connection: poolers that lend a connection for a transaction only do not deliver notifications. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  readonly clock: Pick<Clock, "sleep">;
  readonly random: () => number;
  /** Told when the connection is lost or not to be had; it is made again. */
  readonly onError: (error: unknown) => void;
};

const CHANNEL = "gangway";
/** Hints are collected for so long: a notification is a commit of its own on the server. */
const COLLECT_MS = 20;
/** Until a lost connection is made again: doubling, up to the other, and spread so that a fleet does not come back at once. */
const RECONNECT = { firstMs: 100, longestMs: 5_000 };
/** A connection that says nothing is asked so often whether it still lives, and has so long to answer. */
const ALIVE_MS = 15_000;
const ANSWER_MS = 5_000;

/** Whoever was cut off may have missed anything. */
const ALL: readonly Hint[] = [{ kind: "planner" }, { kind: "log" }, { kind: "jobs" }];

/**
 * Hints between the processes of one database, by LISTEN and NOTIFY on a connection of their own. Works, within this process alone, also while
 * the server is away; once it is back, everyone who was cut off is told to look at everything.
 */
export function createHints(options: NotifyOptions): Hints {
  const local = localHints();
  const batch = new HintBatch();
  const stop = new AbortController();
  let wake = () => {};
  const line: Line = {
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
  const running = keepConnected(options, line, stop.signal);
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

/** What a connection serves. */
type Line = {
  readonly receive: (payload: string) => void;
  readonly missed: () => void;
  /** The next payloads to send, once there are any; none once the signal is aborted. */
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

/** One connection after another until the signal is aborted. Never rejects. */
async function keepConnected(options: NotifyOptions, line: Line, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await serve(options, line, signal, () => {
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

/** Listens and sends on one connection; resolves when the signal is aborted, throws when the connection is lost. */
async function serve(options: NotifyOptions, line: Line, signal: AbortSignal, onConnected: () => void): Promise<void> {
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
  const ended = AbortSignal.any([signal, lost.signal]);
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number }>(`select pg_backend_pid() as pid`);
    const ownPid = rows[0]?.pid;
    client.on("notification", ({ processId, payload = "" }) => {
      if (processId !== ownPid) line.receive(payload);
    });
    await client.query(`listen ${CHANNEL}`);
    onConnected();
    line.missed();
    await send(client, options, line, ended);
    if (!signal.aborted) throw lost.signal.reason;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Sends what there is to send, with a pause after each so that the next is collected; ends when the connection does. Where nothing is to be sent
 * it asks whether the server still lives: a way that was cut in silence is noticed by nobody who only listens.
 */
async function send(client: Client, { clock }: NotifyOptions, line: Line, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    const payloads = await line.next(AbortSignal.any([ended, AbortSignal.timeout(ALIVE_MS)]));
    if (payloads.length > 0) await client.query(NOTIFY, [CHANNEL, payloads]);
    else if (!ended.aborted) await client.query("select 1");
    await clock.sleep(COLLECT_MS, ended);
  }
}

const NOTIFY = "select pg_notify($1, payload) from unnest($2::text[]) payload";

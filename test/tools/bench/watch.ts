/** How late watchers get changes, and what a watcher and a change cost, beside a bare stream of prepared bytes. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { WatchJobsRequestSchema } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { WAIT_MS_MAX, waitForCount, within } from "../../support/bounded.ts";
import { answerOf, ordersTo } from "./child-orders.ts";
import { profileLines } from "./measure.ts";
import { scratchServerDb } from "./scratch-db.ts";
import type { ChangeTimes, Histogram, ReaderAnswer, ReaderOrder, ServerAnswer, ServerOrder } from "./watch-orders.ts";

export type WatchBench = {
  /** Each reads on a connection of its own. */
  readonly watchers: number;
  /** How many different filters they have. Each selects the jobs of one namespace. */
  readonly filters: number;
  /** The changes come from so many namespaces in turn. No watcher selects those beyond `filters`. */
  readonly namespaces: number;
  readonly perSecond: number;
  readonly seconds: number;
  /** Watchers that read nothing, beside the others in a run of their own. */
  readonly stalled: number;
  /** The server for a database of the bench's own. Null: an embedded one in a temporary folder. */
  readonly postgres: string | null;
  readonly profile: boolean;
};

export type WatchFigures = {
  readonly changes: number;
  /** The changes that watchers got: of each that a filter selects, one for each of its watchers. */
  readonly received: number;
  readonly expected: number;
  /** The responses that were encoded for these changes. */
  readonly encodings: number;
  readonly selected: number;
  readonly p99Ms: number;
  readonly p99StalledMs: number;
  readonly p99FloorMs: number;
  readonly keptBytes: number;
};

/** A namespace that no watcher selects. */
const QUIET = "quiet";
const READERS = 2;
const tellServer = ordersTo<ServerOrder, ServerAnswer>();
const tellReader = ordersTo<ReaderOrder, ReaderAnswer>();

/** Measures watches on the service, then the same streams on the floor. */
export async function benchWatch(bench: WatchBench, print: (line: string) => void): Promise<WatchFigures> {
  await using parts = new AsyncDisposableStack();
  const where = bench.postgres === null ? "" : (await scratchServerDb(parts, bench.postgres)).url;
  const readers = Array.from({ length: READERS }, () => startChild(parts, "watch-readers.ts"));
  // A job has at most one record under way, so each has time for it.
  const jobs = Math.ceil((2 * bench.perSecond) / bench.namespaces) + 1;
  const names = namespacesOf(bench);
  const server = await startServer(parts, "watch-server.ts", [where, [...names, QUIET].join(), `${jobs}`]);
  const run = new Run(server, readers, bench);
  const quiet = { namespaces: [QUIET], deliveries: () => 0, bytes: 0 };
  // The first run compiles the code.
  await run.change(quiet);
  const alone = await run.change(quiet);
  const before = await run.usage();
  await run.open(requestsOf(bench, watchRequest), false);
  const unwatched = await run.change(quiet);
  if (bench.profile) await tellServer(server.child, { kind: "profile" }, "done");
  const all = { namespaces: names, deliveries: (change: number) => deliveriesOf(bench, change), bytes: 0 };
  const watched = await run.change(all);
  if (bench.profile) {
    const { times } = await tellServer(server.child, { kind: "profiled" }, "profile");
    for (const line of profileLines("watches", times)) print(line);
  }
  const after = await run.usage();
  await run.open(requestsOf({ ...bench, watchers: bench.stalled }, watchRequest), true);
  const stalled = await run.change(all);
  await run.end();

  const floorServer = await startServer(parts, "watch-floor.ts", []);
  const floorRun = new Run(floorServer, readers, bench);
  const floorBefore = await floorRun.usage();
  await floorRun.open(requestsOf(bench, Buffer.from), false);
  const bytes = Math.round(watched.bytes / Math.max(1, watched.received));
  const floor = await floorRun.change({ ...all, bytes });
  const floorAfter = await floorRun.usage();
  await floorRun.end();

  const kept = (after.keptBytes - before.keptBytes) / bench.watchers;
  const floorKept = (floorAfter.keptBytes - floorBefore.keptBytes) / bench.watchers;
  const perDelivery = (watched.cpuMs - alone.cpuMs) / watched.received;
  const perBare = floor.cpuMs / floor.received;
  print(`${bench.watchers} watchers, ${bench.filters} filters, messages of ${bytes} bytes`);
  print(lagLine("changes that all are watched", watched));
  print(lagLine(`  beside ${bench.stalled} stalled readers`, stalled));
  print(lagLine("  floor: bare streams of such bytes", floor));
  const note = (name: string, text: string) => print(`${name.padEnd(36)} ${text}`);
  const cpu = `${us(perDelivery)} of CPU, floor ${us(perBare)}, ratio ${(perDelivery / perBare).toFixed(2)}`;
  note("a message to a watcher", cpu);
  const [ofAny, ofUnwatched] = [alone.cpuMs / alone.changes, (unwatched.cpuMs - alone.cpuMs) / unwatched.changes];
  note("a change that nobody watches", `${us(ofUnwatched)} of CPU more than without watchers, ${us(ofAny)}`);
  const resident = (after.rssBytes - before.rssBytes) / bench.watchers;
  note("memory of a watcher", `${kib(kept)} kept, floor ${kib(floorKept)}; of the process ${kib(resident)}`);
  const { encodings: made, selected: of } = watched;
  note("encodings", `${made} for ${of} changes that a filter selects, ${watched.received} messages`);
  const { changes, received, expected, encodings, selected } = watched;
  const p99s = { p99Ms: watched.p99Ms, p99StalledMs: stalled.p99Ms, p99FloorMs: floor.p99Ms };
  return { changes, received, expected, encodings, selected, ...p99s, keptBytes: kept };
}

function namespacesOf({ namespaces }: WatchBench): readonly string[] {
  return Array.from({ length: namespaces }, (_, at) => `team-${at}`);
}

/** How many watchers get the change of this number. */
function deliveriesOf({ watchers, filters, namespaces }: WatchBench, change: number): number {
  const filter = change % namespaces;
  return filter < filters ? Math.floor(watchers / filters) + (filter < watchers % filters ? 1 : 0) : 0;
}

function requestsOf({ watchers, filters }: WatchBench, make: (namespace: string) => Uint8Array): readonly string[] {
  return Array.from({ length: watchers }, (_, at) => Buffer.from(make(`team-${at % filters}`)).toString("base64"));
}

function watchRequest(namespace: string): Uint8Array {
  return toBinary(WatchJobsRequestSchema, create(WatchJobsRequestSchema, { filter: { namespace } }));
}

function startChild(parts: AsyncDisposableStack, file: string, args: readonly string[] = []): ChildProcess {
  const child = fork(join(import.meta.dirname, file), args, { execArgv: ["--expose-gc"] });
  parts.defer(async () => {
    const ended = once(child, "exit");
    if (child.exitCode !== null) return;
    if (child.connected) child.disconnect();
    await within(`the end of ${file}`, WAIT_MS_MAX, ended);
  });
  return child;
}

type BenchServer = { readonly child: ChildProcess; readonly address: string; readonly path: string };

async function startServer(parts: AsyncDisposableStack, file: string, args: readonly string[]): Promise<BenchServer> {
  const child = startChild(parts, file, args);
  return { child, ...(await answerOf<ServerAnswer, "ready">(child, "ready")) };
}

type Load = {
  readonly namespaces: readonly string[];
  /** How many watchers get the change of this number. */
  readonly deliveries: (change: number) => number;
  readonly bytes: number;
};

type Measured = {
  readonly changes: number;
  readonly perSecond: number;
  readonly received: number;
  readonly expected: number;
  readonly selected: number;
  readonly bytes: number;
  readonly encodings: number;
  /** Of the server, from the first change until every watcher had the last. */
  readonly cpuMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p99FromCommitMs: number;
};

/** A server and the readers that watch it. */
class Run {
  readonly #server: BenchServer;
  readonly #readers: readonly ChildProcess[];
  readonly #bench: WatchBench;

  constructor(server: BenchServer, readers: readonly ChildProcess[], bench: WatchBench) {
    this.#server = server;
    this.#readers = readers;
    this.#bench = bench;
  }

  usage() {
    return tellServer(this.#server.child, { kind: "usage" }, "used");
  }

  async open(requests: readonly string[], stalled: boolean): Promise<void> {
    const { address, path } = this.#server;
    await Promise.all(
      this.#readers.map((reader, at) => {
        const some = requests.filter((_request, place) => place % READERS === at);
        return tellReader(reader, { kind: "open", address, path, requests: some, stalled }, "opened");
      }),
    );
  }

  /** Changes jobs, and waits until every watcher has every change that it selects. */
  async change({ namespaces, deliveries, bytes }: Load): Promise<Measured> {
    const { perSecond, seconds } = this.#bench;
    const before = await this.usage();
    const startMs = performance.now();
    const order = { kind: "change", perSecond, seconds, namespaces, bytes } as const;
    const { first, beganMs, committedMs } = await tellServer(this.#server.child, order, "changed");
    const tookMs = performance.now() - startMs;
    const wanted = beganMs.map((_ms, at) => deliveries(at));
    const expected = wanted.reduce((sum, count) => sum + count, 0);
    await waitForCount("messages", async () => (await this.#received()).received, { wanted: expected });
    const after = await this.usage();
    const counted = await this.#received();
    const lags = await this.#lags({ first, beganMs, committedMs });
    return {
      changes: beganMs.length,
      perSecond: (beganMs.length * 1000) / tookMs,
      ...counted,
      expected,
      selected: wanted.filter((count) => count > 0).length,
      encodings: after.encodings - before.encodings,
      cpuMs: after.cpuMs - before.cpuAfterMs,
      p50Ms: quantile(
        lags.map(({ sinceBegin }) => sinceBegin),
        0.5,
      ),
      p99Ms: quantile(
        lags.map(({ sinceBegin }) => sinceBegin),
        0.99,
      ),
      p99FromCommitMs: quantile(
        lags.map(({ sinceCommit }) => sinceCommit),
        0.99,
      ),
    };
  }

  /** Closes every stream, and ends the server. */
  async end(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => tellReader(reader, { kind: "close" }, "closed")));
    const ended = once(this.#server.child, "exit");
    this.#server.child.send({ kind: "end" } satisfies ServerOrder);
    await within("the end of the server", WAIT_MS_MAX, ended);
  }

  async #received(): Promise<{ readonly received: number; readonly bytes: number }> {
    const counts = await Promise.all(this.#readers.map((reader) => tellReader(reader, { kind: "count" }, "counted")));
    const sum = (of: "received" | "bytes") => counts.reduce((total, count) => total + count[of], 0);
    return { received: sum("received"), bytes: sum("bytes") };
  }

  #lags(times: ChangeTimes) {
    return Promise.all(this.#readers.map((reader) => tellReader(reader, { kind: "lags", times }, "lags")));
  }
}

/** In milliseconds. NaN: nothing was counted. */
function quantile(histograms: readonly Histogram[], share: number): number {
  const counts = new Map<number, number>();
  for (const [tenths, count] of histograms.flat()) counts.set(tenths, (counts.get(tenths) ?? 0) + count);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [tenths, count] of [...counts].sort(([a], [b]) => a - b)) {
    below += count;
    if (below > total * share) return tenths / 10;
  }
  return Number.NaN;
}

function lagLine(name: string, { perSecond, received, p50Ms, p99Ms, p99FromCommitMs }: Measured): string {
  const rate = `${Math.round(perSecond)}/s`;
  const late = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`;
  const lag = `${late}, p99 after the commit ${p99FromCommitMs.toFixed(1)} ms`;
  return `${name.padEnd(36)} ${rate.padStart(7)}, ${received} messages: ${lag}`;
}

function us(ms: number): string {
  return `${(ms * 1000).toFixed(1)} µs`;
}

function kib(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}

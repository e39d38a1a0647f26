/** How long the calls of one tenant take while another floods the service, beside the same calls without the flood. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { WAIT_MS_MAX, within } from "../../support/bounded.ts";
import type { MainProcess } from "../../support/main-process.ts";
import { answerOf, ordersTo } from "./child-orders.ts";
import type { FloodAnswer, FloodCounts, FloodOrder } from "./flood-orders.ts";
import { knownClient, makePlaces, type Stores, startIssuer, startKnown, startStores } from "./known-service.ts";
import { STEADY_KINDS, SteadyTenant, type SteadyTimes } from "./steady-tenant.ts";

export type FloodBench = {
  /** The server for a database of the bench's own, beside a Redis of its own. Null: an embedded database. */
  readonly postgres: string | null;
  /** How long each turn is measured. */
  readonly seconds: number;
  /** The concurrent calls of the flood, of each kind. */
  readonly callers: number;
  /** Omitted: 5. */
  readonly turns?: number;
  /** The calls a second of the steady tenant, of each kind. Omitted: 10. */
  readonly perSecond?: number;
  /** Omitted: measures with each of them. */
  readonly limits?: keyof typeof LIMITS;
};

/** The tenants, and their namespaces. */
const CALM = "calm";
const BUSY = "busy";
/** The flood has begun to queue by then. */
const BEGIN_SECONDS = 1;
/** Raised so far that they protect nobody. */
const NONE = { callsPerSecond: "none", burst: "none", callsInFlight: "none", watches: "none", logStreams: "none" };
const LIMITS = { default: null, no: { defaults: { ...NONE, waitingRequests: "none" } } };
const ask = ordersTo<FloodOrder, FloodAnswer>();

/** Returns for each kind of limits and of calls the p99 beside the flood as a ratio to the p99 without it. */
export async function benchFlood(
  bench: FloodBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  const ratios: Record<string, number> = {};
  for (const [which, limits] of Object.entries(LIMITS)) {
    if (which !== (bench.limits ?? which)) continue;
    const name = `${which} limits`;
    await using parts = new AsyncDisposableStack();
    const stores = await startStores(parts, bench.postgres);
    const measured = await measure(await startService(parts, stores, limits), bench);
    print(`${name}, ${stores === null ? "embedded" : "PostgreSQL and Redis"}: ${floodText(measured)}`);
    for (const kind of STEADY_KINDS) {
      const [alone, beside] = [measured.alone[kind], measured.beside[kind]].map((times) => quantiles(times ?? []));
      if (alone === undefined || beside === undefined) continue;
      const ratio = beside.p99Ms / alone.p99Ms;
      ratios[`${name}, ${kind}`] = ratio;
      const text = `alone ${quantilesText(alone)}; beside the flood ${quantilesText(beside)}`;
      print(`  ${kind.padEnd(9)} ${text}; ratio of p99 ${ratio.toFixed(2)}`);
    }
  }
  return ratios;
}

type FloodedService = {
  readonly steady: SteadyTenant;
  readonly startFlood: (callers: number) => Promise<ChildProcess>;
};

async function startService(
  parts: AsyncDisposableStack,
  stores: Stores,
  limits: object | null,
): Promise<FloodedService> {
  const issuer = await startIssuer(parts);
  const tenants = [CALM, BUSY].map((namespace) => ({ subject: `login:${namespace}`, namespace }));
  const service = await startKnown(parts, { stores, issuer: issuer.url, tenants, limits });
  await makePlaces(knownClient(parts, service, { token: await issuer.token("root") }), [CALM, BUSY]);
  const steady = new SteadyTenant(knownClient(parts, service, { token: await issuer.token(CALM) }), CALM);
  const watching = new AbortController();
  parts.defer(() => watching.abort());
  await steady.watch(watching.signal);
  const token = await issuer.token(BUSY);
  return { steady, startFlood: (callers) => startFlood(parts, service, [token, BUSY, String(callers)]) };
}

async function startFlood(
  parts: AsyncDisposableStack,
  { address }: MainProcess,
  args: readonly string[],
): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, "flood-callers.ts"), [address ?? "", ...args]);
  parts.defer(async () => {
    if (child.exitCode !== null) return;
    const ended = once(child, "exit");
    if (child.connected) child.disconnect();
    await within("the end of the flood", WAIT_MS_MAX, ended);
  });
  await answerOf<FloodAnswer, "ready">(child, "ready");
  return child;
}

type Measured = {
  readonly alone: SteadyTimes;
  readonly beside: SteadyTimes;
  readonly counts: FloodCounts;
  readonly floodMs: number;
};

/** Takes turns, so that whatever else the machine does meets both alike. */
async function measure({ steady, startFlood }: FloodedService, bench: FloodBench): Promise<Measured> {
  const { seconds, callers, turns = 5, perSecond = 10 } = bench;
  const flood = await startFlood(callers);
  const alone: SteadyTimes[] = [];
  const beside: SteadyTimes[] = [];
  const counts: FloodCounts[] = [];
  let floodMs = 0;
  await steady.run({ perSecond, seconds: BEGIN_SECONDS });
  for (let turn = 0; turn < turns; turn++) {
    alone.push(await steady.run({ perSecond, seconds }));
    const fromMs = performance.now();
    await ask(flood, { kind: "start" }, "started");
    await steady.run({ perSecond, seconds: BEGIN_SECONDS });
    beside.push(await steady.run({ perSecond, seconds }));
    floodMs += performance.now() - fromMs;
    counts.push((await ask(flood, { kind: "stop" }, "stopped")).counts);
  }
  const sum = (of: keyof FloodCounts) => counts.reduce((total, one) => total + one[of], 0);
  const all = { done: sum("done"), limited: sum("limited"), failed: sum("failed") };
  return { alone: joined(alone), beside: joined(beside), counts: all, floodMs };
}

function joined(turns: readonly SteadyTimes[]): SteadyTimes {
  const of = (kind: keyof SteadyTimes) => turns.flatMap((times) => times[kind]);
  return Object.fromEntries(STEADY_KINDS.map((kind) => [kind, of(kind)])) as unknown as SteadyTimes;
}

type Quantiles = { readonly p50Ms: number; readonly p99Ms: number };

function quantiles(times: readonly number[]): Quantiles {
  const sorted = Float64Array.from(times).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}

function quantilesText({ p50Ms, p99Ms }: Quantiles): string {
  return `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`;
}

function floodText({ counts: { done, limited, failed }, floodMs }: Measured): string {
  const rate = (calls: number) => `${Math.round((calls * 1000) / floodMs)}/s`;
  return `the flood had ${rate(done)} done, ${rate(limited)} refused by limits, ${rate(failed)} failed`;
}

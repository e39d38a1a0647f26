/** What more api processes bring: the same callers call one, two and four of them, on one database. */
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import type { ServeChild } from "../../support/serve-process.ts";
import { ownCpuMs, processCpuMs, serverCpuMs } from "./cpu-time.ts";
import { type BenchFleet, jobRequest, startFleet } from "./fleet.ts";
import { callRate } from "./measure.ts";

export type ProcessesBench = {
  readonly postgres: string;
  readonly seconds: number;
  readonly callers: number;
  /** Omitted: 1, 2 and 4. */
  readonly counts?: readonly number[];
};

/** Calls a second of one load, and the CPU time of a call in each of the places that it passes. */
type Measured = {
  readonly load: string;
  readonly processes: number;
  readonly perSecond: number;
  readonly apiMs: number;
  readonly postgresMs: number;
  readonly callersMs: number;
};

/** Returns for each load and number of processes the rate as a ratio to that of the fewest processes. */
export async function benchProcesses(
  bench: ProcessesBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using parts = new AsyncDisposableStack();
  const fleet = await startFleet(parts, { postgres: bench.postgres, pods: 100 });
  const ratios: Record<string, number> = {};
  const first = new Map<string, number>();
  const running: ServeChild[] = [];
  for (const count of bench.counts ?? [1, 2, 4]) {
    while (running.length < count) running.push(await fleet.serve("api"));
    for (const measured of await measure(bench, fleet, running)) {
      const floor = first.get(measured.load) ?? measured.perSecond;
      first.set(measured.load, floor);
      ratios[`${measured.load}, ${count} processes`] = measured.perSecond / floor;
      print(line(measured, floor));
    }
  }
  print("Processes share what the api costs. PostgreSQL and the callers' process are the same ones for all of them.");
  return ratios;
}

async function measure(bench: ProcessesBench, fleet: BenchFleet, running: readonly ServeChild[]) {
  const clients = running.map((process) => fleet.client(process));
  const clientOf = (call: number) => clients[call % clients.length] as (typeof clients)[number];
  const { namespace } = fleet;
  const prefix = `of-${running.length}`;
  const { method } = JobService;
  const named = (call: number) => jobRequest({ namespace, name: `${prefix}-${call}`, runs: "1h", queue: "default" });
  const loads: Readonly<Record<string, (call: number) => Promise<unknown>>> = {
    submit: (call) => clientOf(call).call(method.createJob, named(call)),
    // The first job of all: the place of a later one is counted, whoever counts it.
    get: (call) => clientOf(call).call(method.getJob, { namespace, name: "of-1-1" }),
    "list 50": (call) => clientOf(call).call(method.listJobs, { filter: { namespace }, pageSize: 50 }),
  };
  const measured: Measured[] = [];
  for (const [load, call] of Object.entries(loads)) {
    const used = async () => ({
      api: running.reduce((sum, { child }) => sum + (processCpuMs(child.pid ?? 0) ?? 0), 0),
      postgres: (await serverCpuMs(fleet.db)) ?? 0,
      callers: ownCpuMs(),
    });
    const before = await used();
    let calls = 0;
    const counted = async (at: number) => {
      await call(at);
      calls += 1;
    };
    const { perSecond } = await callRate(load, counted, bench);
    const after = await used();
    const perCall = (of: keyof typeof after) => (after[of] - before[of]) / calls;
    const times = { apiMs: perCall("api"), postgresMs: perCall("postgres"), callersMs: perCall("callers") };
    measured.push({ load, processes: running.length, perSecond, ...times });
  }
  return measured;
}

function line({ load, processes, perSecond, apiMs, postgresMs, callersMs }: Measured, floor: number): string {
  const rate = `${Math.round(perSecond).toString().padStart(6)}/s   ratio ${(perSecond / floor).toFixed(2)}`;
  const cpu = `api ${apiMs.toFixed(2)} ms, PostgreSQL ${postgresMs.toFixed(2)} ms, callers ${callersMs.toFixed(2)} ms`;
  return `${load.padEnd(10)} ${processes} processes ${rate}   CPU of a call: ${cpu}`;
}

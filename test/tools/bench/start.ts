/** How long the service and the command line take to start, and what an installation costs that has nothing to do. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitUntil } from "../../support/bounded.ts";
import { copyJobs } from "../../support/copy-jobs.ts";
import type { ServeChild } from "../../support/serve-process.ts";
import { benchCli } from "./cli.ts";
import { processCpuMs, serverCpuMs } from "./cpu-time.ts";
import { type BenchFleet, startFleet, submitJobs } from "./fleet.ts";

export type StartBench = {
  /** How often each start is measured. */
  readonly runs: number;
  /** The server for the database of the idle installation. */
  readonly postgres: string;
  readonly finished: number;
  readonly running: number;
  /** How long the idle installation is watched. */
  readonly seconds: number;
  /** So often it is looked at for whether it is idle. Omitted: for two minutes. */
  readonly looksMax?: number;
};

/** Of an idle installation, by second. */
export type IdleFigures = { readonly statements: number; readonly cpuMs: number; readonly postgresMs: number };

const root = join(import.meta.dirname, "../../..");
const LISTENING = "listening on ";
/** PGlite in the folder of its argument, as the service opens it, and one statement. */
const PGLITE = `
import { PGlite } from "@electric-sql/pglite";
const db = await PGlite.create(process.argv[1]);
await db.query("select 1");
console.log("${LISTENING}nothing");
`;
/** The statements that are printed with their rates. */
const SHOWN = 40;
/** An installation is idle once two looks at its statements differ by no more than this part. */
const STEADY = 0.2;
const LOOK_MS = 3_000;
const LOOKS_MAX = 40;

/** Measures starts beside that of Node alone, and an idle installation. */
export async function benchStart(bench: StartBench, print: (line: string) => void): Promise<IdleFigures> {
  if (bench.runs > 0) await measureStarts(bench.runs, print);
  if (bench.runs > 0) await benchCli({ runs: bench.runs, only: ["node -e 0", "gangway get"] }, print);
  return await measureIdle(bench, print);
}

type Start = { readonly wallMs: number; readonly cpuMs: number };

async function measureStarts(runs: number, print: (line: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gangway-bench-"));
  const serve = (data: string) => ["bin/gangway", "up", "--no-examples", "--listen", "127.0.0.1:0", "--data", data];
  const pglite = (data: string) => ["--input-type=module", "-e", PGLITE, data];
  const all: Record<string, Start[]> = {};
  const note = (name: string, start: Start) => {
    all[name] = [...(all[name] ?? []), start];
  };
  try {
    for (let run = 0; run < runs; run++) {
      const [data, bare] = [join(folder, `data-${run}`), join(folder, `bare-${run}`)];
      note("node -e 0", await startOf(["-e", `console.log("${LISTENING}nothing")`]));
      note("PGlite, new folder", await startOf(pglite(bare)));
      note("PGlite, same folder", await startOf(pglite(bare)));
      note("npm start, new folder", await startOf(serve(data)));
      note("npm start, same folder", await startOf(serve(data)));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const floor = median((all["node -e 0"] ?? []).map(({ cpuMs }) => cpuMs));
  for (const [name, starts] of Object.entries(all)) {
    const [wall, cpu] = [median(starts.map(({ wallMs }) => wallMs)), median(starts.map(({ cpuMs }) => cpuMs))];
    const ratio = `ratio of CPU ${(cpu / floor).toFixed(1)}`;
    print(`${name.padEnd(24)} ${wall.toFixed(0).padStart(6)} ms, CPU ${cpu.toFixed(0).padStart(6)} ms   ${ratio}`);
  }
}

/** The time until a program says that it listens, and the CPU time that it has used by then. Ends it. */
async function startOf(args: readonly string[]): Promise<Start> {
  const startMs = performance.now();
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let output = "";
  let said: Start | null = null;
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    if (said !== null || !output.includes(LISTENING)) return;
    said = { wallMs: performance.now() - startMs, cpuMs: treeCpuMs(child.pid ?? 0) };
    child.kill("SIGTERM");
  });
  await ended;
  if (said === null) throw new Error(`${args.join(" ")} ended without listening: ${output}`);
  return said;
}

/** The CPU time of a process and of its children. */
function treeCpuMs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  const others = children === "" ? [] : children.split(" ").map(Number);
  return others.reduce((sum, child) => sum + treeCpuMs(child), processCpuMs(pid) ?? 0);
}

async function measureIdle(bench: StartBench, print: (line: string) => void): Promise<IdleFigures> {
  await using parts = new AsyncDisposableStack();
  const fleet = await startFleet(parts, { postgres: bench.postgres, pods: bench.running + 1 });
  const service = await fleet.serve("api,planner,worker");
  const client = fleet.client(service);
  const none = await idle(fleet, service, bench);
  print(idleLine("idle without jobs", none));
  await submitJobs(fleet, client, { prefix: "ended", count: 1, runs: "10ms", phase: "SUCCEEDED" });
  await waitUntil("nothing is left of the ended job", async () => {
    const [row] = await fleet.db.query<{ left: number }>("select count(*)::int as left from admission_clusters");
    return row?.left === 0;
  });
  const [ended] = await fleet.db.query<{ uid: string }>("select uid from jobs");
  await copyJobs(fleet.db, { uid: ended?.uid ?? "", count: bench.finished, prefix: "copy" });
  await fleet.db.query("analyze");
  await submitJobs(fleet, client, { prefix: "runs", count: bench.running, runs: "forever", phase: "RUNNING" });
  const full = await idle(fleet, service, bench);
  print(idleLine(`idle, ${bench.finished} finished, ${bench.running} running`, full));
  for (const [statement, count] of full.texts.slice(0, SHOWN)) {
    const text = statement.replaceAll(/\s+/g, " ").trim().slice(0, 90);
    print(`  ${(count / bench.seconds).toFixed(1).padStart(6)}/s  ${text}`);
  }
  return full;
}

type Idle = IdleFigures & { readonly texts: ReturnType<BenchFleet["statements"]["take"]> };

async function idle(
  { db, statements }: BenchFleet,
  { child }: ServeChild,
  { seconds, looksMax = LOOKS_MAX }: Pick<StartBench, "seconds" | "looksMax">,
): Promise<Idle> {
  const total = (texts: Idle["texts"]) => texts.reduce((sum, [, count]) => sum + count, 0);
  let last = Number.POSITIVE_INFINITY;
  let looks = 0;
  statements.take();
  await waitUntil(
    "the installation is idle",
    () => {
      const now = total(statements.take());
      const isSteady = looks > 1 && Math.abs(now - last) <= STEADY * Math.max(now, last);
      last = now;
      looks += 1;
      return isSteady || looks > looksMax;
    },
    { pollMs: LOOK_MS },
  );
  const used = async () => ({ own: processCpuMs(child.pid ?? 0) ?? 0, server: (await serverCpuMs(db)) ?? 0 });
  const before = await used();
  statements.take();
  await sleep(seconds * 1000);
  const texts = statements.take();
  const after = await used();
  return {
    statements: total(texts) / seconds,
    cpuMs: (after.own - before.own) / seconds,
    postgresMs: (after.server - before.server) / seconds,
    texts,
  };
}

function idleLine(name: string, { statements, cpuMs, postgresMs }: IdleFigures): string {
  const cpu = `${(cpuMs / 10).toFixed(2)} % of a core (goal 2), PostgreSQL ${(postgresMs / 10).toFixed(2)} %`;
  return `${name.padEnd(44)} ${statements.toFixed(1)} statements/s, ${cpu}`;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

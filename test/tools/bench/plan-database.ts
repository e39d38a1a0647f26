import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { fillHalf, type PlanBench, quantile, recordOf } from "./plan.ts";
import { Fleet } from "./plan-fleet.ts";
import { recordChanges, turnOver, writeFleet } from "./plan-rows.ts";
import type { ProcessAnswer } from "./planner-process.ts";
import { scratchServerDb } from "./scratch-db.ts";

const CHANGES = 100;
/** The first decisions say why all gangs wait, a part each. */
const FIRST_MAX = 2_000;

/**
 * Measures the planner as the service runs it: it loads the fleet from PostgreSQL in a thread, and decides after
 * changes that others have written there. This process has the fleet's pods and writes; the planner has its own.
 */
export async function benchPlanDatabase(
  of: PlanBench & { readonly postgres: string },
  print: (line: string) => void,
): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const { db, url } = await scratchServerDb(parts, of.postgres);
  const fleet = new Fleet(of);
  fillHalf(fleet);
  for (let at = 0; at < of.gangs; at++) fleet.newGang();
  await writeFleet(db, fleet);
  const note = (name: string, value: number, unit: string, goal = "") =>
    print(`${name.padEnd(52)} ${value.toFixed(unit === "ms" ? 1 : 0).padStart(9)} ${unit.padEnd(5)} ${goal}`.trimEnd());
  note("floor: read and parse the same rows with pg alone", await readRows(db), "ms");
  const child = fork(join(import.meta.dirname, "planner-process.ts"), [url]);
  parts.defer(async () => {
    child.disconnect();
    await once(child, "exit");
  });
  let mostMiB = 0;
  const decide = async (): Promise<ProcessAnswer> => {
    child.send("decide");
    const [answer] = (await once(child, "message")) as [ProcessAnswer];
    mostMiB = Math.max(mostMiB, answer.residentMiB);
    return answer;
  };
  const cold = await decide();
  note("cold load and first decision", cold.ms, "ms", "goal 5000");
  note("  CPU time of the process", cold.cpuMs, "ms");
  note("  of it the decision, on the clock", cold.planMs, "ms");
  let last = cold;
  let decisions = 1;
  for (; last.more && decisions < FIRST_MAX; decisions++) {
    const changes = last.admissions.flatMap((planned) => recordOf(fleet, planned));
    if (changes.length > 0) await recordChanges(db, changes);
    last = await decide();
  }
  note("decisions until all gangs know why they wait", decisions, "");
  const [all, cpu, own]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < of.rounds; round++) {
    const recorded = last.admissions.flatMap((planned) => recordOf(fleet, planned));
    await recordChanges(db, [...recorded, ...turnOver(fleet, Math.max(0, CHANGES - recorded.length))]);
    last = await decide();
    all.push(last.ms);
    cpu.push(last.cpuMs);
    own.push(last.planMs);
  }
  for (const [name, times, goal] of [
    [`read and decide after ${CHANGES} changes`, all, ""],
    ["  CPU time of the process", cpu, ""],
    ["  the decision alone, on the clock", own, "goal of p99 100"],
  ] as const) {
    note(`${name}, p50`, quantile(times, 0.5), "ms");
    note(`${name}, p99`, quantile(times, 0.99), "ms", goal);
  }
  note("main event loop blocked, p99.9", last.blockedMs.p999, "ms", "goal 50");
  note("main event loop blocked, longest", last.blockedMs.max, "ms");
  note("resident memory, most", mostMiB, "MiB", "goal 1024");
}

/** The time to read every row that a load needs, and to parse their documents, without anything else. */
async function readRows(db: Db): Promise<number> {
  const startMs = performance.now();
  for (const table of ["asks", "queues", "queue_quotas", "allocation_sums", "cluster_capacity", "admissions", JOBS]) {
    await db.query(`select * from ${table}`);
  }
  return performance.now() - startMs;
}

const JOBS = `(
  select uid, namespace, name, project, queue, priority, create_ms, version, generation, ask_hash, gang
    from jobs where completion_ms is null) j`;

import { readdirSync, readFileSync } from "node:fs";
import type { Db } from "../../src/adapters/store/db/db.ts";

/** Linux counts the CPU time of a process in hundredths of a second, whatever the kernel is. */
const TICK_MS = 10;

/** The CPU time in milliseconds that this process has used. */
export function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/**
 * The CPU time in milliseconds of the server processes of this database. Null: it is embedded, or its server is not a
 * process of this machine.
 */
export async function serverCpuMs(db: Db): Promise<number | null> {
  const backends = await db.query<{ pid: number }>(BACKENDS);
  const times = backends.map(({ pid }) => processCpuMs(pid, "postgres"));
  return backends.length === 0 || times.includes(null) ? null : times.reduce<number>((sum, ms) => sum + Number(ms), 0);
}

const BACKENDS = `
select pid from pg_stat_activity
 where datname = current_database() and backend_type = 'client backend' and client_addr is not null`;

/** The CPU time of a process in milliseconds. Null: there is none of this number, or it has another name. */
export function processCpuMs(pid: number, name = ""): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name, in parentheses, may contain spaces. Then come the state, ten other values, utime and stime.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return stat.includes(name) ? (Number(fields[11]) + Number(fields[12])) * TICK_MS : null;
  } catch {
    return null;
  }
}

/**
 * The CPU time in milliseconds of the threads that a process has now, by the scheduler's clock: exact enough for turns
 * of a tenth of a second. NaN: this kernel does not tell it.
 */
export function threadsCpuMs(pid: number): number {
  let ns = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  }
  return ns / 1e6;
}

/** The resident memory of a process of this machine. */
export function processMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN) / 1024;
}

import { readdirSync, readFileSync } from "node:fs";
import type { Db } from "../../../src/adapters/store/db/db.ts";

/** Linux counts the CPU time of a process in hundredths of a second, whatever the kernel is. */
const TICK_MS = 10;

/** The CPU time in milliseconds that this process has used. */
export function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/**
 * The CPU time in milliseconds of the server processes of this database, with all processes of its server that have
 * ended: a connection that closes takes nothing along. Null: it is embedded, or its server is not a process of this
 * machine.
 */
export async function serverCpuMs(db: Db): Promise<number | null> {
  const backends = await db.query<{ pid: number }>(BACKENDS);
  const times = backends.map(({ pid }) => cpuTimesOf(pid, "postgres"));
  const [first] = times;
  const server = first == null ? null : cpuTimesOf(first.parent, "postgres");
  if (server === null || times.includes(null)) return null;
  return times.reduce((sum, backend) => sum + (backend?.ownMs ?? 0), server.childrenMs);
}

const BACKENDS = `
select pid from pg_stat_activity
 where datname = current_database() and backend_type = 'client backend' and client_addr is not null`;

/** The CPU time of a process in milliseconds. Null: there is none of this number. */
export function processCpuMs(pid: number): number | null {
  return cpuTimesOf(pid)?.ownMs ?? null;
}

/** The CPU times of a process, and of its children that have ended. Null: none of this number has such a name. */
function cpuTimesOf(pid: number, name = ""): { parent: number; ownMs: number; childrenMs: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    if (!stat.includes(name)) return null;
    // The name, in parentheses, may contain spaces. Then come the state, the parent, nine other values, and four times.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [user = 0, system = 0, ofChildren = 0, systemOfChildren = 0] = fields.slice(11, 15).map(Number);
    const ownMs = (user + system) * TICK_MS;
    return { parent: Number(fields[1]), ownMs, childrenMs: (ofChildren + systemOfChildren) * TICK_MS };
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

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { postgresUser } from "./postgres-process.ts";
import { freePort } from "./redis-server.ts";

/** Debian installs it where the PATH of a plain user does not look. */
const PROGRAMS = ["pgbouncer", "/usr/sbin/pgbouncer"];

/** The program of PgBouncer that this process may run. Null: there is none. It refuses to run as root. */
export function pgbouncerProgram(): string | null {
  if (process.getuid?.() === 0 && postgresUser() === null) return null;
  return PROGRAMS.find((program) => spawnSync(program, ["--version"]).status === 0) ?? null;
}

export type PgbouncerOptions = {
  /** The PostgreSQL server behind it. */
  readonly server: string;
  readonly mode: "session" | "transaction" | "statement";
  /** Lines of its configuration. */
  readonly settings?: Readonly<Record<string, string | number>>;
};

/** Starts a PgBouncer in front of a server, on a free loopback port. `urlOf` leads to a database through it. */
export async function startPgbouncer({ server, mode, settings = {} }: PgbouncerOptions) {
  const user = process.getuid?.() === 0 ? postgresUser() : null;
  const directory = mkdtempSync(join(tmpdir(), "gangway-pgbouncer-"));
  if (user !== null) chownSync(directory, user.uid, user.gid);
  const [port, { hostname, port: serverPort, username, password }] = [await freePort(), new URL(server)];
  const login = `user=${username || "postgres"}${password === "" ? "" : ` password=${password}`}`;
  const all = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: directory,
    auth_type: "any",
    pool_mode: mode,
    max_client_conn: 200,
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const file = join(directory, "pgbouncer.ini");
  const databases = `* = host=${hostname} port=${serverPort || 5432} ${login}`;
  writeFileSync(file, `[databases]\n${databases}\n\n[pgbouncer]\n${lines.join("\n")}\n`);
  const child = spawn(pgbouncerProgram() ?? "", [file], {
    ...user,
    cwd: directory,
    stdio: ["ignore", "ignore", "pipe"],
  });
  await listens(child);
  return {
    urlOf: (database: string) => {
      const url = new URL(database);
      url.hostname = "127.0.0.1";
      url.port = String(port);
      return url.href;
    },
    stop: async () => {
      const gone = child.exitCode === null ? once(child, "exit") : null;
      child.kill("SIGKILL");
      await gone;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function listens(child: ChildProcess): Promise<void> {
  let output = "";
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes("process up")) resolve();
    });
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`pgbouncer ended: ${output}`)));
  });
}

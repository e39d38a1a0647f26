import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "./redis-server.ts";

/** True if the programs of a PostgreSQL server are on the PATH and this process may run them. */
export function hasPostgresPrograms(): boolean {
  const found = ["initdb", "postgres"].every((program) => spawnSync(program, ["--version"]).status === 0);
  return found && (process.getuid?.() !== 0 || postgresUser() !== null);
}

/** PostgreSQL refuses to run as root. A test that is root runs it as the user `postgres` of its packages. */
export function postgresUser(): { readonly uid: number; readonly gid: number } | null {
  const [uid, gid] = ["-u", "-g"].map((of) => Number(spawnSync("id", [of, "postgres"]).stdout?.toString() || "NaN"));
  return uid === undefined || gid === undefined || Number.isNaN(uid + gid) ? null : { uid, gid };
}

/** A new folder of the user that runs the server. */
function newFolder(within: string) {
  const user = process.getuid?.() === 0 ? postgresUser() : null;
  const directory = mkdtempSync(join(within, "gangway-postgres-"));
  if (user !== null) chownSync(directory, user.uid, user.gid);
  return { user, directory };
}

/** A PostgreSQL server for one test, on a free loopback port, in a folder that is removed at the end. */
export class PostgresProcess {
  readonly url: string;
  readonly #port: number;
  readonly #directory: string;
  readonly #as: { readonly uid?: number; readonly gid?: number };
  #process: ChildProcess | null = null;

  private constructor(port: number, directory: string, as: { readonly uid?: number; readonly gid?: number }) {
    this.#port = port;
    this.#directory = directory;
    this.#as = as;
    this.url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  }

  /** `within`: the folder of its own folder. */
  static async start(within = tmpdir()): Promise<PostgresProcess> {
    const { user, directory } = newFolder(within);
    const data = ["-D", join(directory, "data"), "-U", "postgres", "-A", "trust", "--no-sync"];
    execFileSync("initdb", data, { ...user, cwd: directory, stdio: "pipe" });
    const server = new PostgresProcess(await freePort(), directory, user ?? {});
    await server.start();
    return server;
  }

  /** A copy of a server that follows it asynchronously, until it is promoted. Needs pg_basebackup. */
  static async replicaOf(primary: PostgresProcess): Promise<PostgresProcess> {
    const { user, directory } = newFolder(tmpdir());
    const copy = ["-d", primary.url, "-D", join(directory, "data"), "-R", "-X", "stream", "-c", "fast"];
    execFileSync("pg_basebackup", copy, { ...user, cwd: directory, stdio: "pipe" });
    const server = new PostgresProcess(await freePort(), directory, user ?? {});
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const settings = [
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${this.#directory}`,
      "max_connections=200",
    ];
    const args = [
      "-D",
      join(this.#directory, "data"),
      "-p",
      String(this.#port),
      ...settings.flatMap((one) => ["-c", one]),
    ];
    const started = spawn("postgres", args, { ...this.#as, cwd: this.#directory, stdio: ["ignore", "ignore", "pipe"] });
    this.#process = started;
    let output = "";
    await new Promise<void>((resolve, reject) => {
      started.stderr?.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if (/ready to accept (read-only )?connections/.test(output)) resolve();
      });
      started.once("exit", () => reject(new Error(`postgres ended: ${output}`)));
    });
  }

  /** Starts it again as a standby that is promoted: it lacks nothing, and has a new timeline. */
  async promote(): Promise<void> {
    await this.crash();
    const data = join(this.#directory, "data");
    execFileSync("touch", [join(data, "standby.signal")], this.#as);
    await this.start();
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    await client.query("select pg_promote(true)");
    await client.end();
  }

  /** Ends it as a crash would: without notice to clients, and without the data that was not durable. */
  async crash(): Promise<void> {
    const running = this.#process;
    this.#process = null;
    if (running === null || running.exitCode !== null) return;
    const gone = once(running, "exit");
    running.kill("SIGQUIT");
    await gone;
  }

  async stop(): Promise<void> {
    await this.crash();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectionOptions } from "node:tls";
import { Redis } from "ioredis";
import { waitUntil } from "./bounded.ts";

/** True if `redis-server` is on the PATH. */
export function hasRedisServer(): boolean {
  return spawnSync("redis-server", ["--version"]).status === 0;
}

/** How a server differs from a plain Redis. */
export type RedisVariant = {
  readonly port?: number;
  /** The configuration of a sentinel. Omitted: the server is no sentinel. */
  readonly sentinelConfig?: string;
  /** How clients connect over TLS; the server accepts nothing else. Omitted: plain TCP. */
  readonly tls?: ConnectionOptions;
  /** The password that `admin` sends. Omitted: none is needed. */
  readonly password?: string;
};

/**
 * A Redis server for one test, on a free loopback port. Its folder is removed at the end. It saves nothing unless its
 * arguments say so.
 */
export class RedisServer {
  readonly port: number;
  readonly #args: readonly string[];
  readonly #variant: RedisVariant;
  readonly #directory = mkdtempSync(join(tmpdir(), "gangway-redis-"));
  #process: ChildProcess | null = null;
  #frozen = false;
  /** A connection of the test's own. */
  #admin: Redis | null = null;

  private constructor(port: number, args: readonly string[], variant: RedisVariant) {
    this.port = port;
    this.#args = args;
    this.#variant = variant;
    if (variant.sentinelConfig !== undefined) writeFileSync(this.#configFile, variant.sentinelConfig);
  }

  static async start(args: readonly string[] = [], variant: RedisVariant = {}): Promise<RedisServer> {
    const server = new RedisServer(variant.port ?? (await freePort()), args, variant);
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get runs(): boolean {
    return this.#process !== null;
  }

  /** True if it runs and is not frozen. */
  get answers(): boolean {
    return this.runs && !this.#frozen;
  }

  get admin(): Redis {
    if (this.#admin === null) throw new Error("redis-server does not run");
    return this.#admin;
  }

  get #configFile(): string {
    return join(this.#directory, "sentinel.conf");
  }

  /** The program's arguments. */
  get #arguments(): readonly string[] {
    const { sentinelConfig, tls } = this.#variant;
    const port = tls === undefined ? ["--port", `${this.port}`] : ["--port", "0", "--tls-port", `${this.port}`];
    const where = [...port, "--bind", "127.0.0.1", "--dir", this.#directory];
    if (sentinelConfig !== undefined) return [this.#configFile, "--sentinel", ...where, ...this.#args];
    return [...where, "--save", "", "--appendonly", "no", ...this.#args];
  }

  async start(): Promise<void> {
    const started = spawn("redis-server", this.#arguments, { stdio: "pipe" });
    this.#process = started;
    let output = "";
    const ready = new Promise<void>((resolve, reject) => {
      started.stdout?.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if (/Ready to accept connections|\+monitor master/.test(output)) resolve();
      });
      started.once("exit", () => reject(new Error(`redis-server ended: ${output}`)));
    });
    await ready;
    const { tls, password } = this.#variant;
    this.#admin = new Redis(this.port, "127.0.0.1", {
      // Sentinels close the connections of a server when they change its role.
      retryStrategy: () => (this.#process === null ? null : 20),
      enableReadyCheck: false,
      ...(tls === undefined ? {} : { tls }),
      ...(password === undefined ? {} : { password }),
    });
    this.#admin.on("error", () => undefined);
    await this.#admin.ping();
  }

  /** Ends it by a signal. With SIGKILL it can neither save nor answer. */
  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const running = this.#process;
    this.#process = null;
    this.#admin?.disconnect();
    this.#admin = null;
    if (running === null || running.exitCode !== null || running.signalCode !== null) return;
    const gone = once(running, "exit");
    running.kill(signal);
    await gone;
  }

  /** Stops the process until `thaw`: it keeps its connections, and answers nothing. */
  freeze(): void {
    this.#frozen = true;
    this.#process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#frozen = false;
    this.#process?.kill("SIGCONT");
  }

  /** Lets it answer again, whatever ended or stopped it. */
  async revive(): Promise<void> {
    this.thaw();
    if (!this.runs) await this.start();
  }

  /** Resolves once this replica is linked to its primary. */
  async linked(): Promise<void> {
    const isUp = async () => (await this.admin.info("replication")).includes("master_link_status:up");
    await waitUntil(`the replica on port ${this.port} is linked to its primary`, isUp, { pollMs: 20 });
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** True if no process listens on this loopback port now. */
export async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, "127.0.0.1");
  try {
    await once(probe, "listening");
  } catch {
    return false;
  }
  probe.close();
  await once(probe, "close");
  return true;
}

/** A loopback port on which no process listens now. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("a probe on a loopback port has no address");
  return address.port;
}

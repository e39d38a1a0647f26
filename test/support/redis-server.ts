import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";

/** True where the program redis-server is on the PATH. */
export function hasRedisServer(): boolean {
  return spawnSync("redis-server", ["--version"]).status === 0;
}

/** A Redis of the test's own, on a free loopback port, in a folder that is removed at the end; it keeps nothing unless told to. */
export class RedisServer {
  readonly port: number;
  readonly #args: readonly string[];
  readonly #directory = mkdtempSync(join(tmpdir(), "gangway-redis-"));
  #process: ChildProcess | null = null;
  /** Talks to it directly. */
  #admin: Redis | null = null;

  private constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.#args = args;
  }

  static async start(args: readonly string[] = []): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), args);
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get admin(): Redis {
    if (this.#admin === null) throw new Error("redis-server does not run");
    return this.#admin;
  }

  async start(): Promise<void> {
    const fixed = ["--port", `${this.port}`, "--bind", "127.0.0.1", "--dir", this.#directory, "--save", ""];
    const started = spawn("redis-server", [...fixed, "--appendonly", "no", ...this.#args], { stdio: "pipe" });
    this.#process = started;
    let output = "";
    const ready = new Promise<void>((resolve, reject) => {
      started.stdout?.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes("Ready to accept connections")) resolve();
      });
      started.once("exit", () => reject(new Error(`redis-server ended: ${output}`)));
    });
    await ready;
    this.#admin = new Redis(this.port, "127.0.0.1", { retryStrategy: () => null });
    this.#admin.on("error", () => undefined);
    await this.#admin.ping();
  }

  /** Ends it without a chance to save or answer anything. */
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

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** A loopback port that nobody listens on now. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

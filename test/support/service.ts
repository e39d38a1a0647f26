import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import { WAIT_MS_MAX, within } from "./bounded.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** `npm start` in a process group of its own, as a user's shell runs it. */
export class ServiceProcess {
  readonly child: ChildProcess;
  /** Its output so far. */
  output = "";
  readonly #exited: Promise<number | null>;
  #waiters: (() => void)[] = [];

  constructor(args: readonly string[]) {
    this.child = spawn("npm", ["start", "--silent", "--", ...args], {
      cwd: root,
      // The service uses its own folder, even if the tests have a database and a Redis.
      env: { ...process.env, DATABASE_URL: "", REDIS_URL: "" },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#exited = once(this.child, "close").then(([code]) => code as number | null);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.output += chunk.toString();
        for (const waiter of this.#waiters) waiter();
      });
    }
    void this.#exited.then(() => {
      for (const waiter of this.#waiters) waiter();
    });
  }

  /** Its address once it listens. Null: it ended first. */
  async listening(): Promise<string | null> {
    for (;;) {
      const address = /listening on (\S+)/.exec(this.output)?.[1];
      if (address !== undefined) return address;
      if (this.child.exitCode !== null || this.child.signalCode !== null) return null;
      const more = new Promise<void>((resolve) => this.#waiters.push(resolve));
      await within("the next output of npm start", WAIT_MS_MAX, more);
    }
  }

  /** A client of it. Throws with its output if it does not start. */
  async client(): Promise<GangwayClient & AsyncDisposable> {
    const address = await this.listening();
    if (address === null) throw new Error(`the service ended: ${this.output}`);
    const closed = new AbortController();
    const client = connect(address, closed.signal);
    return {
      ...client,
      async [Symbol.asyncDispose]() {
        closed.abort();
        client.close();
      },
    };
  }

  /** Kills all processes of its group at once, also npm's child, and waits until they have ended. */
  async kill(signal: "SIGKILL" | "SIGINT" | "SIGTERM" = "SIGKILL"): Promise<number | null> {
    const { pid } = this.child;
    if (pid !== undefined && this.child.exitCode === null) {
      try {
        process.kill(-pid, signal);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
    return await this.#exited;
  }

  exited(): Promise<number | null> {
    return this.#exited;
  }
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect, type GangwayClient } from "../../src/cli/client.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** `npm start` in a process group of its own, as a user's shell would run it. */
export class ServiceProcess {
  readonly child: ChildProcess;
  /** Everything that it has printed so far. */
  output = "";
  readonly #exited: Promise<number | null>;
  #waiters: (() => void)[] = [];

  constructor(args: readonly string[]) {
    this.child = spawn("npm", ["start", "--silent", "--", ...args], {
      cwd: root,
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

  /** The address, once it listens; null if it ended before. */
  async listening(): Promise<string | null> {
    for (;;) {
      const address = /listening on (\S+)/.exec(this.output)?.[1];
      if (address !== undefined) return address;
      if (this.child.exitCode !== null || this.child.signalCode !== null) return null;
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** A client of it; throws with what it printed if it does not come up. */
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

  /** Kills every process of its group at once, npm's child too, and waits until they are gone. */
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

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** `gangway serve` as a child process. */
export class ServeChild {
  readonly roles: string;
  readonly child: ChildProcess;
  /** Everything that it has printed. */
  output = "";
  readonly #ended: Promise<number | null>;

  constructor(roles: string, env: Readonly<Record<string, string>>, main = MAIN) {
    this.roles = roles;
    this.child = spawn(process.execPath, [main, "serve", "--roles", roles, "--listen", "127.0.0.1:0"], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.output += chunk.toString();
      });
    }
    this.#ended = once(this.child, "close").then(([code]) => code as number | null);
  }

  /** Once it does its work; throws if it ends before. */
  async serving(): Promise<void> {
    while (!this.output.includes(`serving ${this.roles}`)) {
      if (this.hasEnded) throw new Error(`${this.roles} ended: ${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Where it serves the API; null before it does. */
  get address(): string | null {
    return /listening on (\S+)/.exec(this.output)?.[1] ?? null;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Its exit status, null for one that was killed. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    this.child.kill("SIGCONT");
    this.child.kill(signal);
    return this.#ended;
  }

  /** Stops its clock from moving anything: to everybody else it is as if it were gone. */
  freeze(): void {
    this.child.kill("SIGSTOP");
  }

  thaw(): void {
    this.child.kill("SIGCONT");
  }
}

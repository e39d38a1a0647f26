import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { waitUntil } from "./bounded.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const LOOK_MS = 10;

export type MainOptions = {
  readonly main?: string | undefined;
  /** A file descriptor that is its stdout and stderr. Omitted: pipes, whose output is kept here. */
  readonly outputFd?: number;
  /** The limit of a file's size, in the blocks of `ulimit -f`. Omitted: no limit. */
  readonly fileBlocksMax?: number;
};

/** The command line as a child process. It gets these variables beside those of this process. */
export class MainProcess {
  readonly child: ChildProcess;
  /** The output of both streams. */
  output = "";
  stdout = "";
  readonly #ended: Promise<number | null>;

  constructor(args: readonly string[], env: Readonly<Record<string, string>>, options: MainOptions = {}) {
    const { main = MAIN, outputFd = "pipe", fileBlocksMax } = options;
    const command = [process.execPath, main, ...args];
    const [file = "", ...rest] =
      fileBlocksMax === undefined ? command : ["sh", "-c", `ulimit -f ${fileBlocksMax}; exec "$0" "$@"`, ...command];
    this.child = spawn(file, rest, { env: { ...process.env, ...env }, stdio: ["ignore", outputFd, outputFd] });
    this.child.stdout?.on("data", (chunk: Buffer) => {
      this.output += chunk.toString();
      this.stdout += chunk.toString();
    });
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.output += chunk.toString();
    });
    this.#ended = once(this.child, "close").then(([code]) => code as number | null);
  }

  /** Resolves once it has printed this text. Throws if it ends first. */
  async printed(text: string): Promise<void> {
    const command = this.child.spawnargs.slice(2).join(" ");
    const holds = () => {
      if (this.output.includes(text)) return true;
      if (this.hasEnded) throw new Error(`${command} ended: ${this.output}`);
      return false;
    };
    await waitUntil(`${command} prints ${text}`, holds, { pollMs: LOOK_MS });
  }

  /** The address of its API. Null: it does not serve yet. */
  get address(): string | null {
    return /listening on (\S+)/.exec(this.output)?.[1] ?? null;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Its exit status once it has ended. Null: a signal killed it. */
  exited(): Promise<number | null> {
    return this.#ended;
  }

  /** Sends a signal and resolves with the exit status. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    this.child.kill("SIGCONT");
    this.child.kill(signal);
    return this.#ended;
  }
}

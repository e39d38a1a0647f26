import type { CliIo, ServeOptions } from "../shell/deps.ts";
import { EXIT, startFailure } from "../shell/exit.ts";

/** A process of the service. */
export type ServeProcess = {
  /** Null: it does not serve the API. */
  readonly address: string | null;
  /** The end of the line that says where it listens: where it serves HTTP. May be empty. */
  readonly console: string;
  /** Names its database, counters and clusters in one line. */
  readonly inUse: string;
  readonly close: () => Promise<void>;
};

export type ServeDeps = Pick<CliIo, "stdout"> & {
  readonly signal: AbortSignal;
  /**
   * Starts the process, and listens to signals from the moment before it takes any work: what it has taken by then it
   * hands over. Throws an error that a user understands.
   */
  readonly start: (options: ServeOptions) => Promise<ServeProcess>;
};

/** Runs a process of the service until it is interrupted. Before it ends, it hands its work over to other processes. */
export async function runServe(options: ServeOptions, { start, signal, stdout }: ServeDeps): Promise<number> {
  const running = await start(options).catch((error: Error) => {
    throw startFailure(error);
  });
  try {
    stdout(`${running.inUse}\n`);
    const where = running.address === null ? "" : `, listening on ${running.address}${running.console}`;
    stdout(`serving ${options.roles.join(", ")}${where}\n`);
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    }
    return EXIT.ok;
  } finally {
    await running.close();
  }
}

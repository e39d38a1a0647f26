import type { CliIo, ServeOptions } from "./deps.ts";
import { CommandFailure, EXIT } from "./exit.ts";

/** A process of the service; its address is null where it does not serve the API. */
export type ServeProcess = { readonly address: string | null; readonly close: () => Promise<void> };

export type ServeDeps = Pick<CliIo, "stdout"> & {
  readonly signal: AbortSignal;
  /** Starts the process; throws an error that a user understands. */
  readonly start: (options: ServeOptions) => Promise<ServeProcess>;
};

/** Runs a process of the service until it is interrupted; what it held is handed over before it ends. */
export async function runServe(options: ServeOptions, { start, signal, stdout }: ServeDeps): Promise<number> {
  const running = await start(options).catch((error: Error) => {
    throw new CommandFailure(EXIT.refused, [`error: ${error.message}`]);
  });
  try {
    stdout(
      `serving ${options.roles.join(", ")}${running.address === null ? "" : `, listening on ${running.address}`}\n`,
    );
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    }
    return EXIT.ok;
  } finally {
    await running.close();
  }
}

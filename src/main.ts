/** The composition root: reads the configuration and runs the command line; what runs the service is loaded only when it is asked for. */
import { join, resolve } from "node:path";
import { runCli } from "./cli/cli.ts";
import type { UpOptions } from "./cli/deps.ts";
import { EXIT } from "./cli/exit.ts";
import { processIo } from "./cli/process-io.ts";
import { runUp } from "./cli/up.ts";
import { type Config, readConfig } from "./config.ts";
import { systemClock } from "./runtime/clock.ts";

const root = resolve(import.meta.dirname, "..");
/** npm passes on an interruption that the terminal has sent to the whole group already: one Ctrl-C may come twice. */
const SAME_INTERRUPTION_MS = 500;

/** Aborted by the first Ctrl-C or request to stop; the second ends the process at once. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  let firstMs = 0;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (!controller.signal.aborted) firstMs = performance.now();
      else if (performance.now() - firstMs > SAME_INTERRUPTION_MS) process.exit(130);
      controller.abort();
    });
  }
  return controller.signal;
}

async function main(): Promise<number> {
  const io = processIo(process);
  const config = configOf(process.cwd());
  if (config instanceof Error) {
    io.stderr(`error: ${config.message}\n`);
    return EXIT.usage;
  }
  const signal = interruption();
  return runCli(process.argv.slice(2), {
    ...io,
    color: io.color && !config.plain,
    clock: systemClock(),
    address: config.address,
    signal,
    up: async (options) => {
      const { startEmbedded } = await import("./embedded.ts");
      const start = (chosen: UpOptions) => startEmbedded(chosen, config);
      return runUp(options, { ...io, signal, examples: join(root, "examples"), start });
    },
  });
}

function configOf(workingDirectory: string): Config | Error {
  try {
    return readConfig(workingDirectory);
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

process.exitCode = await main();

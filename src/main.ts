/** Reads the configuration and runs the command line. Loads the service only for commands that run it. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { loadKinds } from "./adapters/plugins/load-kinds.ts";
import { runCli } from "./cli/cli.ts";
import type { UpOptions } from "./cli/deps.ts";
import { EXIT } from "./cli/exit.ts";
import { processIo } from "./cli/process-io.ts";
import { runServe } from "./cli/serve.ts";
import { listenToSignals } from "./cli/signals.ts";
import { startProgram } from "./cli/tokens/child-program.ts";
import { runUp } from "./cli/up.ts";
import { type Config, programEnvironment, readConfig } from "./config.ts";
import type { Registry } from "./core/kinds/registry.ts";
import { systemClock } from "./runtime/clock.ts";

const root = resolve(import.meta.dirname, "..");
const manifest: { readonly version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

async function main(): Promise<number> {
  const io = processIo(process);
  const settings = await readSettings(process.cwd());
  if (settings instanceof Error) {
    io.stderr(`error: ${settings.message}\n`);
    return EXIT.usage;
  }
  const { config, kinds } = settings;
  const { interrupted: signal, takeSignals } = listenToSignals(process);
  return runCli(process.argv.slice(2), {
    ...io,
    color: io.color && !config.plain,
    clock: systemClock(),
    kinds,
    version: manifest.version,
    address: config.address,
    signal,
    takeSignals,
    startProgram: (argv, variables, onFailure) => startProgram(argv, programEnvironment(variables), onFailure),
    up: async (options) => {
      const { startEmbedded } = await import("./compose/embedded.ts");
      const start = (chosen: UpOptions) => startEmbedded(chosen, config, kinds);
      return runUp(options, { ...io, kinds, signal, examples: join(root, "examples"), start });
    },
    serve: async (options) => {
      const { startServe } = await import("./compose/serve.ts");
      return runServe(options, { ...io, signal, start: (chosen) => startServe(chosen, config, kinds) });
    },
    migrate: async ({ offline }) => {
      if (config.database === null) return { kind: "notConfigured" };
      const { migrateDatabase } = await import("./adapters/store/db/migrate-server.ts");
      const { directUrl, connectTimeoutMs } = config.database;
      return migrateDatabase({ url: directUrl, connectTimeoutMs, offline });
    },
  });
}

/** The configuration, and the kinds that it names beside our own. */
async function readSettings(
  workingDirectory: string,
): Promise<{ readonly config: Config; readonly kinds: Registry } | Error> {
  try {
    const config = readConfig(workingDirectory);
    return { config, kinds: await loadKinds(config.plugins, workingDirectory) };
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

process.exitCode = await main();

/** Reads the configuration and runs the command line. Loads the service only for commands that run it. */
import { join, resolve } from "node:path";
import { runCli } from "./cli/cli.ts";
import { configFileAt } from "./cli/config-file.ts";
import type { ServeOptions, UpOptions } from "./cli/deps.ts";
import { CommandFailure, EXIT } from "./cli/exit.ts";
import { processIo } from "./cli/process-io.ts";
import { listenToSignals } from "./cli/signals.ts";
import { startProgram } from "./cli/tokens/child-program.ts";
import { type Config, programEnvironment, readConfig } from "./config.ts";
import type { Registry } from "./core/kinds/registry.ts";
import { systemClock } from "./runtime/clock.ts";
import { VERSION } from "./runtime/package-version.ts";

const root = resolve(import.meta.dirname, "..");

async function main(): Promise<number> {
  const io = processIo(process);
  const config = readSettings(process.cwd());
  if (config instanceof Error) {
    io.stderr(`error: ${config.message}\n`);
    return EXIT.usage;
  }
  const kinds = () => kindsOf(config, process.cwd());
  const { interrupted: signal, takeSignals, endAtOnce } = listenToSignals(process);
  return runCli(process.argv.slice(2), {
    ...io,
    color: io.color && !config.plain,
    clock: systemClock(),
    kinds,
    version: VERSION,
    address: config.address ?? undefined,
    namespace: config.namespace ?? undefined,
    configFile: configFileAt(config.contextsFile),
    signal,
    takeSignals,
    startProgram: (argv, variables, onFailure) => startProgram(argv, programEnvironment(variables), onFailure),
    up: async (options) => {
      const { runUp } = await import("./cli/up.ts");
      const start = async (chosen: UpOptions, progress: (text: string) => void) => {
        const { startEmbedded } = await import("./compose/embedded.ts");
        return startEmbedded(chosen, config, await kinds(), progress);
      };
      return runUp(options, {
        ...io,
        clock: systemClock(),
        kinds,
        signal,
        endAtOnce,
        examples: join(root, "examples"),
        start,
      });
    },
    serve: async (options) => {
      const { runServe } = await import("./cli/serve.ts");
      const start = async (chosen: ServeOptions) => {
        const { startServe } = await import("./compose/serve.ts");
        return startServe(chosen, config, await kinds());
      };
      return runServe(options, { ...io, signal, endAtOnce, start });
    },
    migrate: async ({ offline }) => {
      if (config.database === null) return { kind: "notConfigured" };
      const { migrateDatabase } = await import("./adapters/store/db/migrate-server.ts");
      const { directUrl, connectTimeoutMs } = config.database;
      return migrateDatabase({ url: directUrl, connectTimeoutMs, offline });
    },
  });
}

function readSettings(workingDirectory: string): Config | Error {
  try {
    return readConfig(workingDirectory);
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

/** Our kinds, and those that the configuration names beside them. Ends the command if one cannot be loaded. */
async function kindsOf({ plugins }: Config, workingDirectory: string): Promise<Registry> {
  const { loadKinds } = await import("./adapters/plugins/load-kinds.ts");
  return loadKinds(plugins, workingDirectory).catch((error: Error) => {
    throw new CommandFailure(EXIT.usage, [`error: ${error.message}`]);
  });
}

process.exitCode = await main();

/** The composition root: reads the configuration and runs the command line; what runs the service is loaded only when it is asked for. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { runCli } from "./cli/cli.ts";
import type { UpOptions } from "./cli/deps.ts";
import { EXIT } from "./cli/exit.ts";
import { processIo } from "./cli/process-io.ts";
import { startProgram } from "./cli/program.ts";
import { runServe } from "./cli/serve.ts";
import { listenToSignals } from "./cli/signals.ts";
import { runUp } from "./cli/up.ts";
import { servePlugins } from "./compose-plugins.ts";
import { type Config, programEnvironment, readConfig } from "./config.ts";
import { systemClock } from "./runtime/clock.ts";

const root = resolve(import.meta.dirname, "..");
const manifest: { readonly version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
async function main(): Promise<number> {
  const io = processIo(process);
  const config = await configOf(process.cwd());
  if (config instanceof Error) {
    io.stderr(`error: ${config.message}\n`);
    return EXIT.usage;
  }
  const { interrupted: signal, takeSignals } = listenToSignals(process);
  return runCli(process.argv.slice(2), {
    ...io,
    color: io.color && !config.plain,
    clock: systemClock(),
    version: manifest.version,
    address: config.address,
    signal,
    takeSignals,
    startProgram: (argv, variables, onFailure) => startProgram(argv, programEnvironment(variables), onFailure),
    up: async (options) => {
      const { startEmbedded } = await import("./embedded.ts");
      const start = (chosen: UpOptions) => startEmbedded(chosen, config);
      return runUp(options, { ...io, signal, examples: join(root, "examples"), start });
    },
    serve: async (options) => {
      const { startServe } = await import("./serve.ts");
      return runServe(options, { ...io, signal, start: (chosen) => startServe(chosen, config) });
    },
    migrate: async ({ offline }) => {
      if (config.database === null) return { kind: "notConfigured" };
      const { migrateDatabase } = await import("./adapters/store/migrate-server.ts");
      const { directUrl, connectTimeoutMs } = config.database;
      return migrateDatabase({ url: directUrl, connectTimeoutMs, offline });
    },
  });
}

/** The configuration, with the kinds served that it names. */
async function configOf(workingDirectory: string): Promise<Config | Error> {
  try {
    const config = readConfig(workingDirectory);
    await servePlugins(config.plugins, workingDirectory);
    return config;
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

process.exitCode = await main();

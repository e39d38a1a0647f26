/** Runs the command line. Loads the service and its configuration only for commands that run it. */
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { configFileAt } from "./cli/auth/config-file.ts";
import { runCli } from "./cli/cli.ts";
import type { CliIo, ServeOptions, UpOptions } from "./cli/shell/deps.ts";
import { CommandFailure, EXIT } from "./cli/shell/exit.ts";
import { processIo } from "./cli/shell/process-io.ts";
import { signalsOf } from "./cli/shell/signals.ts";
import { startProgram } from "./cli/tokens/child-program.ts";
import { type ClientConfig, programEnvironment, readClientConfig } from "./config/client-config.ts";

import type { Config } from "./config/config.ts";
import type { Registry } from "./core/kinds/registry.ts";
import { systemClock } from "./runtime/clock.ts";
import { VERSION } from "./runtime/package-version.ts";

const root = resolve(import.meta.dirname, "..");

async function main(): Promise<number> {
  const io = processIo(process, (reason) => {
    process.stderr.write(`error: cannot write to stdout: ${reason}\n`);
    process.exit(EXIT.refused);
  });
  const client = clientConfig(io);
  if (client === null) return EXIT.usage;
  const kinds = () => kindsOf(client, process.cwd());
  const { interrupted: signal, listen, takeSignals } = signalsOf(process);
  return runCli(process.argv.slice(2), {
    ...io,
    color: io.color && !client.plain,
    clock: systemClock(),
    kinds,
    version: VERSION,
    address: client.address ?? undefined,
    namespace: client.namespace ?? undefined,
    security: client.security,
    configFile: configFileAt(client.contextsFile),
    writePrivateFile: (path, text) => configFileAt(resolve(path)).write(text),
    removeFile: (path) => rm(path, { force: true }),
    signal,
    listen,
    takeSignals,
    startProgram: (argv, variables, onFailure) => {
      io.continueWithoutStdout();
      return startProgram(argv, programEnvironment(variables), onFailure);
    },
    openEditor: async (name) => {
      const { openTextEditor } = await import("./cli/shell/text-editor.ts");
      return openTextEditor(name, {
        command: client.editor,
        startProgram: (argv, onFailure) => startProgram(argv, programEnvironment({}), onFailure),
        takeSignals,
      });
    },
    up: async (options) => {
      io.continueWithoutStdout();
      const config = await serviceConfig(process.cwd());
      const { runUp } = await import("./cli/service/up.ts");
      const start = async (chosen: UpOptions, progress: (text: string) => void) => {
        progress("loading the service");
        const { startEmbedded } = await import("./compose/embedded.ts");
        return startEmbedded(chosen, config, await kinds(), progress);
      };
      return runUp(options, {
        ...io,
        clock: systemClock(),
        kinds,
        signal,
        listen,
        examples: join(root, "examples"),
        start,
      });
    },
    serve: async (options) => {
      io.continueWithoutStdout();
      const config = await serviceConfig(process.cwd());
      const { runServe } = await import("./cli/service/serve.ts");
      const start = async (chosen: ServeOptions) => {
        const { startServe } = await import("./compose/serve.ts");
        const served = await kinds();
        listen();
        return startServe(chosen, config, served);
      };
      return runServe(options, { ...io, signal, start });
    },
    migrate: async ({ offline, restored, data }) => {
      if (data !== null) {
        const { markRestoredFolder } = await import("./compose/restored-folder.ts");
        return markRestoredFolder(data);
      }
      const { database } = await serviceConfig(process.cwd());
      if (database === null) return { kind: "notConfigured" };
      const { migrateDatabase } = await import("./adapters/store/db/migrate-server.ts");
      const { directUrl, connectTimeoutMs } = database;
      return migrateDatabase({ url: directUrl, connectTimeoutMs, offline, restored });
    },
  });
}

/** Null, after a message, if a variable has a value that is not allowed. */
function clientConfig({ stderr }: Pick<CliIo, "stderr">): ClientConfig | null {
  try {
    return readClientConfig(process.cwd());
  } catch (error) {
    stderr(`error: ${error instanceof Error ? error.message : error}\n`);
    return null;
  }
}

/** Ends the command if a variable has a value that is not allowed. */
async function serviceConfig(workingDirectory: string): Promise<Config> {
  const { readConfig } = await import("./config/config.ts");
  try {
    return readConfig(workingDirectory);
  } catch (error) {
    throw wrongEnvironment(error);
  }
}

/** Our kinds, and those that the configuration names beside them. Ends the command if one cannot be loaded. */
async function kindsOf({ plugins }: ClientConfig, workingDirectory: string): Promise<Registry> {
  const { loadKinds } = await import("./adapters/plugins/load-kinds.ts");
  return loadKinds(plugins, workingDirectory).catch((error: unknown) => {
    throw wrongEnvironment(error);
  });
}

function wrongEnvironment(error: unknown): unknown {
  return error instanceof Error ? new CommandFailure(EXIT.usage, [`error: ${error.message}`]) : error;
}

void main().then((exitCode) => {
  process.exitCode = exitCode;
});

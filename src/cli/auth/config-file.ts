import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isMissingFile } from "../../runtime/missing-file.ts";
import { readBoundedFile } from "../../runtime/read-bounded-file.ts";
import type { CliDeps } from "../shell/deps.ts";
import { usageFailure } from "../shell/exit.ts";

/** More than the file of all contexts that are allowed. */
export const CONFIG_FILE_LIMIT = { bytesMax: 1024 * 1024 };

/** The configuration file of the command line. Only its owner may read it. */
export function configFileAt(path: string): CliDeps["configFile"] {
  return {
    path,
    read: async () => {
      try {
        return await readBoundedFile(path, CONFIG_FILE_LIMIT);
      } catch (error) {
        if (isMissingFile(error)) return null;
        throw usageFailure(`${path} cannot be read: ${messageOf(error)}`);
      }
    },
    write: async (text) => {
      const next = `${path}.${process.pid}.new`;
      try {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await writeFile(next, text, { mode: 0o600 });
        await chmod(next, 0o600);
        await rename(next, path);
      } catch (error) {
        await rm(next, { force: true }).catch(() => {});
        throw usageFailure(`${path} cannot be written: ${messageOf(error)}`);
      }
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

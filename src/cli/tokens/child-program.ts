import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { ChildProgram } from "../shell/deps.ts";

/** Exit statuses of shells for a program that is not found, and for one that cannot be started. */
const NOT_FOUND = 127;
const CANNOT_START = 126;

/** Starts a program on this process's standard streams. `onFailure` gets the reason if it cannot be started. */
export function startProgram(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  onFailure: (reason: string) => void,
): ChildProgram {
  const [file = "", ...args] = argv;
  const child = spawn(file, args, { stdio: "inherit", env: { ...environment } });
  const ended = new Promise<number>((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => {
      // A failed kill is an "error" event too. The program still runs then.
      if (child.pid !== undefined) return;
      onFailure(error.code === "ENOENT" ? `${file}: not found` : `${file} cannot be started: ${error.message}`);
      resolve(error.code === "ENOENT" ? NOT_FOUND : CANNOT_START);
    });
    child.on("exit", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
  return { ended, signal: (name) => void child.kill(name) };
}

import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { Program } from "./deps.ts";

const NOT_FOUND = 127;
const DOES_NOT_START = 126;

/** Starts a program on this process's own standard streams; `onFailure` hears why it does not start. */
export function startProgram(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  onFailure: (why: string) => void,
): Program {
  const [file = "", ...args] = argv;
  const child = spawn(file, args, { stdio: "inherit", env: { ...environment } });
  const ended = new Promise<number>((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => {
      // A signal that could not be sent is an error, too, but not the program's end.
      if (child.pid !== undefined) return;
      onFailure(error.code === "ENOENT" ? `${file}: not found` : `${file} does not start: ${error.message}`);
      resolve(error.code === "ENOENT" ? NOT_FOUND : DOES_NOT_START);
    });
    child.on("exit", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
  return { ended, signal: (name) => void child.kill(name) };
}

import { isUtf8 } from "node:buffer";
import { readdir, readFile, stat } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import type { CliIo, PathEntry } from "./deps.ts";

/** The part of a process that the command line reads and writes. */
export type ProcessStreams = Pick<NodeJS.Process, "stdin" | "stdout" | "stderr">;

/** The width of a terminal that does not report one, or reports 0. */
const COLUMNS = 80;

/** The streams and files of this process. Ignores a closed stdout, as in `gangway list | head`. */
export function processIo(streams: ProcessStreams): CliIo {
  const { stdin, stdout, stderr } = streams;
  for (const stream of [stdout, stderr]) stream.on("error", ignoreClosedPipe);
  return {
    stdout: (chunk) => void stdout.write(chunk),
    stderr: (chunk) => void stderr.write(chunk),
    readStdin: async () => decode(await buffer(stdin)),
    readFile: async (path) => decode(await readFile(path)),
    lookUp,
    isTty: stdout.isTTY === true,
    columns: stdout.columns || COLUMNS,
    color: stdout.isTTY === true && stdout.hasColors(),
  };
}

/** Throws if the bytes are not UTF-8: Node would replace them by other characters. */
function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new Error("it is not UTF-8");
  return bytes.toString("utf8");
}

function ignoreClosedPipe(error: NodeJS.ErrnoException) {
  if (error.code !== "EPIPE") throw error;
}

async function lookUp(path: string): Promise<PathEntry | null> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw error;
  });
  if (found === null) return null;
  return found.isDirectory() ? { kind: "directory", names: await readdir(path) } : { kind: "file" };
}

import { isUtf8 } from "node:buffer";
import { constants, createReadStream, fstatSync, openSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { Socket } from "node:net";
import { addAbortSignal, type Readable } from "node:stream";
import { isatty, ReadStream } from "node:tty";
import { isMissingFile } from "../../runtime/missing-file.ts";
import type { CliIo, PathEntry, ReadLimit } from "./deps.ts";

/** The part of a process that the command line reads and writes. */
export type ProcessStreams = Pick<NodeJS.Process, "stdin" | "stdout" | "stderr">;

/** The width and height of a terminal that does not report them, or reports 0. */
const COLUMNS = 80;
const ROWS = 24;

export type ProcessIo = CliIo & {
  /** From now on, this process continues if stdout cannot be written: it does more than print. */
  readonly continueWithoutStdout: () => void;
};

/**
 * The streams and files of this process. Ignores a closed stdout, as in `gangway list | head`. Calls `onStdoutLost`
 * once if stdout cannot be written for another reason, such as a full disk. Loses text for stderr that cannot be
 * written: no other stream could take it.
 */
export function processIo(streams: ProcessStreams, onStdoutLost: (reason: string) => void): ProcessIo {
  const { stdin, stdout, stderr } = streams;
  let needsStdout = true;
  stderr.on("error", () => {});
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || !needsStdout) return;
    needsStdout = false;
    onStdoutLost(error.message);
  });
  return {
    continueWithoutStdout: () => {
      needsStdout = false;
    },
    stdout: (chunk) => void stdout.write(chunk),
    stderr: (chunk) => void stderr.write(chunk),
    readStdin: async (limit) => decode(await read(stdin, limit)),
    readFile: async (path, limit) => decode(await read(openFile(path), limit)),
    lookUp,
    isTty: stdout.isTTY === true,
    columns: stdout.columns || COLUMNS,
    rows: stdout.rows || ROWS,
    color: stdout.isTTY === true && stdout.hasColors(),
  };
}

/**
 * Opens a file, also a pipe of the shell such as `<(helm template .)`. A thread that waited for a pipe would keep this
 * process from ending, so pipes are opened without waiting, and the event loop waits for them.
 */
function openFile(path: string): Readable {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (isatty(fd)) return new ReadStream(fd);
  return fstatSync(fd).isFIFO() ? new Socket({ fd, readable: true, writable: false }) : createReadStream("", { fd });
}

/** Reads to the end. Throws as soon as there is too much: a device or a pipe may never end. */
async function read(stream: Readable, limit: ReadLimit): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  if (limit.signal !== undefined) addAbortSignal(limit.signal, stream);
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > limit.bytesMax) throw new Error(`it has more than ${limit.bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

/** Throws if the bytes are not UTF-8: Node would replace them by other characters. */
function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new Error("it is not UTF-8");
  return bytes.toString("utf8");
}

async function lookUp(path: string): Promise<PathEntry | null> {
  const found = await stat(path).catch((error: unknown) => {
    if (isMissingFile(error)) return null;
    throw error;
  });
  if (found === null) return null;
  return found.isDirectory() ? { kind: "directory", names: await readdir(path) } : { kind: "file" };
}

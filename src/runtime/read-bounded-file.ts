/** Reads a whole file, up to a size that the caller names: a wrong path may lead to a disk image, or to a device. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/** A file, and the most that is read of it. */
export type FileLimit = { readonly path: string; readonly bytesMax: number };

/** The file has more bytes than are allowed. The message names the file, its size if it is known, and the limit. */
export class FileTooLarge extends Error {
  /** Null: unknown, as of a pipe or a device. */
  readonly bytes: number | null;
  readonly bytesMax: number;

  constructor({ path, bytesMax }: FileLimit, { size }: Pick<Stats, "size">) {
    const bytes = size > bytesMax ? size : null;
    const found = bytes === null ? `more than ${bytesMax} bytes` : `${bytes} bytes`;
    super(`${path} has ${found}; at most ${bytesMax} are allowed`);
    this.name = "FileTooLarge";
    this.bytes = bytes;
    this.bytesMax = bytesMax;
  }
}

/** What is read at once of a file whose size the system does not tell. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Returns the file's text, read as UTF-8. Also reads files whose size the system does not tell, such as pipes. Throws
 * `FileTooLarge` as soon as one byte more than `bytesMax` is read, and the system's error if the file cannot be read.
 * `regularOnly`: throws for any other file. Opening it does not wait for the writer of a pipe.
 */
export async function readBoundedFile(
  path: string,
  { bytesMax, regularOnly = false }: { readonly bytesMax: number; readonly regularOnly?: boolean },
): Promise<string> {
  const file = await open(path, regularOnly ? constants.O_RDONLY | constants.O_NONBLOCK : constants.O_RDONLY);
  try {
    const found = await file.stat();
    if (regularOnly && !found.isFile()) throw new Error(`${path} is not a regular file`);
    const pieces = new Pieces({ path, bytesMax }, found);
    while (!pieces.take((await file.read(pieces.room())).bytesRead));
    return pieces.text();
  } finally {
    await file.close();
  }
}

/** The same for a process that has nothing else to do, such as one that reads its settings at its start. */
export function readBoundedFileSync(path: string, { bytesMax }: { readonly bytesMax: number }): string {
  const file = openSync(path, constants.O_RDONLY);
  try {
    const pieces = new Pieces({ path, bytesMax }, fstatSync(file));
    while (!pieces.take(readSync(file, pieces.room())));
    return pieces.text();
  } finally {
    closeSync(file);
  }
}

/** What was read of one file. */
class Pieces {
  readonly #limit: FileLimit;
  readonly #found: Pick<Stats, "size">;
  readonly #read: Buffer[] = [];
  #room: Buffer;
  #bytes = 0;

  /** Throws `FileTooLarge` if the file's size passes the limit. */
  constructor(limit: FileLimit, found: Pick<Stats, "size">) {
    if (found.size > limit.bytesMax) throw new FileTooLarge(limit, found);
    this.#limit = limit;
    this.#found = found;
    // One byte more finds the end of the file, or that it has grown.
    this.#room = Buffer.allocUnsafe(found.size > 0 ? found.size + 1 : CHUNK_BYTES);
  }

  /** Where the next bytes of the file go. */
  room(): Buffer {
    if (this.#room.length === 0) this.#room = Buffer.allocUnsafe(CHUNK_BYTES);
    return this.#room;
  }

  /** Takes this many bytes of the room. Returns true at the end of the file. Throws `FileTooLarge`. */
  take(bytes: number): boolean {
    if (bytes === 0) return true;
    this.#read.push(this.#room.subarray(0, bytes));
    this.#room = this.#room.subarray(bytes);
    this.#bytes += bytes;
    if (this.#bytes > this.#limit.bytesMax) throw new FileTooLarge(this.#limit, this.#found);
    return false;
  }

  text(): string {
    return Buffer.concat(this.#read, this.#bytes).toString("utf8");
  }
}

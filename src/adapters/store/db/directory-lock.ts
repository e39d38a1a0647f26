import { randomUUID } from "node:crypto";
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { maxOf } from "../../../runtime/lists.ts";

/** The holder of a directory, as its lock file names it. */
type Owner = {
  readonly pid: number;
  /** The start time of the process as the kernel gives it, to notice a reused pid. Empty: the system has none. */
  readonly started: string;
  readonly since: string;
  /** Unique for each lock, because a process may lock a directory more than once in its life. */
  readonly id: string;
  /** True once the holder has released the lock. */
  readonly released: boolean;
};

export type DirectoryLock = { readonly release: () => void };

/** A living process, possibly this one, holds the directory. */
export class DirectoryHeldError extends Error {
  readonly pid: number;
  constructor(directory: string, owner: Owner) {
    super(`${directory} is held by process ${owner.pid} since ${owner.since}; only one process may use it at a time`);
    this.pid = owner.pid;
  }
}

/**
 * Locks a directory for this process alone, by a file beside it: `<directory>.lock.<n>`. PGlite needs it: two processes
 * on one directory would silently lose rows.
 *
 * A process looks at the file with the highest number. If its holder is dead or has released it, the process creates
 * the next number exclusively. A file is removed only once a higher one exists, so numbers never go back. Two processes
 * may find the same dead holder: then one of them fails to create the next file. A slow process may create a number
 * that was already used and removed: then it finds a higher one afterwards, and starts again.
 */
export function lockDirectory(directory: string): DirectoryLock {
  const path = resolve(directory);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const before = highest(path);
    const owner = before === 0 ? null : readOwner(path, before);
    if (owner !== null && isAlive(owner)) throw new DirectoryHeldError(path, owner);
    const mine = before + 1;
    const held = make(path, mine);
    if (held === null) continue;
    if (highest(path) > mine) {
      rmSync(lockFile(path, mine), { force: true });
      continue;
    }
    removeBelow(path, mine);
    return { release: () => release(path, mine, held) };
  }
  throw new Error(`cannot lock ${path}: other processes keep locking it; stop them`);
}

/** Every lost attempt means that another process made progress. */
const ATTEMPTS_MAX = 100;

function lockFile(path: string, number: number): string {
  return `${path}.lock.${number}`;
}

function numbers(path: string): readonly number[] {
  const prefix = `${basename(path)}.lock.`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter((suffix) => /^[1-9]\d*$/.test(suffix))
    .map(Number);
}

function highest(path: string): number {
  return maxOf(numbers(path), 0);
}

/** Null if the file is gone or holds no lock. It is never half written: it appears with its whole content. */
function readOwner(path: string, number: number): Owner | null {
  try {
    const owner = JSON.parse(readFileSync(lockFile(path, number), "utf8")) as Owner;
    return typeof owner.pid === "number" ? owner : null;
  } catch {
    return null;
  }
}

/** Creates the numbered file with its whole content at once: a link fails if the name exists. Null if it exists. */
function make(path: string, number: number): Owner | null {
  const owner: Owner = {
    pid: process.pid,
    started: processStart(process.pid),
    since: new Date().toISOString(),
    id: randomUUID(),
    released: false,
  };
  const draft = `${path}.lock.draft-${owner.id}`;
  writeFileSync(draft, JSON.stringify(owner), { flag: "wx", flush: true });
  try {
    linkSync(draft, lockFile(path, number));
    return owner;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return null;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A lock that cannot be released, as on a full disk, ends with this process: a later one finds its holder dead. */
function release(path: string, number: number, held: Owner): void {
  try {
    replace(path, number, { ...held, released: true });
  } catch (error) {
    rmSync(`${path}.lock.draft-${held.id}`, { force: true });
    if (!NO_ROOM.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

const NO_ROOM: readonly string[] = ["ENOSPC", "EDQUOT", "EIO", "EFBIG"];

function replace(path: string, number: number, owner: Owner): void {
  const draft = `${path}.lock.draft-${owner.id}`;
  writeFileSync(draft, JSON.stringify(owner), { flush: true });
  renameSync(draft, lockFile(path, number));
}

function removeBelow(path: string, number: number): void {
  for (const older of numbers(path)) {
    if (older < number) rmSync(lockFile(path, older), { force: true });
  }
}

function isAlive(owner: Owner): boolean {
  if (owner.released) return false;
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
  }
  const started = processStart(owner.pid);
  return started !== DEAD && (started === "" || owner.started === "" || started === owner.started);
}

const DEAD = "dead";

/** Boot id and start time of a process on Linux; `DEAD` for a process that waits to be reaped; empty elsewhere. */
function processStart(pid: number): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name, in parentheses, may contain spaces. The start time is the 20th field after it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? DEAD : `${boot}/${fields[19] ?? ""}`;
  } catch {
    return "";
  }
}

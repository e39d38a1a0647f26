/**
 * Watches this process from a thread of its own, which goes on while the event loop is blocked. It serves users whose
 * jobs must go on although one of them stops every worker that steps it: see `core/blame`.
 */

import { existsSync, readFileSync, rmSync } from "node:fs";
import { extname, join } from "node:path";
import { getHeapStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import type { DatabaseConfig } from "../config/config.ts";
import { fillBytesOf, type WatchLimits } from "../core/blame/watch-sections.ts";
import { isJsonObject } from "../runtime/json.ts";
import type { LogFormat } from "../runtime/log-format.ts";
import type { Telemetry } from "../telemetry/events.ts";
import type { ServiceStore } from "./member.ts";

/** Where the watchdog writes notes: a server, or a file if the database is in the process that it watches. */
export type NotesTarget = { readonly server: DatabaseConfig } | { readonly file: string };

/** The inputs of the thread. */
export type WatchdogData = {
  readonly shared: SharedArrayBuffer;
  readonly worker: string;
  readonly target: NotesTarget;
  readonly limits: WatchLimits;
  /** Null: lines go to standard output, as those of the log. */
  readonly logFile: string | null;
  readonly logFormat: LogFormat;
};

/** A step whose own code blocks for more than half of the lease counts against its job. */
export function blockedMsOf(leaseMs: number): number {
  return leaseMs / 2;
}

/** Starts the watchdog of a process, which ends with the parts. */
export function startWatchdog(of: {
  readonly shared: SharedArrayBuffer;
  readonly processName: string;
  readonly leaseMs: number;
  readonly target: NotesTarget;
  readonly logFile: string | null;
  readonly logFormat: LogFormat;
  readonly telemetry: Pick<Telemetry, "loopFailed">;
  readonly parts: AsyncDisposableStack;
}): void {
  const { shared, processName: worker, leaseMs, target, logFile, logFormat, telemetry, parts } = of;
  // After two leases others have taken the buckets, and health checks have failed.
  const limits = {
    blockedMs: blockedMsOf(leaseMs),
    endMs: 2 * leaseMs,
    fillBytes: fillBytesOf(getHeapStatistics().heap_size_limit),
  };
  const workerData: WatchdogData = { shared, worker, target, limits, logFile, logFormat };
  const thread = new Worker(new URL(`./watchdog-thread-main${extname(import.meta.url)}`, import.meta.url), {
    workerData,
  });
  // The process goes on without its watchdog: it blames no job then.
  thread.on("error", (error) => telemetry.loopFailed({ loop: "watchdog", error }));
  thread.unref();
  parts.defer(async () => void (await thread.terminate()));
}

/** The file of the notes beside a database in a directory. */
export function notesFile(directory: string): string {
  return join(directory, "watchdog.jsonl");
}

/** Moves the notes of a process that has ended from its file into the database. */
export async function takeNotes(file: string, { writeNote }: Pick<ServiceStore["blame"], "writeNote">): Promise<void> {
  if (!existsSync(file)) return;
  const lines = readFileSync(file, "utf8").split("\n").flatMap(readLine);
  const withdrawn = new Set(lines.flatMap((line) => ("withdrawn" in line ? [line.withdrawn] : [])));
  for (const line of lines) if ("note" in line && !withdrawn.has(line.note.id)) await writeNote(line.note);
  rmSync(file);
}

type NotesLine = { readonly note: Parameters<ServiceStore["blame"]["writeNote"]>[0] } | { readonly withdrawn: string };

/** The line that a process was writing when it ended is not whole. */
function readLine(text: string): readonly NotesLine[] {
  try {
    const line: unknown = JSON.parse(text);
    return isJsonObject(line) ? [line as NotesLine] : [];
  } catch {
    return [];
  }
}

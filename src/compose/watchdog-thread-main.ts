/** The thread that watches the main thread of its process: see `watchdog`. */
import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync, writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import type { Db } from "../adapters/store/db/db.ts";
import { openPostgres } from "../adapters/store/db/postgres.ts";
import { type NewStepNote, withdrawStepNote, writeStepNote } from "../adapters/store/fleet/step-notes.ts";
import { countsOnlyAtEnds } from "../core/blame/judge.ts";
import {
  LOOK_MS,
  type Look,
  type Section,
  sectionOfText,
  type Watched,
  type WatchOutcome,
  watchSections,
} from "../core/blame/watch-sections.ts";
import { readCode } from "../runtime/running-code.ts";
import { logText } from "../telemetry/log-text.ts";
import type { WatchdogData } from "./watchdog.ts";

/** A section that runs for so long may soon be noted: the connection is opened before. */
const CONNECT_FROM_MS = 250;
/** Linux counts CPU time in hundredths of a second, everywhere where Node runs. */
const MS_PER_TICK = 10;
const STAT_STATE = 0;
const STAT_USER_TICKS = 11;
const STAT_SYSTEM_TICKS = 12;
const CONNECTIONS = 1;

const { shared, worker, target, limits, logFile, logFormat } = workerData as WatchdogData;

let db: Promise<Db> | null = null;
let watched: Watched | null = null;
/** The notes about the present section that count only if the process ends in it. */
let provisional: string[] = [];
let writing: Promise<unknown> = Promise.resolve();

function open(): Promise<Db> | null {
  if (!("server" in target)) return null;
  const { url, directUrl, connectTimeoutMs, statementTimeoutMs, idleTimeoutMs } = target.server;
  const pooled = directUrl !== url;
  // The next statement tells of a connection that is lost.
  const onError = () => {};
  const timeouts = { connectTimeoutMs, statementTimeoutMs, idleTimeoutMs };
  db ??= openPostgres({ url, pooled, poolMax: CONNECTIONS, ...timeouts, onError });
  return db;
}

function look(): Look | null {
  const code = readCode(shared);
  if (code === null) return null;
  const monotonicMs = performance.now();
  const { sequence, text } = code;
  // Most looks find no section: they cost next to nothing.
  if (sequence === 0) return { monotonicMs, sequence, section: null, cpuMs: null, sleeps: false, processBytes: 0 };
  const section = sectionOfText(text);
  return { monotonicMs, sequence, section, ...mainThread(), processBytes: process.memoryUsage.rss() };
}

/** What Linux tells of the main thread, whose number is that of the process. Other systems tell nothing. */
function mainThread(): Pick<Look, "cpuMs" | "sleeps"> {
  try {
    const text = readFileSync(`/proc/self/task/${process.pid}/stat`, "latin1");
    // The name of the program, in brackets, may have spaces.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[STAT_USER_TICKS]) + Number(fields[STAT_SYSTEM_TICKS]);
    return { cpuMs: Number.isFinite(ticks) ? ticks * MS_PER_TICK : null, sleeps: fields[STAT_STATE] === "S" };
  } catch {
    return { cpuMs: null, sleeps: false };
  }
}

/** Writes one line as the log's own. The log itself belongs to the main thread, which may be blocked. */
function log(section: Section, facts: Readonly<Record<string, unknown>>, msg: string): void {
  const json = JSON.stringify({ level: 50, time: Date.now(), worker, ...section, ...facts, msg });
  const line = `${logFormat === "text" ? logText(json) : json}\n`;
  try {
    if (logFile === null) writeSync(process.stdout.fd ?? 1, line);
    else appendFileSync(logFile, line);
  } catch {
    // A log that cannot be written stops no watchdog.
  }
}

function note(section: Section, what: "blocked" | "filled", amount: number): void {
  const unit = what === "blocked" ? { blockedMs: amount } : { grownBytes: amount };
  log(section, unit, what === "blocked" ? "code blocks this process" : "code fills the memory of this process");
  if (section.jobUid === null) return;
  const plugin = section.of === "plugin" ? section.name : null;
  const made: NewStepNote = { id: randomUUID(), jobUid: section.jobUid, worker, what, plugin, atMs: null };
  if (countsOnlyAtEnds(made)) provisional.push(made.id);
  write(made);
}

function write(made: NewStepNote): void {
  if ("file" in target) appendFileSync(target.file, `${JSON.stringify({ note: { ...made, atMs: Date.now() } })}\n`);
  else inOrder((opened) => writeStepNote(opened, made));
}

/** The section has ended: the notes that count only if the process ended in it are void. */
function withdraw(): void {
  const ids = provisional;
  provisional = [];
  for (const id of ids) {
    if ("file" in target) appendFileSync(target.file, `${JSON.stringify({ withdrawn: id })}\n`);
    else inOrder((opened) => withdrawStepNote(opened, id));
  }
}

function inOrder(act: (opened: Db) => Promise<void>): void {
  writing = writing
    .then(async () => act((await open()) as Db))
    .catch((error: unknown) => {
      log({ jobUid: null, of: "step", name: "" }, { error: String(error) }, "the watchdog's note was not written");
    });
}

function watch(): void {
  const seen = look();
  if (seen === null) return;
  const outcome: WatchOutcome = watchSections(watched, seen, limits);
  ({ watched } = outcome);
  if (outcome.survived) withdraw();
  for (const { what, section, amount } of outcome.notes) note(section, what, amount);
  if (watched.section?.jobUid != null && watched.ranMs > CONNECT_FROM_MS && db === null)
    inOrder(async (opened) => void (await opened.query("select 1")));
  if (outcome.end && watched.section !== null) end(watched.section, watched.ranMs);
}

/** Ends the process: nothing else can run in it, and its supervisor starts it again. */
function end(section: Section, ranMs: number): void {
  log(section, { blockedMs: Math.round(ranMs) }, "the watchdog ends this process, which code has blocked for too long");
  void writing.finally(() => process.kill(process.pid, "SIGKILL"));
}

setInterval(watch, LOOK_MS);

/**
 * Decides what the watchdog notes, from looks at the section of code that the watched thread runs. It serves users
 * whose jobs must not be blamed for a machine that was busy, paused or too small.
 */

/** Code that runs without a pause, and the job and the part of the installation that it runs for. */
export type Section = {
  /** Null: it runs for no job. */
  readonly jobUid: string | null;
  readonly of: "step" | "plugin" | "cluster";
  /** The plugin or the cluster. Empty for Gangway's own code in a step. */
  readonly name: string;
};

/** One look at the watched thread. */
export type Look = {
  readonly monotonicMs: number;
  /** Rises with every section that begins. 0: none runs. */
  readonly sequence: number;
  readonly section: Section | null;
  /** The CPU time of the watched thread. Null: this system does not tell it. */
  readonly cpuMs: number | null;
  /** True if the thread sleeps: it waits for a call or a lock, and not for a CPU. */
  readonly sleeps: boolean;
  /** The memory that the process holds. */
  readonly processBytes: number;
};

export type WatchLimits = {
  /** A section that blocks for longer is noted. */
  readonly blockedMs: number;
  /** A process that has blocked for longer is ended, so that its supervisor starts it again. */
  readonly endMs: number;
  /** A section in which the process grows by more is noted. */
  readonly fillBytes: number;
};

/** The facts about the section that runs. */
export type Watched = {
  readonly sequence: number;
  readonly section: Section | null;
  readonly last: Pick<Look, "monotonicMs" | "cpuMs">;
  readonly startBytes: number;
  /** For how long its code has run. Time in which the thread waited for a CPU, or the process stood still, is not. */
  readonly ranMs: number;
  readonly noted: { readonly blocked: boolean; readonly filled: boolean };
};

export type WatchOutcome = {
  readonly watched: Watched;
  /** New notes. `amount`: milliseconds, or bytes. */
  readonly notes: readonly {
    readonly what: "blocked" | "filled";
    readonly section: Section;
    readonly amount: number;
  }[];
  /** True: the section before this one was noted, and has ended. */
  readonly survived: boolean;
  /** True: the process is to be ended. */
  readonly end: boolean;
};

/** A look that comes this many times later than usual says that the whole process stood still. */
const LATE_LOOKS = 4;
/** How often the watchdog looks. */
export const LOOK_MS = 100;

const MIB = 1024 * 1024;
/** No step needs so much: what a step may build is limited. */
const FILL_BYTES_MIN = 256 * MIB;
const FILL_BYTES_MAX = 1024 * MIB;

/** The growth of the process within one section that is noted: half of the heap's limit, between fixed bounds. */
export function fillBytesOf(heapLimitBytes: number): number {
  return Math.min(FILL_BYTES_MAX, Math.max(FILL_BYTES_MIN, heapLimitBytes / 2));
}

/** What follows from one more look. `before` null: it is the first. */
export function watchSections(before: Watched | null, look: Look, limits: WatchLimits): WatchOutcome {
  const isSame = before?.sequence === look.sequence;
  const known = isSame ? before : begun(look);
  const ranMs = isSame ? before.ranMs + ranSince(before, look) : 0;
  const { notes, noted } = notesOn(known, { ranMs, grownBytes: look.processBytes - known.startBytes }, limits);
  const { monotonicMs, cpuMs } = look;
  const survived = !isSame && before !== null && (before.noted.blocked || before.noted.filled);
  const watched = { ...known, last: { monotonicMs, cpuMs }, ranMs, noted };
  return { watched, notes, survived, end: known.section !== null && ranMs > limits.endMs };
}

function notesOn(
  { section, noted: before }: Watched,
  { ranMs, grownBytes }: { readonly ranMs: number; readonly grownBytes: number },
  limits: WatchLimits,
): Pick<WatchOutcome, "notes"> & Pick<Watched, "noted"> {
  if (section === null) return { notes: [], noted: before };
  const notes: WatchOutcome["notes"][number][] = [];
  const blocked = ranMs > limits.blockedMs;
  const filled = grownBytes > limits.fillBytes;
  if (blocked && !before.blocked) notes.push({ what: "blocked", section, amount: Math.round(ranMs) });
  if (filled && !before.filled) notes.push({ what: "filled", section, amount: grownBytes });
  return { notes, noted: { blocked: before.blocked || blocked, filled: before.filled || filled } };
}

function begun({ sequence, section, monotonicMs, cpuMs, processBytes }: Look): Watched {
  const noted = { blocked: false, filled: false };
  return { sequence, section, last: { monotonicMs, cpuMs }, startBytes: processBytes, ranMs: 0, noted };
}

/** How long the code ran since the last look: its CPU time, or all of the time in which the thread slept. */
function ranSince({ last }: Watched, look: Look): number {
  const passedMs = Math.min(look.monotonicMs - last.monotonicMs, LATE_LOOKS * LOOK_MS);
  if (look.cpuMs === null || last.cpuMs === null || look.sleeps) return passedMs;
  return Math.min(passedMs, look.cpuMs - last.cpuMs);
}

/** A section as a short text, and back. */
export function sectionText({ jobUid, of, name }: Section): string {
  return `${of} ${jobUid ?? "-"} ${name}`;
}

export function sectionOfText(text: string): Section | null {
  const [of = "", jobUid = "", ...name] = text.split(" ");
  if (of !== "step" && of !== "plugin" && of !== "cluster") return null;
  return { of, jobUid: jobUid === "-" ? null : jobUid, name: name.join(" ") };
}

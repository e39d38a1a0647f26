/** Decides from the watchdog's notes which job is to blame for the ends of workers. */
import type { Blame, StepNote } from "./step-note.ts";

/** Notes count against a job for this time. */
export const NOTES_COUNT_MS = 3_600_000;
/** With one note less, a job that had bad luck once would be set aside. */
const NOTES_TO_BLAME = 2;

/** The facts of a job that decide which notes still count. */
export type Accused = {
  /** When the job was last resumed after it had been set aside. Null: it was not. */
  readonly resumedMs: number | null;
};

/**
 * True for a note that counts only if the step was alone under way when its worker ended. Memory grows also by what
 * others hold, and a plugin's code is not the job's. A section of Gangway's own code that blocks needs no other proof:
 * nothing else ran.
 */
export function countsOnlyAtEnds({ what, plugin }: Pick<StepNote, "what" | "plugin">): boolean {
  return what === "filled" || plugin !== null;
}

/** Why a job is to be set aside. Null: it is not to blame. Each worker counts once for each note that it left. */
export function judge(notes: readonly StepNote[], { resumedMs }: Accused, nowMs: number): Blame | null {
  const sinceMs = Math.max(nowMs - NOTES_COUNT_MS, resumedMs ?? Number.NEGATIVE_INFINITY);
  const counted = notes.filter((note) => note.atMs > sinceMs && isCounted(note));
  if (counted.length < NOTES_TO_BLAME) return null;
  const last = counted.reduce((latest, note) => (note.atMs > latest.atMs ? note : latest));
  const code = last.plugin === null ? "its step" : `the plugin ${last.plugin} in its step`;
  const done = last.what === "blocked" ? "blocked a worker" : "filled the memory of a worker";
  const message =
    `It is set aside: ${code} ${done} ${counted.length} times within an hour. ` +
    "Its pods, tokens and time limits stay, and nothing more is built from its templates. " +
    "Correct and submit it anew, or retry it with `gangway resume`.";
  return { reason: last.what === "blocked" ? "BlocksWorkers" : "FillsWorkers", message };
}

function isCounted(note: StepNote): boolean {
  return countsOnlyAtEnds(note) ? note.alone && note.ended : true;
}

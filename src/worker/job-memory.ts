import type { Action } from "../core/reconcile/decision.ts";
import type { RefusedCreate } from "../core/reconcile/decision-draft.ts";
import { doublingMs } from "../runtime/doubling.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";
import { Expectations } from "./expectations.ts";

/** The wait before failed actions of a job are tried again: 1 s, 2 s, 4 s … up to the longest. */
const RETRY = { firstMs: 1_000, longestMs: 30_000 };
/** How long the same warning about a job is not stored again. */
const NOTE_AGAIN_MS = 60_000;

type Memory = {
  failuresInRow: number;
  retryAtMs: number;
  /** When each warning was last stored, by its text. */
  readonly noted: Map<string, number>;
  /** The recorded time to look again, as far as this worker knows. Null: none. */
  recheckAtMs: number | null;
  readonly expected: Expectations;
  /** An object that its cluster has refused to create. */
  refused: RefusedCreate | null;
};

/**
 * A worker's memory of jobs between steps. Losing it costs only an early retry, a warning that is stored twice, or a
 * look that was not needed. Times of `retry` and `noted` are monotonic; those of `recheck` are the database's.
 */
export class JobMemory {
  readonly #jobs = new Map<string, Memory>();

  /** How many jobs are remembered. For bounds in tests, not for decisions. */
  get size(): number {
    return this.#jobs.size;
  }

  /** True while failed actions must not be tried again yet. */
  holdsBack(jobUid: string, monotonicMs: number): boolean {
    return monotonicMs < (this.#jobs.get(jobUid)?.retryAtMs ?? 0);
  }

  /**
   * Remembers a failure and returns how long to wait. If another action succeeded, the wait is that of a first failure.
   */
  failed(jobUid: string, monotonicMs: number, { progress }: { readonly progress: boolean }): number {
    const memory = this.#of(jobUid);
    if (progress) memory.failuresInRow = 0;
    const delayMs = doublingMs(RETRY, memory.failuresInRow);
    memory.failuresInRow += 1;
    memory.retryAtMs = monotonicMs + delayMs;
    return delayMs;
  }

  succeeded(jobUid: string): void {
    const memory = this.#jobs.get(jobUid);
    if (memory === undefined) return;
    memory.failuresInRow = 0;
    memory.retryAtMs = 0;
    this.#forgetIfEmpty(jobUid, memory);
  }

  /** True once a minute for the same warning about the same job. */
  mayNote(jobUid: string, complaint: string, monotonicMs: number): boolean {
    const { noted } = this.#of(jobUid);
    for (const [text, atMs] of noted) if (monotonicMs - atMs >= NOTE_AGAIN_MS) noted.delete(text);
    if (noted.has(complaint)) return false;
    noted.set(complaint, monotonicMs);
    return true;
  }

  /** Remembers that a cluster refuses an object, until that is recorded. */
  refuse(jobUid: string, refused: RefusedCreate): void {
    this.#of(jobUid).refused = refused;
  }

  /** Notes that the creates of a step have succeeded. */
  refuseNothing(jobUid: string): void {
    const memory = this.#jobs.get(jobUid);
    if (memory === undefined) return;
    memory.refused = null;
    this.#forgetIfEmpty(jobUid, memory);
  }

  refusedCreate(jobUid: string): RefusedCreate | null {
    return this.#jobs.get(jobUid)?.refused ?? null;
  }

  /** The wanted actions that are not awaited yet. From now on they are. */
  expect(jobUid: string, wanted: readonly Action[], monotonicMs: number): readonly Action[] {
    if (wanted.length === 0 && !this.#jobs.has(jobUid)) return wanted;
    const memory = this.#of(jobUid);
    const due = memory.expected.due(wanted, monotonicMs);
    memory.expected.raise(due, monotonicMs);
    this.#forgetIfEmpty(jobUid, memory);
    return due;
  }

  /** Notes that these have failed or were not tried, so that no change is awaited. */
  expectNot(jobUid: string, actions: readonly Action[]): void {
    this.#jobs.get(jobUid)?.expected.lower(actions);
  }

  recorded(jobUid: string, recheckAtMs: number | null): void {
    const memory = this.#jobs.get(jobUid);
    if (memory === undefined && recheckAtMs === null) return;
    const known = memory ?? this.#of(jobUid);
    known.recheckAtMs = recheckAtMs;
    known.refused = null;
    this.#forgetIfEmpty(jobUid, known);
  }

  /**
   * True if the wanted time must be written: the recorded time has passed, or is later than wanted. An earlier recorded
   * time stays, since an early look costs less than a write.
   */
  mustWriteRecheck(jobUid: string, wantedMs: number | null, nowMs: number): boolean {
    const recordedMs = this.#jobs.get(jobUid)?.recheckAtMs ?? null;
    if (recordedMs === null) return wantedMs !== null;
    return recordedMs <= nowMs ? recordedMs !== wantedMs : wantedMs !== null && wantedMs < recordedMs;
  }

  forget(jobUid: string): void {
    this.#jobs.delete(jobUid);
  }

  /** Forgets jobs that belong to another worker now: what it writes is not known here. */
  forgetWhere(isOthers: (jobUid: string) => boolean): void {
    for (const jobUid of this.#jobs.keys()) if (isOthers(jobUid)) this.#jobs.delete(jobUid);
  }

  #of(jobUid: string): Memory {
    return getOrCreate(
      this.#jobs,
      jobUid,
      (): Memory => ({
        failuresInRow: 0,
        retryAtMs: 0,
        noted: new Map(),
        recheckAtMs: null,
        expected: new Expectations(),
        refused: null,
      }),
    );
  }

  #forgetIfEmpty(jobUid: string, memory: Memory): void {
    if (
      memory.failuresInRow === 0 &&
      memory.noted.size === 0 &&
      memory.recheckAtMs === null &&
      memory.refused === null &&
      memory.expected.size === 0
    )
      this.#jobs.delete(jobUid);
  }
}

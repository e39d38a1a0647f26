import type { SelfTime } from "./measure.ts";

/** The times of changes, in milliseconds since 1970 with fractions: when each began, and when it was committed. */
export type ChangeTimes = {
  /** The number of the first change. */
  readonly first: number;
  readonly beganMs: readonly number[];
  readonly committedMs: readonly number[];
};

/** The orders of the bench of watches to a server, and its answers. */
export type ServerOrder =
  /** Changes jobs of these namespaces, one after the other. `bytes` is the size of a message of the floor. */
  | {
      readonly kind: "change";
      readonly perSecond: number;
      readonly seconds: number;
      readonly namespaces: readonly string[];
      readonly bytes: number;
    }
  | { readonly kind: "usage" | "profile" | "profiled" | "end" };

export type ServerAnswer =
  | { readonly kind: "ready"; readonly address: string; readonly path: string }
  | ({ readonly kind: "changed" } & ChangeTimes)
  | {
      readonly kind: "used";
      /** The CPU time of the process before the collection of garbage that this takes, and after it. */
      readonly cpuMs: number;
      readonly cpuAfterMs: number;
      /** What the process keeps after a collection of garbage, and all of its memory. */
      readonly keptBytes: number;
      readonly rssBytes: number;
      /** How many responses of watches were encoded since the start. */
      readonly encodings: number;
    }
  | { readonly kind: "profile"; readonly times: readonly SelfTime[] }
  | { readonly kind: "done" };

/** The orders to a process of readers. A reader that is stalled reads nothing of its stream. */
export type ReaderOrder =
  | {
      readonly kind: "open";
      readonly address: string;
      readonly path: string;
      /** One stream for each: the request's bytes in base64. */
      readonly requests: readonly string[];
      readonly stalled: boolean;
    }
  | { readonly kind: "count" | "close" }
  | { readonly kind: "lags"; readonly times: ChangeTimes };

export type ReaderAnswer =
  | { readonly kind: "opened" | "closed" }
  /** The changes that all streams together got since the last `lags`, and their bytes. */
  | { readonly kind: "counted"; readonly received: number; readonly bytes: number }
  /** How many messages came so late, after the beginning and after the commit, by tenths of milliseconds. */
  | { readonly kind: "lags"; readonly sinceBegin: Histogram; readonly sinceCommit: Histogram };

/** Counts by tenths of milliseconds. */
export type Histogram = readonly (readonly [tenths: number, count: number])[];

/** What a message of a change holds, followed by the change's number in `CHANGE_DIGITS` digits. */
export const CHANGE_MARK = "bench-change-";
export const CHANGE_DIGITS = 9;

export function changeText(change: number): string {
  return CHANGE_MARK + String(change).padStart(CHANGE_DIGITS, "0");
}

/** A moment that processes of one machine can compare. */
export function momentMs(): number {
  return performance.timeOrigin + performance.now();
}

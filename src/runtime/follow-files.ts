/** Follows files whose contents count while the process runs, so that an operator need not restart it. */
import type { Clock } from "./clock.ts";

/** How often the files are read: a mounted secret or config map changes behind a link, without a notification. */
const LOOK_MS = 2_000;

export type FollowPorts = {
  readonly clock: Pick<Clock, "sleep">;
  readonly readFile: (path: string) => Promise<string>;
  /** Called once the value has changed. If it fails, the error is reported, and the files are tried again. */
  readonly onRead: () => void | Promise<void>;
  readonly onError: (error: unknown) => void;
};

/** What was read at the start. */
export type ReadFiles<T> = {
  readonly paths: readonly string[];
  readonly texts: readonly string[];
  readonly value: T;
  /** Makes the value of the texts, in the order of the paths. Throws an error that an operator understands. */
  readonly parse: (texts: readonly string[]) => T;
};

export type FollowedFiles<T> = {
  readonly now: () => T;
  /** The texts of the value in force. */
  readonly texts: () => readonly string[];
  readonly run: (signal: AbortSignal) => Promise<void>;
};

/**
 * Parses the files again whenever one of their texts has changed. Files that cannot be read or parsed are reported
 * once, and the value before them stays in force.
 */
export function followFiles<T>(
  { clock, readFile, onRead, onError }: FollowPorts,
  { paths, texts, value, parse }: ReadFiles<T>,
): FollowedFiles<T> {
  let current = value;
  let seen = texts;
  let reported = "";
  const look = async () => {
    try {
      const read = await Promise.all(paths.map(readFile));
      if (read.every((text, at) => text === seen[at])) {
        reported = "";
        return;
      }
      const before = current;
      current = parse(read);
      try {
        await onRead();
      } catch (error) {
        current = before;
        throw error;
      }
      seen = read;
      reported = "";
    } catch (error) {
      const message = String(error);
      if (message !== reported) onError(error);
      reported = message;
    }
  };
  const run = async (signal: AbortSignal) => {
    while (paths.length > 0 && !signal.aborted) {
      await clock.sleep(LOOK_MS, signal);
      if (!signal.aborted) await look();
    }
  };
  return { now: () => current, texts: () => seen, run };
}

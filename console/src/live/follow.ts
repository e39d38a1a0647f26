/** Keeps a stream open: calls again after it breaks, from where it was. */

/** The waits between calls double up to this one. */
const BACKOFF_MS_MAX = 10_000;
const BACKOFF_MS_MIN = 500;

export type FollowState = "connecting" | "live" | "reconnecting";

export type Followed<T> = {
  /** Opens the stream, once more where the last message left it. */
  readonly open: (signal: AbortSignal) => AsyncIterable<T>;
  readonly onMessage: (message: T) => void;
  readonly onState: (state: FollowState) => void;
  /** True: another call can work. */
  readonly isPassing: (cause: unknown) => boolean;
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
};

/** Resolves once the stream has ended or the signal is aborted. Throws what no other call can mend. */
export async function follow<T>(followed: Followed<T>, signal: AbortSignal): Promise<void> {
  const { open, onMessage, onState, isPassing, random, sleep } = followed;
  let failures = 0;
  onState("connecting");
  while (!signal.aborted) {
    try {
      for await (const message of open(signal)) {
        failures = 0;
        onState("live");
        onMessage(message);
      }
      return;
    } catch (cause) {
      if (signal.aborted) return;
      if (!isPassing(cause)) throw cause;
      onState("reconnecting");
      const backoffMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** failures);
      failures += 1;
      // Pages that lost the same server do not all come back at the same moment.
      await sleep(backoffMs * (0.5 + random() / 2), signal);
    }
  }
}

export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/**
 * A hint to a stage, here or in another process, to look at the records now. It carries no facts: without the hint the
 * stage would look later.
 */
export type Hint =
  /** Jobs wait, room has become free, or quotas have changed. */
  | { readonly kind: "planner" }
  /** The event log has grown. */
  | { readonly kind: "log" }
  | { readonly kind: "job"; readonly uid: string }
  /** Too many jobs to name: look at every job that is due. */
  | { readonly kind: "jobs" };

export type Hints = {
  /** Calls the listeners of this process at once and those of others soon. Never waits and never throws. */
  readonly send: (hint: Hint) => void;
  /** Calls the listener for every hint, of this process or others, until the returned function is called. */
  readonly onHint: (listener: (hint: Hint) => void) => () => void;
  readonly close: () => Promise<void>;
};

/** Hints within one process. */
export function localHints(): Hints {
  const listeners = new Set<(hint: Hint) => void>();
  return {
    send: (hint) => {
      for (const listener of listeners) listener(hint);
    },
    onHint: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close: async () => listeners.clear(),
  };
}

/** A batch names at most so many jobs. */
const JOBS_MAX = 1_000;
/** PostgreSQL accepts less than 8,000 bytes in one notification. */
const PAYLOAD_BYTES_MAX = 7_900;
const UID = /^[0-9a-f-]{36}$/;

/** Hints that wait to be sent, each once. Bounded, also if nothing can be sent for a long time. */
export class HintBatch {
  #planner = false;
  #log = false;
  #jobs: Set<string> | "all" = new Set();

  add(hint: Hint): void {
    if (hint.kind === "planner") this.#planner = true;
    else if (hint.kind === "log") this.#log = true;
    else if (hint.kind === "jobs") this.#jobs = "all";
    else if (this.#jobs !== "all") {
      this.#jobs.add(hint.uid);
      if (this.#jobs.size > JOBS_MAX) this.#jobs = "all";
    }
  }

  get isEmpty(): boolean {
    return !this.#planner && !this.#log && this.#jobs !== "all" && this.#jobs.size === 0;
  }

  /** Empties the batch and returns its hints as payloads of notifications. */
  take(): readonly string[] {
    const words = [...(this.#planner ? ["planner"] : []), ...(this.#log ? ["log"] : [])];
    if (this.#jobs === "all") words.push("jobs");
    else for (const uid of this.#jobs) words.push(`job:${uid}`);
    this.#planner = false;
    this.#log = false;
    this.#jobs = new Set();
    return packed(words);
  }
}

/** Joins words, which are ASCII, into as few payloads as their bound allows. */
function packed(words: readonly string[]): readonly string[] {
  const payloads: string[] = [];
  let payload = "";
  for (const word of words) {
    if (payload.length + word.length + 1 > PAYLOAD_BYTES_MAX) {
      payloads.push(payload);
      payload = "";
    }
    payload += payload === "" ? word : `,${word}`;
  }
  return payload === "" ? payloads : [...payloads, payload];
}

/** The hints in a payload. Ignores words that only another version of this program knows. */
export function hintsOf(payload: string): readonly Hint[] {
  return payload.split(",").flatMap((word): readonly Hint[] => {
    if (word === "planner" || word === "log" || word === "jobs") return [{ kind: word }];
    const uid = word.startsWith("job:") ? word.slice("job:".length) : "";
    return UID.test(uid) ? [{ kind: "job", uid }] : [];
  });
}

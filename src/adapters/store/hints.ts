/**
 * Something has changed that a stage elsewhere may want to look at sooner. Never more than that: whoever is hinted at looks at the record, and
 * would do so in time without the hint.
 */
export type Hint =
  /** Jobs wait, room has come free, or quotas have changed. */
  | { readonly kind: "planner" }
  /** The event log has grown. */
  | { readonly kind: "log" }
  | { readonly kind: "job"; readonly uid: string }
  /** So many jobs that nobody counts them: look at whatever is due. */
  | { readonly kind: "jobs" };

export type Hints = {
  /** Tells everyone that listens, in this process at once and in others soon. Never waits and never throws. */
  readonly send: (hint: Hint) => void;
  /** Calls back for every hint, wherever it was sent, until the function that it returns is called. */
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

/** More jobs than this in one sending are not named one by one. */
const JOBS_MAX = 1_000;
/** PostgreSQL takes less than 8,000 bytes in one notification. */
const PAYLOAD_BYTES_MAX = 7_900;
const UID = /^[0-9a-f-]{36}$/;

/** Hints that wait to be sent, each once; bounded, however long nothing can be sent. */
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

  /** What waits, as payloads of notifications, and nothing waits any more. */
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

/** Words, each of ASCII alone, in as few payloads as their bound allows. */
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

/** The hints of a payload; what another version of this program says and this one does not know is left out. */
export function hintsOf(payload: string): readonly Hint[] {
  return payload.split(",").flatMap((word): readonly Hint[] => {
    if (word === "planner" || word === "log" || word === "jobs") return [{ kind: word }];
    const uid = word.startsWith("job:") ? word.slice("job:".length) : "";
    return UID.test(uid) ? [{ kind: "job", uid }] : [];
  });
}

import type { LoggedChange, LogPlace } from "../core/job/request/event-log.ts";
import type { SharedCalls } from "../runtime/shared-calls.ts";
import type { WatchStore } from "./ports.ts";

type LogPage = { readonly entries: readonly LoggedChange[]; readonly gap: boolean };

const PAGE = 500;
/** How many pages are kept. Clients whose server ended come back together, with the cursors of a few positions. */
const KEPT_MAX = 4;
const EMPTY: LogPage = { entries: [], gap: false };

/**
 * Pages of the log for streams that are behind it. Streams at one position share a read, and the last pages are kept.
 * An incarnation of the log grows only at its end, so that a page stays the beginning of what follows its place.
 */
export class LogPages {
  readonly #store: Pick<WatchStore, "entriesAfter">;
  readonly #reads: SharedCalls;
  readonly #kept = new Map<string, LogPage>();

  constructor(store: Pick<WatchStore, "entriesAfter">, reads: SharedCalls) {
    this.#store = store;
    this.#reads = reads;
  }

  /** The page after a place. Empty also if the signal was aborted before it was read. */
  async after({ incarnation, position }: LogPlace, signal: AbortSignal): Promise<LogPage> {
    const key = `entries ${incarnation} ${position}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const read = () => this.#store.entriesAfter({ incarnation, position }, PAGE);
    const page = (await this.#reads.run(key, read, signal)) ?? EMPTY;
    if (page.entries.length > 0) this.#keep(key, page);
    return page;
  }

  #keep(key: string, page: LogPage): void {
    this.#kept.set(key, page);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_MAX) return;
      this.#kept.delete(oldest);
    }
  }
}

import { setImmediate } from "node:timers/promises";
import { UnavailableError } from "./unavailable-error.ts";

export type GroupOptions<Request, Answer> = {
  /** The name of the requests, for error messages. */
  readonly what: string;
  /** The most requests of one group. */
  readonly groupMax: number;
  /** The most requests that wait. A request beyond that fails at once with `UnavailableError`. */
  readonly waitingMax: number;
  /** Whether a request may join the group of `first`. Omitted: always. */
  readonly fits?: (first: Request, request: Request) => boolean;
  /**
   * True: if a group of several throws, each of its requests runs again alone, so that it fails by its own error only.
   * Not so for `UnavailableError`, which would meet all of them. Omitted: every request of the group fails.
   */
  readonly apart?: boolean;
  /** Answers a group, in its order. */
  readonly run: (group: readonly Request[]) => Promise<readonly Answer[]>;
};

type QueuedRequest<Request, Answer> = {
  readonly request: Request;
  readonly answer: (answer: Answer) => void;
  readonly fail: (error: unknown) => void;
};

/**
 * Lets requests that arrive during a transaction share the next one, so that they pay for one commit together. A
 * request waits for the requests before it only.
 */
export class GroupCommit<Request, Answer> {
  readonly #options: GroupOptions<Request, Answer>;
  #queued: QueuedRequest<Request, Answer>[] = [];
  #running = false;

  constructor(options: GroupOptions<Request, Answer>) {
    this.#options = options;
  }

  ask(request: Request): Promise<Answer> {
    const { what, waitingMax } = this.#options;
    if (this.#queued.length >= waitingMax) {
      return Promise.reject(new UnavailableError(`${waitingMax} ${what} already wait for the database; retry later`));
    }
    return new Promise((answer, fail) => {
      this.#queued.push({ request, answer, fail });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queued.length > 0) {
      // An embedded database blocks the event loop while it works. This pause lets in the calls that arrived meanwhile.
      await setImmediate();
      await this.#runGroup(this.#nextGroup());
    }
    this.#running = false;
  }

  #nextGroup(): readonly QueuedRequest<Request, Answer>[] {
    const { groupMax, fits = () => true } = this.#options;
    const [first] = this.#queued;
    const group: QueuedRequest<Request, Answer>[] = [];
    const left: QueuedRequest<Request, Answer>[] = [];
    for (const queued of this.#queued) {
      const joins = group.length < groupMax && first !== undefined && fits(first.request, queued.request);
      (joins ? group : left).push(queued);
    }
    this.#queued = left;
    return group;
  }

  async #runGroup(group: readonly QueuedRequest<Request, Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.run(group.map(({ request }) => request));
      for (const [at, { answer, fail }] of group.entries()) {
        if (at < answers.length) answer(answers[at] as Answer);
        else fail(new Error(`a group of ${group.length} ${this.#options.what} got ${answers.length} answers`));
      }
    } catch (error) {
      await this.#failed(group, error);
    }
  }

  async #failed(group: readonly QueuedRequest<Request, Answer>[], error: unknown): Promise<void> {
    const { apart = false } = this.#options;
    if (apart && group.length > 1 && !(error instanceof UnavailableError)) {
      for (const one of group) await this.#runGroup([one]);
      return;
    }
    for (const { fail } of group) fail(error);
  }
}

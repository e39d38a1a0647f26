import { setImmediate } from "node:timers/promises";
import { servingNone, waitingKey } from "./served-call.ts";
import { Turns } from "./turns.ts";
import { UnavailableError, wouldFailAlone } from "./unavailable-error.ts";

export type GroupOptions<Request, Answer> = {
  /** The name of the requests, for error messages. */
  readonly what: string;
  /** The most requests of one group. */
  readonly groupMax: number;
  /**
   * The most requests that wait. Beyond that, the newest of the caller with the most fails at once with
   * `UnavailableError`.
   */
  readonly waitingMax: number;
  /** The most groups that run at a time. Omitted: 1, so that each group begins after the one before it has ended. */
  readonly atATime?: number;
  /** Whether a request may join the group of `first`. Omitted: always. */
  readonly fits?: (first: Request, request: Request) => boolean;
  /**
   * True: if a group of several throws, each of its requests runs again alone, so that it fails by its own error only.
   * Not so for `UnavailableError`, which would meet all of them. Omitted: every request of the group fails.
   */
  readonly apart?: boolean;
  /** Answers a group, in its order. It runs for no call, because its requests may be of several. */
  readonly run: (group: readonly Request[]) => Promise<readonly Answer[]>;
};

type QueuedRequest<Request, Answer> = {
  readonly request: Request;
  readonly answer: (answer: Answer) => void;
  readonly fail: (error: unknown) => void;
};

/**
 * Lets requests that arrive during a transaction share the next one, so that they pay for one commit together. Callers
 * take turns, as `Turns` says; a request waits for those of its caller that came before it.
 */
export class GroupCommit<Request, Answer> {
  readonly #options: GroupOptions<Request, Answer>;
  readonly #queued = new Turns<QueuedRequest<Request, Answer>>();
  #running = 0;

  constructor(options: GroupOptions<Request, Answer>) {
    this.#options = options;
  }

  ask(request: Request): Promise<Answer> {
    const key = waitingKey();
    const { promise, resolve: answer, reject: fail } = Promise.withResolvers<Answer>();
    if (this.#queued.size >= this.#options.waitingMax) {
      const beyond = this.#queued.giveWay(key) ?? { fail };
      beyond.fail(this.#full());
      if (beyond.fail === fail) return promise;
    }
    this.#queued.add(key, { request, answer, fail });
    if (this.#running < (this.#options.atATime ?? 1)) void servingNone(() => this.#run());
    return promise;
  }

  #full(): UnavailableError {
    const { what, waitingMax } = this.#options;
    return new UnavailableError(`${waitingMax} ${what} already wait for the database; retry later`);
  }

  async #run(): Promise<void> {
    this.#running += 1;
    while (this.#queued.size > 0) {
      // An embedded database blocks the event loop while it works. This pause lets in the calls that arrived meanwhile.
      await setImmediate();
      const group = this.#nextGroup();
      if (group.length > 0) await this.#runGroup(group);
    }
    this.#running -= 1;
  }

  #nextGroup(): readonly QueuedRequest<Request, Answer>[] {
    const { groupMax, fits = () => true } = this.#options;
    const first = this.#queued.next();
    const group = first === null ? [] : [first];
    while (first !== null && group.length < groupMax) {
      const next = this.#queued.next(({ request }) => fits(first.request, request));
      if (next === null) break;
      group.push(next);
    }
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
    if (apart && group.length > 1 && !wouldFailAlone(error)) {
      for (const one of group) await this.#runGroup([one]);
      return;
    }
    for (const { fail } of group) fail(error);
  }
}

import { setImmediate } from "node:timers/promises";
import { UnavailableError } from "../../runtime/unavailable-error.ts";

export type GroupOptions<Request, Answer> = {
  /** What is grouped, for the message of a refusal. */
  readonly what: string;
  /** So many go together at most. */
  readonly groupMax: number;
  /** So many wait at most: what comes beyond that is answered `UnavailableError` at once. */
  readonly waitingMax: number;
  /** True where a request may go together with the first of its group; absent: always. */
  readonly fits?: (first: Request, request: Request) => boolean;
  /** Answers a group, in its order. What it throws every one of them gets. */
  readonly run: (group: readonly Request[]) => Promise<readonly Answer[]>;
};

type Waiting<Request, Answer> = {
  readonly request: Request;
  readonly answer: (answer: Answer) => void;
  readonly fail: (error: unknown) => void;
};

/** Lets requests that come while a transaction runs share the next one: what a commit takes is paid once for all of them. */
export class GroupCommit<Request, Answer> {
  readonly #options: GroupOptions<Request, Answer>;
  #waiting: Waiting<Request, Answer>[] = [];
  #running = false;

  constructor(options: GroupOptions<Request, Answer>) {
    this.#options = options;
  }

  ask(request: Request): Promise<Answer> {
    const { what, waitingMax } = this.#options;
    if (this.#waiting.length >= waitingMax) {
      return Promise.reject(new UnavailableError(`${waitingMax} ${what} wait for the database already`));
    }
    return new Promise((answer, fail) => {
      this.#waiting.push({ request, answer, fail });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      // A database in this process lets nothing else in while it works: only now are the calls heard that came meanwhile.
      await setImmediate();
      await this.#runGroup(this.#nextGroup());
    }
    this.#running = false;
  }

  #nextGroup(): readonly Waiting<Request, Answer>[] {
    const { groupMax, fits = () => true } = this.#options;
    const [first] = this.#waiting;
    const group: Waiting<Request, Answer>[] = [];
    const left: Waiting<Request, Answer>[] = [];
    for (const waiting of this.#waiting) {
      const joins = group.length < groupMax && first !== undefined && fits(first.request, waiting.request);
      (joins ? group : left).push(waiting);
    }
    this.#waiting = left;
    return group;
  }

  async #runGroup(group: readonly Waiting<Request, Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.run(group.map(({ request }) => request));
      for (const [at, { answer, fail }] of group.entries()) {
        if (at < answers.length) answer(answers[at] as Answer);
        else fail(new Error(`a group of ${group.length} ${this.#options.what} got ${answers.length} answers`));
      }
    } catch (error) {
      for (const { fail } of group) fail(error);
    }
  }
}

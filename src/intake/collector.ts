import { setImmediate } from "node:timers/promises";
import type { IntakePorts } from "./ports.ts";
import type { Submission, Submitted } from "./submit.ts";
import { submitAll } from "./submit-all.ts";

/** As many as share one transaction anyway. */
const GROUP_MAX = 200;

type Waiting = {
  readonly submission: Submission;
  readonly answer: (submitted: Submitted) => void;
  readonly fail: (error: unknown) => void;
};

/**
 * Lets submissions that come while others are being made durable go together after them: what a database takes for a commit is then paid
 * once for all that wait. Each is answered as if it came alone, and none waits for more than those that are under way.
 */
export class Collector {
  readonly #ports: IntakePorts;
  readonly #waiting: Waiting[] = [];
  #running = false;

  constructor(ports: IntakePorts) {
    this.#ports = ports;
  }

  submit(submission: Submission): Promise<Submitted> {
    return new Promise((answer, fail) => {
      this.#waiting.push({ submission, answer, fail });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      // A database in this process lets nothing else in while it works: only now are the calls heard that came meanwhile.
      await setImmediate();
      await this.#runGroup(this.#waiting.splice(0, GROUP_MAX));
    }
    this.#running = false;
  }

  async #runGroup(group: readonly Waiting[]): Promise<void> {
    try {
      const answers = await submitAll(
        this.#ports,
        group.map(({ submission }) => submission),
      );
      for (const [at, { answer, fail }] of group.entries()) {
        const submitted = answers[at];
        if (submitted === undefined) fail(new Error("a submission has no answer"));
        else if (submitted.kind === "failed") fail(submitted.error);
        else answer(submitted);
      }
    } catch (error) {
      for (const { fail } of group) fail(error);
    }
  }
}

import { hash } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { Soon } from "../runtime/soon.ts";

type Kept<Answer> = { answer: Soon<Answer>; readonly untilMs: number };

type CheckedOptions<Answer> = {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** How many answers are remembered. */
  readonly max: number;
  /** Answers for others are not remembered: they would push out good ones. */
  readonly isGood: (answer: Answer) => boolean;
};

/**
 * Remembers answers about secrets that were shown, such as headers with a token that was verified, so that a caller's
 * secret is not judged again for each call. Whoever gets an answer looks whether it has expired meanwhile.
 */
export class CheckedTokens<Answer> {
  readonly #kept = new Map<string, Kept<Answer>>();
  readonly #options: CheckedOptions<Answer>;

  constructor(options: CheckedOptions<Answer>) {
    this.#options = options;
  }

  /** The answer that these secrets got before. Undefined: it is not remembered. */
  find(shown: readonly string[]): Soon<Answer> | undefined {
    if (shown.length === 0) return undefined;
    const kept = this.#kept.get(keyOf(shown));
    return kept !== undefined && kept.untilMs > this.#options.clock.monotonicMs() ? kept.answer : undefined;
  }

  /** Judges secrets. One that is withdrawn then is taken for at most `keptMs`. */
  check(shown: readonly string[], keptMs: number, judge: () => Promise<Answer>): Promise<Answer> {
    const { clock, isGood } = this.#options;
    const key = keyOf(shown);
    const answer = judge();
    const kept: Kept<Answer> = { answer, untilMs: clock.monotonicMs() + keptMs };
    this.#keep(key, kept);
    const forget = () => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key);
    };
    answer.then((known) => {
      kept.answer = known;
      if (!isGood(known)) forget();
    }, forget);
    return answer;
  }

  /** These secrets are judged again when they are shown next. */
  forget(shown: readonly string[]): void {
    this.#kept.delete(keyOf(shown));
  }

  /** Forgets the answer that was kept first once there are too many. */
  #keep(key: string, kept: Kept<Answer>): void {
    this.#kept.delete(key);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= this.#options.max && oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(key, kept);
  }
}

/** Secrets themselves are not kept. None has a line break. */
function keyOf(shown: readonly string[]): string {
  return hash("sha256", shown.join("\n"), "base64");
}

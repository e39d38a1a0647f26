import { hash } from "node:crypto";
import type { Authentication } from "../core/access/identity.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Soon } from "../runtime/soon.ts";

/** Each holds some hundred bytes. */
const TOKENS_MAX = 10_000;

type Kept = { answer: Soon<Authentication>; readonly untilMs: number };

/**
 * Remembers headers whose token was verified, so that a caller's token is neither read nor verified again for each
 * call. A token that expires meanwhile is refused by whoever looks at the identity's expiry. Refused tokens are not
 * remembered: they would push out good ones.
 */
export class CheckedTokens {
  readonly #kept = new Map<string, Kept>();
  readonly #clock: Pick<Clock, "monotonicMs">;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** The answer that these headers got before. Null: it is not remembered. */
  find(authorization: readonly string[]): Soon<Authentication> | null {
    if (authorization.length === 0) return null;
    const kept = this.#kept.get(keyOf(authorization));
    return kept !== undefined && kept.untilMs > this.#clock.monotonicMs() ? kept.answer : null;
  }

  /** Verifies the token of a header. One that is withdrawn then is taken for at most `keptMs`. */
  check(
    authorization: readonly string[],
    keptMs: number,
    verify: () => Promise<Authentication>,
  ): Promise<Authentication> {
    const key = keyOf(authorization);
    const answer = verify();
    const kept: Kept = { answer, untilMs: this.#clock.monotonicMs() + keptMs };
    this.#keep(key, kept);
    const forget = () => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key);
    };
    answer.then((known) => {
      kept.answer = known;
      if (known.kind === "refused") forget();
    }, forget);
    return answer;
  }

  /** Forgets the token that was kept first once there are too many. */
  #keep(key: string, kept: Kept): void {
    this.#kept.delete(key);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= TOKENS_MAX && oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(key, kept);
  }
}

/** Tokens themselves are not kept. No header has a line break. */
function keyOf(authorization: readonly string[]): string {
  return hash("sha256", authorization.join("\n"), "base64");
}

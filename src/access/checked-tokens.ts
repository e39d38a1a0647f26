import { createHash } from "node:crypto";
import type { Authentication } from "../core/access/identity.ts";
import type { Clock } from "../runtime/clock.ts";

/** Each holds some hundred bytes. */
const TOKENS_MAX = 10_000;

type Kept = { readonly answer: Promise<Authentication>; readonly untilMs: number };

/**
 * Remembers tokens that were verified, so that a caller's token is not verified again for each call. A token that
 * expires meanwhile is refused by whoever looks at the identity's expiry. Refused tokens are not remembered: they would
 * push out good ones.
 */
export class CheckedTokens {
  readonly #kept = new Map<string, Kept>();
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #keptMs: number;

  /** A token that was withdrawn is taken at most `keptMs` after it was last verified. */
  constructor(clock: Pick<Clock, "monotonicMs">, keptMs: number) {
    this.#clock = clock;
    this.#keptMs = keptMs;
  }

  async check(token: string, verify: () => Promise<Authentication>): Promise<Authentication> {
    const key = createHash("sha256").update(token).digest("base64");
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.untilMs > this.#clock.monotonicMs()) return kept.answer;
    const answer = verify();
    this.#keep(key, { answer, untilMs: this.#clock.monotonicMs() + this.#keptMs });
    const forget = () => {
      if (this.#kept.get(key)?.answer === answer) this.#kept.delete(key);
    };
    answer.then(({ kind }) => kind === "refused" && forget(), forget);
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

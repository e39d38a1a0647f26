/** Problems that are reported once they have shown again and again, at other times: a busy machine makes some up. */
import type { CostInput } from "./plan.ts";

export type Suspect = { readonly input: CostInput; readonly problem: string };

/** How often a problem must show, the first time included. */
const SHOWN_MIN = 3;

type Waiting = Suspect & { readonly kind: string; readonly shown: number };

export class Suspects {
  #waiting: readonly Waiting[] = [];
  readonly #kinds = new Set<string>();
  /** How many did not show again. */
  gone = 0;

  get waiting(): number {
    return this.#waiting.length;
  }

  add(suspect: Suspect): void {
    const kind = kindOf(suspect);
    if (this.#kinds.has(kind)) return;
    this.#kinds.add(kind);
    this.#waiting = [...this.#waiting, { ...suspect, kind, shown: 1 }];
  }

  /** Measures each input that waits once more. Returns those problems that have shown often enough. */
  async replay(problemsOf: (input: CostInput) => Promise<readonly string[]>): Promise<readonly Suspect[]> {
    const waiting: Waiting[] = [];
    const sure: Suspect[] = [];
    for (const { input, kind, shown } of this.#waiting) {
      const problem = (await problemsOf(input)).find((again) => kindOf({ input, problem: again }) === kind);
      if (problem === undefined) {
        this.gone += 1;
        this.#kinds.delete(kind);
      } else if (shown + 1 < SHOWN_MIN) waiting.push({ input, problem, kind, shown: shown + 1 });
      else sure.push({ input, problem });
    }
    this.#waiting = waiting;
    return sure;
  }
}

/** Sizes and contents vary; one finding for each place is enough. */
export function kindOf({ input: { what }, problem }: Suspect): string {
  return `${what.replaceAll(/ × \d+ of "(\\.|[^"])*"/g, "")} ${problem.replaceAll(/-?[\d.]+/g, "")}`;
}

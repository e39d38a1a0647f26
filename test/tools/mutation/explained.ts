/**
 * Changes that no test can notice, with the reason. `run.ts` leaves them out of the score, and `mutate.test.ts` checks
 * that the code still has each line.
 */
import { readFileSync } from "node:fs";

type Explained = {
  /** The beginning of the line where the change begins. */
  readonly line: string;
  /** What the changed part of it becomes. */
  readonly becomes: readonly string[];
  readonly why: string;
};

const DEFAULT_TEXT = '"Stryker was here!"';
const SAVES_TIME = "The result is the same; the line saves time.";

/** By file, as a path below `src`. */
export const EXPLAINED: Readonly<Record<string, readonly Explained[]>> = {
  "core/plan/capacity/place-all.ts": [
    { line: "const leaders = groups.slice(1, 1 + LEADERS_MAX);", becomes: ["groups"], why: SAVES_TIME },
    { line: "if (this.#dead.has(key)) return false;", becomes: ["false"], why: SAVES_TIME },
    { line: "this.#dead.add(key);", becomes: [";"], why: SAVES_TIME },
  ],
  "core/plan/assign/grow.ts": [
    { line: "let [least, most] = [1, tooMany - 1];", becomes: ["tooMany + 1"], why: SAVES_TIME },
    {
      line: 'const cluster = fleet.clusters.get(live?.cluster ?? "");',
      becomes: [DEFAULT_TEXT],
      why: "No cluster has either name.",
    },
  ],
  "core/plan/explain/holders.ts": [
    { line: "if (known !== undefined) return known;", becomes: ["false"], why: SAVES_TIME },
    { line: "this.#largest.set(key, names);", becomes: [";"], why: SAVES_TIME },
  ],
  "core/plan/apply/missed-admissions.ts": [
    {
      line: "if (queue !== null) this.#strictQueues.add(queue);",
      becomes: ["true"],
      why: "The set is never asked for null.",
    },
    {
      line: 'return this.#strictQueues.has(chainOf(gang) ?? "");',
      becomes: [DEFAULT_TEXT],
      why: "No queue has either name.",
    },
  ],
};

type Change = { readonly file: string; readonly startLine: number; readonly replacement: string };

/** True for a change that no test can notice. */
export function isExplained({ file, startLine, replacement }: Change): boolean {
  const own = (EXPLAINED[file] ?? []).filter(({ becomes }) => becomes.includes(plain(replacement)));
  if (own.length === 0) return false;
  const line = plain(readFileSync(`src/${file}`, "utf8").split("\n")[startLine - 1] ?? "");
  return own.some((one) => line.startsWith(one.line));
}

/** Code on one line, with single spaces. */
function plain(code: string): string {
  return code.replace(/\s+/g, " ").trim();
}

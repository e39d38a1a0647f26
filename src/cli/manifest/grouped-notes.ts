/** Notes about the documents of a command line: those that many documents share are one line. */
import { getOrCreate } from "../../runtime/get-or-create.ts";

const WHERE = /^(.+?, document \d+(?:, item \d+)?): /s;

/** Collects lines such as `a.yaml, document 1: spec.queue: is ignored`. Prints them when it is disposed. */
export class GroupedNotes implements Disposable {
  readonly #print: (text: string) => void;
  readonly #word: "warning" | "note";
  /** The places of each text, in the order of their first lines. */
  readonly #places = new Map<string, string[]>();

  constructor(print: (text: string) => void, word: "warning" | "note" = "warning") {
    this.#print = print;
    this.#word = word;
  }

  add(line: string): void {
    const [head = "", where = ""] = WHERE.exec(line) ?? [];
    const text = line.slice(head.length);
    getOrCreate(this.#places, text, () => []).push(where);
  }

  [Symbol.dispose](): void {
    for (const line of this.#lines()) this.#print(`${this.#word}: ${line}\n`);
  }

  /** One line for each text. One that several documents have names the first of them. */
  #lines(): readonly string[] {
    return [...this.#places].map(([text, [first = "", ...others]]) => {
      if (first === "") return text;
      return `${first}${others.length === 0 ? "" : ` and ${others.length} more`}: ${text}`;
    });
  }
}

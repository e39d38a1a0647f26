/** Replaces `node:test` where mutants share a process: collects the tests of a file instead of running them. */

type Body = (context: TestContext) => unknown;
type TestContext = { readonly skip: () => void; readonly diagnostic: () => void };

export type CollectedTest = { readonly id: string; readonly file: string; readonly run: () => Promise<void> };

const CONTEXT: TestContext = { skip: () => {}, diagnostic: () => {} };

class Collection {
  readonly tests: CollectedTest[] = [];
  readonly #suites: string[] = [];
  readonly #cleanUps: (() => unknown)[] = [];
  #file = "";

  /** Loads a test file, whose tests are added under its name. */
  async load(file: string, url: string): Promise<void> {
    this.#file = file;
    await import(url);
  }

  add(name: string, body: Body): void {
    const file = this.#file;
    const id = `${file} ${this.tests.length}: ${[...this.#suites, name].join(" > ")}`;
    const run = async () => void (await body(CONTEXT));
    this.tests.push({ id, file, run });
  }

  suite(name: string, body: () => void): void {
    this.#suites.push(name);
    body();
    this.#suites.pop();
  }

  atEnd(cleanUp: () => unknown): void {
    this.#cleanUps.push(cleanUp);
  }

  async cleanUp(): Promise<void> {
    for (const cleanUp of this.#cleanUps.splice(0)) await cleanUp();
  }
}

export const collected = new Collection();

/** `test(name, body)` or `test(name, options, body)`, as in `node:test`. */
export function test(name: string, ...rest: readonly unknown[]): void {
  collected.add(name, rest.at(-1) as Body);
}

export function describe(name: string, ...rest: readonly unknown[]): void {
  collected.suite(name, rest.at(-1) as () => void);
}

export function after(cleanUp: () => unknown): void {
  collected.atEnd(cleanUp);
}

/** Replaces `node:test` where mutants share a process: collects the tests of a file instead of running them. */

type Body = (context: TestContext) => unknown;
type TestContext = {
  readonly skip: () => void;
  readonly diagnostic: () => void;
  readonly after: (cleanUp: () => unknown) => void;
};

export type CollectedTest = { readonly id: string; readonly file: string; readonly run: () => Promise<void> };

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
    this.tests.push({ id, file, run: () => runOnce(body) });
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

/** Runs a test, and cleans up after it also if it fails. */
async function runOnce(body: Body): Promise<void> {
  const cleanUps: (() => unknown)[] = [];
  try {
    await body({ skip: () => {}, diagnostic: () => {}, after: (cleanUp) => void cleanUps.push(cleanUp) });
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
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

/** Runs files of tests, and says at the end which tests were still running when a file or the run was ended. */
import { relative } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { pathToFileURL } from "node:url";

export type FilesToRun = {
  /** Paths below the working directory, in the order in which they start. */
  readonly files: readonly string[];
  readonly filesAtOnce: number;
  readonly testNamePatterns: readonly string[];
  /** Limits of one test, one file, and the run. Each is ended with a failure. */
  readonly limits: { readonly testMs: number; readonly fileMs: number; readonly runMs: number };
  /** Beside the variables of this process. */
  readonly env: Readonly<Record<string, string>>;
};

export type FilesRun = {
  readonly passed: boolean;
  /** One line for each test that had started and not ended when its file was ended. */
  readonly interrupted: readonly string[];
  /** How long each file took, longest first. */
  readonly durations: readonly { readonly file: string; readonly ms: number }[];
};

/** Events as they happen, which the declarations of node:test do not know in full. */
type TestEvent = {
  readonly name: string;
  readonly testId: number;
  readonly parentId: number;
  /** Undefined: the event is about a whole file. */
  readonly entryFile?: string;
  readonly details?: { readonly duration_ms: number; readonly passed?: boolean };
};

/** Runs the files and prints their results. `end` ends the run early; its reason is an error. */
export async function runFiles(
  { files, filesAtOnce, testNamePatterns, limits, env }: FilesToRun,
  end: AbortSignal,
): Promise<FilesRun> {
  const stream = run({
    files: [...files],
    concurrency: filesAtOnce,
    timeout: limits.testMs,
    signal: AbortSignal.any([end, AbortSignal.timeout(limits.runMs)]),
    testNamePatterns: [...testNamePatterns],
    execArgv: ["--import", pathToFileURL(`${import.meta.dirname}/file-limit.ts`).href],
    env: { ...process.env, ...env, GANGWAY_TEST_FILE_MS_MAX: String(limits.fileMs) },
  });
  const progress = new Progress();
  // Only these two events come when they happen. Others wait until the files before theirs have ended.
  stream.on("test:dequeue", (event) => progress.started(event as unknown as TestEvent));
  stream.on("test:complete", (event) => progress.ended(event as unknown as TestEvent));
  for await (const text of stream.compose(spec)) process.stdout.write(text);
  return progress.result();
}

/** Follows the events of a run. */
export class Progress {
  /** The tests that run, by file, then by the file's number of the test. */
  readonly #running = new Map<string, Map<number, TestEvent>>();
  readonly #interrupted: string[] = [];
  readonly #durations: { file: string; ms: number }[] = [];
  #passed = true;

  started(event: TestEvent): void {
    if (event.entryFile !== undefined) this.#of(event.entryFile).set(event.testId, event);
  }

  ended(event: TestEvent): void {
    if (event.entryFile !== undefined) return void this.#of(event.entryFile).delete(event.testId);
    const { duration_ms: ms = 0, passed = false } = event.details ?? {};
    this.#durations.push({ file: event.name, ms });
    this.#passed &&= passed;
  }

  result(): FilesRun {
    for (const [file, tests] of this.#running) this.#interrupted.push(...this.#leaves(file, tests));
    return {
      passed: this.#passed,
      interrupted: this.#interrupted,
      durations: this.#durations.toSorted((a, b) => b.ms - a.ms),
    };
  }

  #of(path: string): Map<number, TestEvent> {
    const file = relative(process.cwd(), path);
    const tests = this.#running.get(file) ?? new Map<number, TestEvent>();
    this.#running.set(file, tests);
    return tests;
  }

  /** The tests without those whose parts run: their parts tell more. */
  *#leaves(file: string, tests: ReadonlyMap<number, TestEvent>): Generator<string> {
    const parents = new Set([...tests.values()].map(({ parentId }) => parentId));
    for (const [id, test] of tests) if (!parents.has(id)) yield `${file}: ${pathOf(test, tests)}`;
  }
}

function pathOf(test: TestEvent, tests: ReadonlyMap<number, TestEvent>): string {
  const parent = tests.get(test.parentId);
  return parent === undefined ? test.name : `${pathOf(parent, tests)} > ${test.name}`;
}

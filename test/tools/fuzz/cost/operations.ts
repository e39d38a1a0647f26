/**
 * Counts what the code of this process does, without a clock: how often each block of it runs, and how much each loop
 * inside a function of the language reads. The same call counts the same on any machine.
 */
import { type InspectorNotification, type Profiler, Session } from "node:inspector";

/** Code whose work is counted: the service's own, and what it hands requests to. */
const COUNTED = /\/(src|node_modules\/(@bufbuild|@grpc|yaml|pg))\//;

let nativeWork = 0;

/** Counts blocks between `start` and `stop`. One at a time in a process. */
export class OperationsCounter {
  readonly #session = new Session();
  readonly #counted: RegExp;

  /** `counted`: matches the URLs of the code whose blocks are counted. */
  constructor(counted: RegExp = COUNTED) {
    this.#counted = counted;
    this.#session.connect();
    countNativeLoops();
    this.#post("Profiler.enable");
    // For as long as it counts anything: code that was compiled meanwhile without counters would never count.
    this.#post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Counts what `run` does until it resolves. */
  async count(run: () => Promise<unknown>): Promise<number> {
    this.#blocks();
    const before = nativeWork;
    await run();
    return Math.round(nativeWork - before) + this.#blocks();
  }

  close(): void {
    this.#session.disconnect();
  }

  /** How often blocks ran since the last call. */
  #blocks(): number {
    const { result } = this.#post("Profiler.takePreciseCoverage") as Profiler.TakePreciseCoverageReturnType;
    return result
      .filter(({ url }) => this.#counted.test(url))
      .flatMap(({ functions }) => functions)
      .flatMap(({ ranges }) => ranges)
      .reduce((sum, { count }) => sum + count, 0);
  }

  /** Answers of the inspector come before `post` returns. */
  #post(method: string, params: object = {}): object {
    let answered: object = {};
    let failed: Error | null = null;
    this.#session.post(method, params as InspectorNotification<object>["params"], (error, result) => {
      failed = error;
      answered = result ?? {};
    });
    if (failed !== null) throw failed;
    return answered;
  }
}

type Counted = (this: unknown, args: readonly unknown[], result: unknown) => number;

/** Adds what a function of the language reads to the count, each time that it is called. */
function wrap(holder: object, name: PropertyKey, work: Counted): void {
  const native = Reflect.get(holder, name) as (...args: unknown[]) => unknown;
  const wrapped = function (this: unknown, ...args: unknown[]): unknown {
    const result = native.apply(this, args);
    nativeWork += work.call(this, args, result);
    return result;
  };
  Object.defineProperty(holder, name, { value: wrapped, configurable: true, writable: true });
}

const lengthOf = (value: unknown): number => (value as { readonly length?: number } | null)?.length ?? 0;
/** A step of a loop inside the engine is much cheaper than a block of code. */
const PER_STEP = 1 / 16;
const ofThis: Counted = function () {
  return lengthOf(this) * PER_STEP;
};
const ofResult: Counted = (_, result) => lengthOf(result) * PER_STEP;
/** Up to where it was found, or to the end. */
const untilFound: Counted = function (_, result) {
  const at = typeof result === "number" ? result : -1;
  return (at < 0 ? lengthOf(this) : at) * PER_STEP;
};

let wrapped = false;

function countNativeLoops(): void {
  if (wrapped) return;
  wrapped = true;
  const array = Array.prototype;
  for (const name of ["includes", "slice", "splice", "shift", "unshift", "reverse", "fill"] as const)
    wrap(array, name, ofThis);
  for (const name of ["concat", "flat", "join", "toSorted", "toSpliced"] as const) wrap(array, name, ofResult);
  for (const name of ["indexOf", "lastIndexOf"] as const) wrap(array, name, untilFound);
  const text = String.prototype;
  for (const name of ["split", "replace", "replaceAll", "trim", "toLowerCase", "toUpperCase", "normalize"] as const)
    wrap(text, name, ofThis);
  for (const name of ["indexOf", "lastIndexOf"] as const) wrap(text, name, untilFound);
  wrap(text, "includes", ofThis);
  wrap(JSON, "stringify", ofResult);
  wrap(JSON, "parse", ([source]) => lengthOf(source) * PER_STEP);
  wrap(RegExp.prototype, "exec", readBy);
  wrap(Buffer, "concat", ofResult);
}

/**
 * A pattern reads at least up to the end of what it found, or all that was left. A sticky one is tried at one place
 * alone: `split` tries it at each character.
 */
function readBy(this: unknown, [text]: readonly unknown[], result: unknown): number {
  const found = result as RegExpExecArray | null;
  if (found !== null) return (lengthOf(found[0]) + 1) * PER_STEP;
  return ((this as RegExp).sticky ? 1 : lengthOf(text)) * PER_STEP;
}

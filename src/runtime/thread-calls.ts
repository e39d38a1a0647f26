import type { MessagePort, Worker } from "node:worker_threads";

type Call = { readonly id: number; readonly name: string; readonly given: readonly unknown[] };
type Answer = { readonly id: number } & ({ readonly result: unknown } | { readonly error: ThrownError });
/** Structured clones of errors lose their class: its name says which it was. */
type ThrownError = { readonly name: string; readonly message: string; readonly stack: string | undefined };

type Pending = { readonly resolve: (result: never) => void; readonly reject: (error: unknown) => void };

/** Calls functions in a worker thread. They take and return what structured clones can hold. */
export class ThreadCalls {
  readonly #worker: Worker;
  readonly #classes: ReadonlyMap<string, new (message: string) => Error>;
  readonly #pending = new Map<number, Pending>();
  #calls = 0;

  /** `classes`: the classes of errors that keep their class when a function of the thread throws them. */
  constructor(worker: Worker, classes: readonly (new (message: string) => Error)[]) {
    this.#worker = worker;
    this.#classes = new Map(classes.map((one) => [one.name, one]));
    worker.on("message", (answer: Answer) => this.#settle(answer));
    worker.on("error", (error) => this.fail(error));
    worker.on("exit", (code) => this.fail(new Error(`the thread ended with status ${code}`)));
  }

  /** Returns the function's result, or throws its error. Throws too if the thread ends before it answers. */
  call<Result>(name: string, ...given: readonly unknown[]): Promise<Result> {
    this.#calls += 1;
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#pending.set(this.#calls, { resolve, reject });
    this.#worker.postMessage({ id: this.#calls, name, given } satisfies Call);
    return promise;
  }

  /** Ends every call that has no answer yet with an error. */
  fail(error: unknown): void {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  #settle(answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if ("error" in answer) pending?.reject(this.#errorOf(answer.error));
    else pending?.resolve(answer.result as never);
  }

  #errorOf({ name, message, stack }: ThrownError): Error {
    const error = new (this.#classes.get(name) ?? Error)(message);
    if (stack !== undefined) error.stack = stack;
    return error;
  }
}

/** Answers the calls that come through the port of a thread. */
export function answerCalls(
  port: MessagePort,
  functions: Readonly<Record<string, (...given: never[]) => Promise<unknown>>>,
): void {
  port.on("message", ({ id, name, given }: Call) => {
    const run = async () => await functions[name]?.(...(given as never[]));
    run().then(
      (result) => port.postMessage({ id, result } satisfies Answer),
      (error: unknown) => port.postMessage({ id, error: thrown(error) } satisfies Answer),
    );
  });
}

function thrown(error: unknown): ThrownError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error), stack: undefined };
  return { name: error.constructor.name, message: error.message, stack: error.stack };
}

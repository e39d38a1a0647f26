/**
 * What is known of the call that the running code serves. It follows the code through promises and timers, as a trace
 * does, so that the record of a change can name its call however deep the change is made.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export type ServedCall = {
  /** The caller's name. */
  readonly subject: string;
  /** How the caller was known. */
  readonly method: string;
  /** ADDRESS:PORT of the other end of the connection. */
  readonly peer: string;
  /** `package.Service/Method`. */
  readonly rpc: string;
  readonly requestId: string;
};

const calls = new AsyncLocalStorage<ServedCall | null>();

/** Runs a function, and all that it starts, for a call. */
export function serving<T>(call: ServedCall, run: () => T): T {
  return calls.run(call, run);
}

/** Null: the code runs for no call. */
export function servedCall(): ServedCall | null {
  return calls.getStore() ?? null;
}

/** Runs a function, and all that it starts, for no call: what several calls share is the work of none of them. */
export function servingNone<T>(run: () => T): T {
  return calls.run(null, run);
}

/** The key under which what the running code asks for waits: its caller's name. Empty: the service itself. */
export function waitingKey(): string {
  return servedCall()?.subject ?? "";
}

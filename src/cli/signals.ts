import type { TakenSignal } from "./deps.ts";

/** The part of a process that gets signals. */
export type SignalledProcess = Pick<NodeJS.Process, "on" | "removeListener" | "exit"> & {
  readonly stdin: { readonly isTTY?: boolean };
};

export type Signals = {
  /** Aborted by the first Ctrl-C or request to stop. The second one ends the process at once. */
  readonly interrupted: AbortSignal;
  /** As in `CliDeps`. */
  readonly takeSignals: (listener: (signal: TakenSignal) => void) => () => void;
  /**
   * Gives signals their default effect, which ends this process at once, also while it computes. Call the returned
   * function to listen again.
   */
  readonly endAtOnce: () => () => void;
};

/** The terminal and npm both send an interruption: one Ctrl-C may come twice within this time. */
const SAME_INTERRUPTION_MS = 500;
const INTERRUPTIONS = ["SIGINT", "SIGTERM"] as const;
/** Signals that have their default effect unless a listener takes them. */
const OTHERS = ["SIGHUP", "SIGQUIT", "SIGUSR2"] as const;
const FROM_TERMINAL: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];

/** Listens to the signals that ask this process to stop. */
export function listenToSignals(process: SignalledProcess): Signals {
  const controller = new AbortController();
  let taker: ((signal: TakenSignal) => void) | null = null;
  let firstMs = 0;
  const take = (name: NodeJS.Signals) => {
    taker?.({ name, fromTerminal: process.stdin.isTTY === true && FROM_TERMINAL.includes(name) });
  };
  const interrupt = (name: NodeJS.Signals) => {
    if (taker !== null) return take(name);
    if (!controller.signal.aborted) firstMs = performance.now();
    else if (performance.now() - firstMs > SAME_INTERRUPTION_MS) process.exit(130);
    controller.abort();
  };
  const listen = () => {
    for (const name of INTERRUPTIONS) process.on(name, interrupt);
  };
  listen();
  return {
    interrupted: controller.signal,
    endAtOnce: () => {
      for (const name of INTERRUPTIONS) process.removeListener(name, interrupt);
      return listen;
    },
    takeSignals: (listener) => {
      taker = listener;
      for (const name of OTHERS) process.on(name, take);
      return () => {
        taker = null;
        for (const name of OTHERS) process.removeListener(name, take);
      };
    },
  };
}

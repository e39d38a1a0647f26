import type { TakenSignal } from "./deps.ts";

/** The part of a process that gets signals. */
export type SignalledProcess = Pick<NodeJS.Process, "on" | "removeListener" | "exit"> & {
  readonly stdin: { readonly isTTY?: boolean };
};

export type Signals = {
  /**
   * Aborted by the first Ctrl-C or request to stop after `listen`. The second one ends the process at once. Until then
   * they have their default effect, which ends the process at once, also while it loads or computes.
   */
  readonly interrupted: AbortSignal;
  readonly listen: () => void;
  /** As in `CliDeps`. */
  readonly takeSignals: (listener: (signal: TakenSignal) => void) => () => void;
};

/** The terminal and npm both send an interruption: one Ctrl-C may come twice within this time. */
const SAME_INTERRUPTION_MS = 500;
const INTERRUPTIONS = ["SIGINT", "SIGTERM"] as const;
/** Signals that have their default effect unless a listener takes them. */
const OTHERS = ["SIGHUP", "SIGQUIT", "SIGUSR2"] as const;
const FROM_TERMINAL: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];

/** The signals that ask this process to stop. */
export function signalsOf(process: SignalledProcess): Signals {
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
  return {
    interrupted: controller.signal,
    listen: () => {
      for (const name of INTERRUPTIONS) process.on(name, interrupt);
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

import type { Clock } from "../runtime/clock.ts";

/** What `gangway up` was asked for; what is null has the service's own default. */
export type UpOptions = {
  /** Ends by itself once the examples have ended. */
  readonly exit: boolean;
  readonly examples: boolean;
  readonly listen: string | null;
  readonly data: string | null;
  /** Listens where other machines reach it, although there is no encryption and no authentication. */
  readonly insecure: boolean;
};

/** What a folder or a file is to the command line. */
export type PathEntry = { readonly kind: "file" } | { readonly kind: "directory"; readonly names: readonly string[] };

/** Where the command line reads and writes. */
export type CliIo = {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly readStdin: () => Promise<string>;
  readonly readFile: (path: string) => Promise<string>;
  /** Null where there is nothing. */
  readonly lookUp: (path: string) => Promise<PathEntry | null>;
  /** Whether stdout is a terminal, how wide it is, and whether it shows colours. */
  readonly isTty: boolean;
  readonly columns: number;
  readonly color: boolean;
};

/** Everything that the command line takes from the world. */
export type CliDeps = CliIo & {
  readonly clock: Clock;
  /** The service's address as the environment gives it; the option --address goes first. */
  readonly address: string | undefined;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
  /** Runs the service; resolves with the exit status. */
  readonly up: (options: UpOptions) => Promise<number>;
};

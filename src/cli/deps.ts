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

/** What came of `gangway migrate`. */
export type MigrateOutcome =
  /** The migrations that were run; none where the schema was current. */
  | { readonly kind: "migrated"; readonly ran: readonly string[] }
  /** Without DATABASE_URL there is nothing to migrate: the embedded database migrates itself. */
  | { readonly kind: "notConfigured" }
  | { readonly kind: "refused" | "unavailable"; readonly message: string };

export const ROLES = ["api", "planner", "worker"] as const;
export type Role = (typeof ROLES)[number];

/** What `gangway serve` was asked for; what is null has the service's own default. */
export type ServeOptions = {
  readonly roles: readonly Role[];
  readonly listen: string | null;
  /** Listens where other machines reach it, although there is no encryption and no authentication. */
  readonly insecure: boolean;
};

/** What a folder or a file is to the command line. */
export type PathEntry = { readonly kind: "file" } | { readonly kind: "directory"; readonly names: readonly string[] };

/** A program that runs on the command line's own standard streams. */
export type Program = {
  /** Its exit status as shells give it: 128 and the signal's number where a signal ended it, 127: not found, 126: does not start. */
  readonly ended: Promise<number>;
  /** Does nothing once it has ended. */
  readonly signal: (name: NodeJS.Signals) => void;
};

/** A signal that this process got. */
export type TakenSignal = {
  readonly name: NodeJS.Signals;
  /** A terminal sends it to the programs that were started, too. */
  readonly fromTerminal: boolean;
};

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
  /** Of this program. */
  readonly version: string;
  /** The service's address as the environment gives it; the option --address goes first. */
  readonly address: string | undefined;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
  /** Starts a program, with these variables beside those of this process; `onFailure` hears why it does not start. */
  readonly startProgram: (
    argv: readonly string[],
    variables: Readonly<Record<string, string>>,
    onFailure: (why: string) => void,
  ) => Program;
  /** Gives `listener` every signal that would else interrupt this process, until the function that it returns is called. */
  readonly takeSignals: (listener: (signal: TakenSignal) => void) => () => void;
  /** Runs the service; resolves with the exit status. */
  readonly up: (options: UpOptions) => Promise<number>;
  /** Runs a process of the service; resolves with the exit status. */
  readonly serve: (options: ServeOptions) => Promise<number>;
  /** Brings the database's schema up to this program's. */
  readonly migrate: (options: { readonly offline: boolean }) => Promise<MigrateOutcome>;
};

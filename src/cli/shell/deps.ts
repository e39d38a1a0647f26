import type { Security } from "../../config/client-config.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { Clock } from "../../runtime/clock.ts";

/** The options of `gangway up`. Null: the service's default. */
export type UpOptions = {
  /** True: exits once the examples have ended. */
  readonly exit: boolean;
  readonly examples: boolean;
  readonly listen: string | null;
  readonly data: string | null;
  /** True: allows an address that other machines can reach, without encryption and authentication. */
  readonly insecure: boolean;
  /** True: simulates clusters also while real ones are registered. */
  readonly simulate: boolean;
};

/** The options of `gangway migrate`. */
export type MigrateRequest = {
  readonly offline: boolean;
  /** True: the database was restored from a back-up. */
  readonly restored: boolean;
  /** The folder of an embedded database that was restored. Null: the database at DATABASE_URL. */
  readonly data: string | null;
};

/** The result of `gangway migrate`. */
export type MigrationResult =
  /** `ran` lists the migrations; it is empty if the schema was current. */
  | { readonly kind: "migrated"; readonly ran: readonly string[] }
  /** DATABASE_URL is not set. The embedded database of `gangway up` migrates itself. */
  | { readonly kind: "notConfigured" }
  | { readonly kind: "refused" | "unavailable"; readonly message: string };

export const ROLES = ["api", "planner", "worker"] as const;
export type Role = (typeof ROLES)[number];

/** The options of `gangway serve`. Null: the service's default. */
export type ServeOptions = {
  readonly roles: readonly Role[];
  readonly listen: string | null;
  /** True: allows an address that other machines can reach, without encryption and authentication. */
  readonly insecure: boolean;
};

/** A file, or a directory with the names of its entries. */
export type PathEntry = { readonly kind: "file" } | { readonly kind: "directory"; readonly names: readonly string[] };

/** A program that runs on the command line's standard streams. */
export type ChildProgram = {
  /**
   * Its exit status, as a shell gives it: 128 plus the signal's number if a signal ended it, 127 if it was not found,
   * 126 if it could not be started.
   */
  readonly ended: Promise<number>;
  /** Sends a signal. Does nothing once the program has ended. */
  readonly signal: (name: NodeJS.Signals) => void;
};

/** A file that the user changes in an editor. */
export type TextEditor = {
  readonly path: string;
  /** Opens the editor on this text, and returns the text that was saved when it has ended. */
  readonly edit: (
    text: string,
  ) => Promise<{ readonly kind: "text"; readonly text: string } | { readonly kind: "failed"; readonly reason: string }>;
  /** Removes the file. */
  readonly remove: () => Promise<void>;
};

/** A signal that this process received. */
export type TakenSignal = {
  readonly name: NodeJS.Signals;
  /** True: the terminal has sent the signal to child programs too. */
  readonly fromTerminal: boolean;
};

/** How much is read of a file or of stdin, and until when. */
export type ReadLimit = { readonly bytesMax: number; readonly signal?: AbortSignal | undefined };

/** The streams and files that the command line reads and writes. */
export type CliIo = {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Both reject for text that is longer than `bytesMax`, and as soon as `signal` is aborted. */
  readonly readStdin: (limit: ReadLimit) => Promise<string>;
  readonly readFile: (path: string, limit: ReadLimit) => Promise<string>;
  /** Null: the path does not exist. */
  readonly lookUp: (path: string) => Promise<PathEntry | null>;
  /** Whether stdout is a terminal, its width and height, and whether it shows colours. */
  readonly isTty: boolean;
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
};

/** Everything that the command line takes from its process. */
export type CliDeps = CliIo & {
  /** Loads the kinds of jobs that manifests may name. */
  readonly kinds: () => Promise<Registry>;
  readonly clock: Clock;
  /** The version of this program. */
  readonly version: string;
  /** The service's addresses from the environment. The option --address overrides them, and they a context. */
  readonly address: string | undefined;
  /** The namespace from the environment, likewise. */
  readonly namespace: string | undefined;
  /** How the environment says to protect calls, likewise. */
  readonly security: Security;
  /** The file of the contexts. */
  readonly configFile: {
    readonly path: string;
    /** Null: there is no file. */
    readonly read: () => Promise<string | null>;
    readonly write: (text: string) => Promise<void>;
  };
  /** Aborted when the user interrupts the command after `listen`. */
  readonly signal: AbortSignal;
  /** Called by a command that ends by itself when it is interrupted. Until then, an interruption ends the process. */
  readonly listen: () => void;
  /** Writes a file that only its owner may read. */
  readonly writePrivateFile: (path: string, text: string) => Promise<void>;
  /** Does nothing if there is no such file. */
  readonly removeFile: (path: string) => Promise<void>;
  /**
   * Starts a program with these environment variables, in addition to those of this process. `onFailure` gets the
   * reason if the program cannot be started.
   */
  readonly startProgram: (
    argv: readonly string[],
    variables: Readonly<Record<string, string>>,
    onFailure: (reason: string) => void,
  ) => ChildProgram;
  /** Makes a file with this name for the user's editor. */
  readonly openEditor: (name: string) => Promise<TextEditor>;
  /**
   * Sends signals to `listener` instead of interrupting this process. Call the returned function to stop that.
   */
  readonly takeSignals: (listener: (signal: TakenSignal) => void) => () => void;
  /** Runs `gangway up`; resolves with the exit status. */
  readonly up: (options: UpOptions) => Promise<number>;
  /** Runs `gangway serve`; resolves with the exit status. */
  readonly serve: (options: ServeOptions) => Promise<number>;
  /** Migrates the database to the schema of this program. */
  readonly migrate: (options: MigrateRequest) => Promise<MigrationResult>;
};

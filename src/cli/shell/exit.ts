/** The exit statuses of the command line. */
export const EXIT = {
  ok: 0,
  /** The command waited for a job that failed or was cancelled. */
  jobFailed: 1,
  /** `can-run` judged a job that could never run. */
  neverRuns: 1,
  /** `can-i`: the caller lacks the permission. */
  denied: 1,
  usage: 2,
  /** The service or the command line refused the request. */
  refused: 3,
  unavailable: 4,
  /** The cluster is registered or updated, and a check of it found errors. */
  unusable: 5,
  /** A wait reached its --timeout. */
  timedOut: 124,
  interrupted: 130,
} as const;

/** Ends the command with this exit status, after printing these lines on stderr. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  readonly lines: readonly string[];

  constructor(exitCode: number, lines: readonly string[]) {
    super(lines[0] ?? `exit status ${exitCode}`);
    this.exitCode = exitCode;
    this.lines = lines;
  }
}

/** A wrong argument or a wrong combination of arguments: exit status 2. */
export function usageFailure(message: string): CommandFailure {
  return new CommandFailure(EXIT.usage, [`error: ${message}`]);
}

/** A wait reached its --timeout. `what`: what had not happened by then. `more`: further lines, such as what to do. */
export function timeoutFailure(what: string, more: readonly string[] = []): CommandFailure {
  return new CommandFailure(EXIT.timedOut, [`error: timed out: ${what}`, ...more]);
}

/** A service of this process that did not start, for a reason that a user understands. */
export function startFailure(error: Error): CommandFailure {
  return error instanceof CommandFailure ? error : new CommandFailure(EXIT.refused, [`error: ${error.message}`]);
}

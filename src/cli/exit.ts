/** What the exit status of the command line says. */
export const EXIT = {
  ok: 0,
  /** A job that was waited for failed or was cancelled. */
  jobFailed: 1,
  usage: 2,
  /** The service, or the command line itself, refused what was asked. */
  refused: 3,
  unavailable: 4,
  /** A wait took longer than its --timeout. */
  waitedTooLong: 124,
  interrupted: 130,
} as const;

/** Ends the command with this status after these lines have gone to stderr. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  readonly lines: readonly string[];

  constructor(exitCode: number, lines: readonly string[]) {
    super(lines[0] ?? `exit status ${exitCode}`);
    this.exitCode = exitCode;
    this.lines = lines;
  }
}

/** A command line that says something that cannot be meant. */
export function usageFailure(message: string): CommandFailure {
  return new CommandFailure(EXIT.usage, [`error: ${message}`]);
}

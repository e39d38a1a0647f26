/** Who has frozen a queue or a pool: nothing more of it is granted, and nothing is taken from who has it. */
export type Freeze = {
  /** The caller's name. */
  readonly by: string;
  readonly atMs: number;
  /** What the caller said. Empty: nothing. */
  readonly reason: string;
};

/** Who froze something, and why: ` by alice: maintenance`. */
export function freezeWords({ by, reason }: Pick<Freeze, "by" | "reason">): string {
  return ` by ${by}${reason === "" ? "" : `: ${reason}`}`;
}

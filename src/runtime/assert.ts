/** Marks a branch that the types exclude. Throws if it is reached. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}

/** Throws if a condition that the code guarantees does not hold: a bug, never bad input. */
export function invariant(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${what}`);
}

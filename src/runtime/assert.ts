/** Marks a branch that the types have ruled out; throws if a value got there all the same. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}

/** Throws when a condition that the code around it guarantees does not hold: a bug, never bad input. */
export function invariant(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${what}`);
}

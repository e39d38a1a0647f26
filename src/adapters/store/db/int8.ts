/** Reads a bigint as a number. Times, versions and amounts are at most 2^53-1; fences are selected as text instead. */
export function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new Error(`the database returned the bigint ${text}, which is beyond 2^53-1; select it as text`);
  return value;
}

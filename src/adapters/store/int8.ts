/** Times, versions and amounts are at most 2^53-1; fences, which are not, are selected as text. */
export function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`a bigint beyond 2^53-1 was read as a number: ${text}`);
  return value;
}

/** Formats a span in its two largest units: `42s`, `3m12s`, `5h7m`, `2d3h`. A negative span is `0s`. */
export function formatSpan(spanMs: number): string {
  const seconds = Math.max(0, Math.floor(spanMs / 1000));
  if (seconds < 60) return `${seconds}s`;
  const units: readonly (readonly [string, number])[] = [
    ["d", 86_400],
    ["h", 3600],
    ["m", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => seconds >= size);
  let left = seconds;
  const parts: string[] = [];
  for (const [name, size] of units.slice(first, first + 2)) {
    const count = Math.floor(left / size);
    if (count > 0) parts.push(`${count}${name}`);
    left -= count * size;
  }
  return parts.join("");
}

/** Formats a span that was set: one below a second in milliseconds, so that it does not look like none. */
export function formatSetSpan(spanMs: number): string {
  return spanMs > 0 && spanMs < 1000 ? `${spanMs}ms` : formatSpan(spanMs);
}

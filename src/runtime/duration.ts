const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SYNTAX = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/gy;

/** Returns the milliseconds of `90s`, `1h30m` or `500ms`; null for other text, such as a number without a unit. */
export function parseDurationMs(text: string): number | null {
  if (!SYNTAX.test(text)) return null;
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(PART)) totalMs += Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  return Math.round(totalMs);
}

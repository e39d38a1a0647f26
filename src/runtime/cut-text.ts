/** The text with at most so many characters. Halves of characters, which no database takes, are replaced. */
export function cutText(text: string, charsMax: number): string {
  const whole = text.toWellFormed();
  return whole.length <= charsMax ? whole : `${whole.slice(0, charsMax - 1).toWellFormed()}…`;
}

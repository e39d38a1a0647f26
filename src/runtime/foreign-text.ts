/**
 * The most bytes of one text of a cluster, a plugin or a user that a record, an event, an error or a log line takes
 * over: twice the longest message that a container can leave.
 */
export const FOREIGN_BYTES_MAX = 8_192;

const ENDING = "…";

/**
 * A text of others as it is recorded and shown: at most so many bytes. NUL and halves of characters, which no database
 * takes, are replaced. Gives its own results back unchanged.
 */
export function foreignText(text: string, bytesMax = FOREIGN_BYTES_MAX): string {
  if (text.length * BYTES_OF_A_UNIT <= bytesMax && text.isWellFormed() && !text.includes("\0")) return text;
  // More characters than bytes are never shown, so that a long text is not read to its end.
  const whole = text
    .slice(0, bytesMax + 1)
    .toWellFormed()
    .replaceAll("\0", "\ufffd");
  if (text.length <= bytesMax && Buffer.byteLength(whole) <= bytesMax) return whole;
  const bytes = Buffer.from(whole);
  let end = Math.min(bytes.length, bytesMax - ENDING_BYTES);
  while (end > 0 && isInsideCharacter(bytes[end])) end -= 1;
  return bytes.toString("utf8", 0, end) + ENDING;
}

/** A unit of UTF-16 has at most three bytes in UTF-8. */
const BYTES_OF_A_UNIT = 3;
const ENDING_BYTES = Buffer.byteLength(ENDING);

/** True for the bytes of UTF-8 that continue a character. */
function isInsideCharacter(byte = 0): boolean {
  return (byte & 0xc0) === 0x80;
}

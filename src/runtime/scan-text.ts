/** Reads texts of others in linear time, where a pattern would not. */

/** The text without these characters at its end. A pattern such as `/\/+$/` begins again at each of them. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}

/**
 * Splits a text at the commas that are outside brackets. A comma is inside if the next bracket after it closes.
 * Brackets do not nest.
 */
export function splitOutside(text: string, { open, close }: { readonly open: string; readonly close: string }) {
  const parts: string[] = [];
  let isInside = false;
  let end = text.length;
  for (let at = text.length - 1; at >= 0; at--) {
    const character = text[at];
    if (character === close) isInside = true;
    else if (character === open) isInside = false;
    else if (character === "," && !isInside) {
      parts.push(text.slice(at + 1, end));
      end = at;
    }
  }
  return [...parts, text.slice(0, end)].toReversed();
}

const BEGIN = "-----BEGIN CERTIFICATE-----";
const END = "-----END CERTIFICATE-----";

/** The certificates of a text in PEM, each from its first to its last line. One that is not closed lacks its end. */
export function certificatesIn(text: string): readonly string[] {
  const [, ...pieces] = text.split(BEGIN);
  return pieces.map((piece) => {
    const end = piece.indexOf(END);
    return `${BEGIN}${end < 0 ? piece : piece.slice(0, end) + END}`;
  });
}

/** True for a certificate of `certificatesIn` that has its end. */
export function isClosedCertificate(pem: string): boolean {
  return pem.endsWith(END);
}

/** How many characters a text has, as code points of Unicode. */
export function characters(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length; at += 1) {
    // A pair of surrogates is one character.
    if (isHighSurrogate(text.charCodeAt(at)) && isLowSurrogate(text.charCodeAt(at + 1))) count -= 1;
  }
  return count;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

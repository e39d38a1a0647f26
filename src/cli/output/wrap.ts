import { oneLine } from "./table.ts";

/**
 * Breaks text between words into lines of at most `width` characters. Lines after the first begin with `indent`. A word
 * that is longer than a line gets one of its own. Null: does not break.
 */
export function wrapText(text: string, { width, indent }: { readonly width: number | null; readonly indent: string }) {
  const lines: string[] = [];
  let line = "";
  for (const word of oneLine(text).split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line === "" || width === null || longer.length <= width) {
      line = longer;
      continue;
    }
    lines.push(line);
    line = indent + word;
  }
  return [...lines, line];
}

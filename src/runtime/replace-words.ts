import { getOrCreate } from "./get-or-create.ts";

/** A tree of texts by their characters. `end`: a text ends here. */
type Branch = { readonly next: Map<string, Branch>; end: boolean };

/**
 * Replaces each of these texts where it stands alone, in one pass: the time does not grow with their number. At one
 * place the longest of them counts.
 */
export function replaceWords(text: string, instead: ReadonlyMap<string, string>): string {
  if (instead.size === 0) return text;
  const root = treeOf(instead.keys());
  let shown = "";
  let from = 0;
  let at = 0;
  while (at < text.length) {
    const end = isInside(text, at) ? 0 : longestAt(root, text, at);
    if (end === 0) {
      at += 1;
      continue;
    }
    shown += text.slice(from, at) + instead.get(text.slice(at, end));
    at = end;
    from = end;
  }
  return shown + text.slice(from);
}

function treeOf(words: Iterable<string>): Branch {
  const root: Branch = { next: new Map(), end: false };
  for (const word of words) {
    let branch = root;
    for (let at = 0; at < word.length; at += 1) {
      const next = getOrCreate(branch.next, word.charAt(at), () => ({ next: new Map(), end: false }));
      branch = next;
    }
    branch.end = branch !== root;
  }
  return root;
}

/** Where the longest text that begins here ends. 0: none begins here. */
function longestAt(root: Branch, text: string, from: number): number {
  let branch: Branch | undefined = root;
  let longest = 0;
  for (let at = from; branch !== undefined; at += 1) {
    if (branch.end && !isInside(text, at)) longest = at;
    branch = at < text.length ? branch.next.get(text.charAt(at)) : undefined;
  }
  return longest;
}

const OF_A_NAME = /[\w/-]/;

/** True if a name goes on across this place. A full stop belongs to a name only if the name goes on after it. */
function isInside(text: string, at: number): boolean {
  const before = text.charAt(at - 1);
  const after = text.charAt(at) === "." ? text.charAt(at + 1) : text.charAt(at);
  return (OF_A_NAME.test(before) || before === ".") && OF_A_NAME.test(after);
}

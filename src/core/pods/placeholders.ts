/**
 * Finds the placeholders of a text, spelled as in Flyte: `{{ .Namespace }}` or `{{ $Namespace }}`, in any case, with
 * any spaces; `{{ .Inputs.NAME }}`, `{{ .Annotations.KEY }}`. A key is any text without spaces and `}`. Takes linear
 * time: a key is read once, also if many placeholders seem to begin in it.
 */

/** A placeholder, known or unknown, as written from `at` up to `end`. */
export type Placeholder = {
  readonly at: number;
  readonly end: number;
  readonly name: string;
  readonly key: string | undefined;
};

/** The end of a key, or of a name without one, and the end of the placeholder. Null: the text there closes none. */
type Tail = { readonly keyEnd: number; readonly end: number | null };

export function* placeholdersIn(text: string): Generator<Placeholder, void, undefined> {
  const head = /\{\{\s*[.$]([A-Za-z]+)/g;
  let tail: Tail = { keyEnd: 0, end: null };
  for (let found = head.exec(text); found !== null; found = head.exec(text)) {
    const nameEnd = head.lastIndex;
    // A name within a key that was read already has the rest of it as its own key.
    if (nameEnd >= tail.keyEnd) tail = tailAt(text, nameEnd);
    const { keyEnd, end } = tail;
    if (end === null) continue;
    const key = keyEnd === nameEnd ? undefined : keyOf(text.slice(nameEnd, keyEnd));
    if (key === "") continue;
    head.lastIndex = end;
    yield { at: found.index, end, name: found[1] ?? "", key };
  }
}

/** Empty: the text is not `.` and a key. */
function keyOf(text: string): string {
  return text.startsWith(".") ? text.slice(1) : "";
}

function tailAt(text: string, nameEnd: number): Tail {
  if (text[nameEnd] !== ".") return { keyEnd: nameEnd, end: closeAt(text, nameEnd) };
  const stop = /[}\s]/g;
  stop.lastIndex = nameEnd;
  const keyEnd = stop.exec(text)?.index ?? text.length;
  return { keyEnd, end: closeAt(text, keyEnd) };
}

/** The end of the closing braces that follow, after any spaces. Null: none follow. */
function closeAt(text: string, from: number): number | null {
  const close = /\s*\}\}/y;
  close.lastIndex = from;
  return close.test(text) ? close.lastIndex : null;
}

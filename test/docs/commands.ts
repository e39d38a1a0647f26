/** Splits the `sh` blocks of a page into the commands that a reader would run one after the other. */
import { blocksOf, type Page } from "./pages.ts";

export type Command = {
  readonly page: string;
  readonly line: number;
  /** As the page has it, without its comment. */
  readonly text: string;
  /** The exit status that the page promises in a comment `# exits with N`; 0 without one. */
  readonly status: number;
};

export function commandsOf(page: Page): readonly Command[] {
  return blocksOf(page)
    .filter(({ language }) => language === "sh")
    .flatMap(({ text, line }) => split(text).map((one) => ({ ...one, page: page.path, line: line + one.line })));
}

/** Lines that a quote, a backslash or a here-document continues belong to one command. */
function split(text: string): readonly Omit<Command, "page">[] {
  const commands: Omit<Command, "page">[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const first = at;
    let source = lines[at] ?? "";
    while (isOpen(source) && at + 1 < lines.length) {
      at += 1;
      source += `\n${lines[at]}`;
    }
    const { code, comment } = withoutComment(source);
    const status = Number(/\bexits with (\d+)\b/.exec(comment)?.[1] ?? 0);
    if (code !== "") commands.push({ line: first, text: code, status });
  }
  return commands;
}

/** True if the shell would read another line. */
function isOpen(source: string): boolean {
  const document = /<<'?(\w+)'?/.exec(source);
  if (document !== null)
    return !source
      .split("\n")
      .slice(1)
      .includes(document[1] ?? "");
  const { quote, code } = scan(source);
  return quote !== "" || /(^|[^\\])\\$/.test(code);
}

function withoutComment(source: string): { readonly code: string; readonly comment: string } {
  if (/<<'?\w+'?/.test(source)) return { code: source.trim(), comment: "" };
  const { code } = scan(source);
  return { code: code.trim(), comment: source.slice(code.length) };
}

/** The source up to a comment that ends it, and the quote that is open there. */
function scan(source: string): { readonly code: string; readonly quote: string } {
  let quote = "";
  for (let at = 0; at < source.length; at += 1) {
    const char = source[at] ?? "";
    if (quote === "" && char === "#" && (at === 0 || /\s/.test(source[at - 1] ?? "")))
      return { code: source.slice(0, at), quote };
    if (char === "\\" && quote !== "'") at += 1;
    else if (quote === "" && (char === "'" || char === '"')) quote = char;
    else if (char === quote) quote = "";
  }
  return { code: source, quote };
}

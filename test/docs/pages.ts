/** Reads the pages that users and contributors read: their code blocks, links and anchors. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));

export type Page = {
  /** Relative to the root of the project, with `/`. */
  readonly path: string;
  readonly text: string;
};

export type Block = {
  /** The first word after the fence: `sh`, `json`, `python`. Empty: none. */
  readonly language: string;
  readonly text: string;
  /** The line of the block's first line in its page, counted from 1. */
  readonly line: number;
};

/** Pages outside of docs/. */
const OTHER_PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "examples/README.md",
  "test/README.md",
  "src/core/life.md",
  "deploy/METRICS.md",
  "clients/python/README.md",
];

export function page(path: string): Page {
  return { path, text: readFileSync(join(root, path), "utf8") };
}

export function allPages(): readonly Page[] {
  const docs = readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .sort();
  return [...OTHER_PAGES, ...docs.map((name) => `docs/${name}`), ...ARCHITECTURE].map(page);
}

/** The pages for who changes the code: the map first. */
export const ARCHITECTURE = readdirSync(join(root, "docs/architecture"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .sort()
  .map((name) => `docs/architecture/${name}`);

/** A row of a table: its cells by the heads of their columns. */
export type Row = Readonly<Record<string, string>>;

/** The tables of a part of a page. Blank lines separate them. */
export function tablesOf(section: string): readonly (readonly Row[])[] {
  return section.split("\n\n").flatMap((block) => {
    const [head, , ...lines] = block.split("\n").filter((line) => line.startsWith("|"));
    if (head === undefined) return [];
    const names = cellsOf(head);
    const rows = lines.map((line) => {
      const cells = cellsOf(line);
      return Object.fromEntries(names.map((name, at) => [name, cells[at] ?? ""]));
    });
    return [rows];
  });
}

function cellsOf(line: string): readonly string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

const FENCE = /^( *)```(.*)$/;

/** The fenced blocks of a page, in its order. */
export function blocksOf({ text }: Page): readonly Block[] {
  const blocks: Block[] = [];
  let open: { readonly language: string; readonly line: number; readonly lines: string[] } | null = null;
  for (const [index, line] of text.split("\n").entries()) {
    const fence = FENCE.exec(line);
    if (fence === null) open?.lines.push(line);
    else if (open === null) open = { language: (fence[2] ?? "").split(" ")[0] ?? "", line: index + 2, lines: [] };
    else {
      blocks.push({ language: open.language, line: open.line, text: open.lines.join("\n") });
      open = null;
    }
  }
  return blocks;
}

/** The page's text without its fenced blocks; lines keep their numbers. */
export function proseOf({ text }: Page): string {
  let isCode = false;
  const lines = text.split("\n").map((line) => {
    const isFence = FENCE.test(line);
    if (isFence) isCode = !isCode;
    return isFence || isCode ? "" : line;
  });
  return lines.join("\n");
}

/** The texts between single backquotes, outside of fenced blocks. */
export function inlineCodeOf(of: Page): readonly string[] {
  return [...proseOf(of).matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code.replaceAll("\\|", "|"));
}

/** Anchors of the headings, as GitHub makes them. */
export function anchorsOf(of: Page): ReadonlySet<string> {
  const headings = [...proseOf(of).matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .trim()
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Targets of the links and images. */
export function linksOf(of: Page): readonly string[] {
  const prose = proseOf(of).replaceAll(/`[^`\n]*`/g, "code");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
}

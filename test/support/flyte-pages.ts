import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One exported name of Flyte: what stands for it here, what was done, and what was to be seen. */
export type FlyteName = readonly [name: string, here: string, done: () => unknown, seen: unknown];

/**
 * The exported names in the index of a page of Flyte's documentation, in its order. `GANGWAY_FLYTE_PAGES` names a
 * folder of such pages, as text. Null: there is none of that package.
 */
export function namesOfPage(packageWord: string): readonly string[] | null {
  const folder = process.env["GANGWAY_FLYTE_PAGES"];
  if (folder === undefined || !existsSync(folder)) return null;
  const file = readdirSync(folder).find((one) => one.includes(packageWord));
  if (file === undefined) return null;
  const text = readFileSync(join(folder, file), "utf8").replaceAll("Kozmo", "Flyte");
  const index = text.slice(text.indexOf("Index ¶"));
  return index
    .slice(0, index.indexOf("\nConstants ¶"))
    .split("\n")
    .flatMap((line) => {
      const [, of = "", method = ""] = /^- func \((?:\w+ )?\*?(\w+)\) (\w+)/.exec(line) ?? [];
      const [, name = ""] = /^- (?:func|type) (\w+)/.exec(line) ?? [];
      return method !== "" ? [`${of}.${method}`] : name !== "" ? [name] : [];
    });
}

/** True if a page of docs says why a name is not here. */
export function isExplained(page: string, name: string): boolean {
  return page.includes(`\`${name}`) || page.includes(`, \`${name}`);
}

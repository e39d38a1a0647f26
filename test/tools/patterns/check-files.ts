import { EXCEPTIONS } from "./exceptions.ts";
import { findPatterns, type Pattern } from "./find-patterns.ts";
import { judgePattern } from "./judge-pattern.ts";

export type ReadFile = { readonly path: string; readonly text: string };
export type PatternReport = {
  /** What is wrong, one line each: `src/x.ts:3: /a*a*$/ takes …`. */
  readonly problems: readonly string[];
  /** The patterns that were proved to be linear, as `/source/flags`, in order. */
  readonly proved: readonly string[];
};

/**
 * Checks every pattern of these files. A pattern of `known` was proved before. An exception that no file needs any more
 * is a problem too.
 */
export async function checkFiles(
  files: readonly ReadFile[],
  known: ReadonlySet<string>,
  exceptions: Readonly<Record<string, string>> = EXCEPTIONS,
): Promise<PatternReport> {
  const problems: string[] = [];
  const proved = new Set<string>();
  const excused = new Set<string>();
  for (const { path, text } of files) {
    const { patterns, unread } = findPatterns(text);
    for (const { line, code } of unread) {
      const made = `${path}: ${code}`;
      if (Object.hasOwn(exceptions, made)) {
        excused.add(made);
        continue;
      }
      problems.push(
        `${path}:${line}: ${code} makes a pattern of a text from elsewhere; write the pattern as a literal, ` +
          "or use compileLinear of runtime/linear-pattern",
      );
    }
    for (const pattern of patterns) {
      const spelled = spell(pattern);
      if (Object.hasOwn(exceptions, spelled)) excused.add(spelled);
      else if (known.has(spelled) || proved.has(spelled)) proved.add(spelled);
      else {
        const verdict = await judgePattern(pattern);
        if (verdict.kind === "linear") proved.add(spelled);
        else problems.push(`${path}:${pattern.line}: ${spelled} ${verdict.why}`);
      }
    }
  }
  const stale = Object.keys(exceptions).filter((one) => !excused.has(one));
  problems.push(...stale.map((one) => `test/tools/patterns/exceptions.ts: no file has ${one} any more`));
  return { problems, proved: [...proved].sort() };
}

function spell({ source, flags }: Omit<Pattern, "line">): string {
  return `/${source.replaceAll("\n", "\\n")}/${flags}`;
}

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Case, runCase } from "./case.ts";

export type CaseResult = {
  readonly suite: string;
  readonly id: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** The differences, or the reason why the case is skipped. */
  readonly details: readonly string[];
};

/** The reason why a case need not pass: Gangway differs on purpose. */
export type Differences = Readonly<Record<string, string>>;

export function readDifferences(): Differences {
  return JSON.parse(readFileSync(new URL("differences.json", import.meta.url), "utf8")) as Differences;
}

/** A case that is not run yet. */
export type SuiteCase = { readonly suite: string; readonly id: string; readonly run: () => Promise<CaseResult> };

/** The cases of every suite of a folder: each `.json` file that has a suite name and cases. */
export function readSuites(folder: string, differences: Differences): readonly SuiteCase[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(".json"));
  return files.sort().flatMap((file) => {
    const { suite = file, cases = [] } = JSON.parse(readFileSync(join(folder, file), "utf8")) as {
      suite?: string;
      cases?: Case[];
    };
    return cases.map((one) => ({ suite, id: one.id, run: () => runOne(suite, one, differences) }));
  });
}

export function runSuites(folder: string, differences: Differences): Promise<readonly CaseResult[]> {
  return Promise.all(readSuites(folder, differences).map(({ run }) => run()));
}

async function runOne(suite: string, one: Case, differences: Differences): Promise<CaseResult> {
  const declared = differences[one.id];
  if (declared !== undefined) return { suite, id: one.id, outcome: "skipped", details: [declared] };
  const details = await tried(one);
  return { suite, id: one.id, outcome: details.length === 0 ? "passed" : "failed", details };
}

async function tried(one: Case): Promise<readonly string[]> {
  try {
    return await runCase(one);
  } catch (error) {
    return [`threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  }
}

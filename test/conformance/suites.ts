import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Case, runCase } from "./case.ts";

export type CaseResult = {
  readonly suite: string;
  readonly id: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** What differed, or why the case is skipped. */
  readonly details: readonly string[];
};

/** Why a case is not expected to pass: we do it differently on purpose. */
export type Differences = Readonly<Record<string, string>>;

export function readDifferences(): Differences {
  return JSON.parse(readFileSync(new URL("differences.json", import.meta.url), "utf8")) as Differences;
}

/** Runs every suite of a folder: each `.json` file that has a suite name and cases. */
export async function runSuites(folder: string, differences: Differences): Promise<readonly CaseResult[]> {
  const files = readdirSync(folder).filter((file) => file.endsWith(".json"));
  const running = files.sort().flatMap((file) => {
    const { suite = file, cases = [] } = JSON.parse(readFileSync(join(folder, file), "utf8")) as {
      suite?: string;
      cases?: Case[];
    };
    return cases.map((one) => runOne(suite, one, differences));
  });
  return Promise.all(running);
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

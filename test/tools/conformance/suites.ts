import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stringAt } from "../../../src/runtime/json.ts";
import { type Case, runCase } from "./case.ts";

export type CaseResult = {
  readonly suite: string;
  readonly id: string;
  /** `declared`: Gangway differs on purpose. `unknown`: the runner has nothing to run the case on. */
  readonly outcome: "passed" | "failed" | "declared" | "unknown";
  /** The differences, the reason of a declared one, or the function that is not known. */
  readonly details: readonly string[];
};

/** The reasons why cases need not pass, by case id and by feature: Gangway differs on purpose. */
export type Differences = {
  readonly cases: Readonly<Record<string, string>>;
  readonly features: Readonly<Record<string, string>>;
};

export const NO_DIFFERENCES: Differences = { cases: {}, features: {} };

export function readDifferences(): Differences {
  return JSON.parse(readFileSync(new URL("differences.json", import.meta.url), "utf8")) as Differences;
}

/** A case that is not run yet. */
export type SuiteCase = { readonly suite: string; readonly id: string; readonly run: () => Promise<CaseResult> };

/** The cases of every suite of a folder: each `.json` file that has a suite name and cases. */
export function readSuites(folder: string, differences: Differences): readonly SuiteCase[] {
  const files = filesOf(folder).filter((file) => file.endsWith(".json"));
  return files.sort().flatMap((file) => {
    const { suite = file, cases = [] } = JSON.parse(readFileSync(join(folder, file), "utf8")) as {
      suite?: string;
      cases?: Case[];
    };
    return cases.map((one) => ({ suite, id: one.id, run: () => runOne(suite, one, differences) }));
  });
}

function filesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw new Error(`cannot read ${folder}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function runSuites(folder: string, differences: Differences): Promise<readonly CaseResult[]> {
  return Promise.all(readSuites(folder, differences).map(({ run }) => run()));
}

async function runOne(suite: string, one: Case, differences: Differences): Promise<CaseResult> {
  const { id } = one;
  const declared = declaredFor(one, differences);
  if (declared !== undefined) return { suite, id, outcome: "declared", details: [declared] };
  const details = await tried(one);
  if (details === null) return { suite, id, outcome: "unknown", details: [functionName(one)] };
  return { suite, id, outcome: details.length === 0 ? "passed" : "failed", details };
}

function declaredFor({ id, features = [] }: Case, differences: Differences): string | undefined {
  const feature = features.find((name) => Object.hasOwn(differences.features, name));
  return differences.cases[id] ?? (feature === undefined ? undefined : differences.features[feature]);
}

function functionName({ fn, input }: Case): string {
  const { manifest } = input;
  if (manifest !== undefined) return `kind ${stringAt(manifest, "apiVersion")} ${stringAt(manifest, "kind")}`;
  return fn ?? `operation ${JSON.stringify(input["op"] ?? null)}`;
}

async function tried(one: Case): Promise<readonly string[] | null> {
  try {
    return await runCase(one);
  } catch (error) {
    return [`threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  }
}

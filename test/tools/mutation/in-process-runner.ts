/**
 * A test runner for the mutation tool. It loads the tests of pure code once and then switches mutants on and off in
 * one process. The tool's own runner needs a process for each test file and mutant, which takes hours for `core`.
 */
import { globSync } from "node:fs";
import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { MutantCoverage, StrykerOptions } from "@stryker-mutator/api/core";
import type { Logger } from "@stryker-mutator/api/logging";
import { commonTokens, declareClassPlugin, PluginKind, tokens } from "@stryker-mutator/api/plugin";
import {
  type DryRunOptions,
  type DryRunResult,
  DryRunStatus,
  type MutantRunOptions,
  type MutantRunResult,
  MutantRunStatus,
  type TestResult,
  type TestRunner,
  TestStatus,
} from "@stryker-mutator/api/test-runner";
import fc from "fast-check";
import { type CollectedTest, collected } from "./collect-tests.ts";

/** What the mutated code reads and writes, under a name that the tool gives it. */
type Switch = {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  mutantCoverage?: MutantCoverage;
};

/** A property that finds nothing in this time counts as holding. Most finds need few runs, and each mutant runs all. */
const PROPERTY_MS_MAX = 250;

const COLLECTOR = new URL("collect-tests.ts", import.meta.url).href;

class InProcessRunner implements TestRunner {
  static readonly inject = tokens(commonTokens.options, commonTokens.logger);
  readonly #patterns: readonly string[];
  readonly #log: Logger;
  readonly #switch: Switch;
  #loaded = false;

  constructor(options: StrykerOptions, log: Logger) {
    this.#log = log;
    this.#patterns = (options as unknown as { readonly tap: { readonly testFiles: readonly string[] } }).tap.testFiles;
    const scope = globalThis as unknown as { __stryker__?: Switch };
    scope.__stryker__ ??= {};
    this.#switch = scope.__stryker__;
  }

  /** Code that runs while a file is loaded sees a mutant only in a new process, which the tool then starts. */
  capabilities() {
    return { reloadEnvironment: false };
  }

  async dryRun(_options: DryRunOptions): Promise<DryRunResult> {
    await this.#load();
    const tests: TestResult[] = [];
    for (const test of collected.tests) {
      this.#switch.currentTestId = test.id;
      const result = await resultOf(test);
      this.#switch.currentTestId = undefined;
      if (result.status !== TestStatus.Failed) tests.push(result);
      else this.#log.warn(`left out, because it fails without a mutant too: ${test.id}: ${result.failureMessage}`);
    }
    const { mutantCoverage } = this.#switch;
    return { status: DryRunStatus.Complete, tests, ...(mutantCoverage && { mutantCoverage }) };
  }

  async mutantRun({
    activeMutant,
    testFilter,
    hitLimit,
    mutantActivation,
  }: MutantRunOptions): Promise<MutantRunResult> {
    if (mutantActivation === "static") this.#switch.activeMutant = activeMutant.id;
    try {
      await this.#load();
    } catch (error) {
      return { status: MutantRunStatus.Killed, killedBy: [], failureMessage: String(error), nrOfTests: 0 };
    }
    this.#switch.activeMutant = activeMutant.id;
    this.#switch.hitLimit = hitLimit;
    this.#switch.hitCount = hitLimit === undefined ? undefined : 0;
    const result = await this.#firstFailure(testFilter);
    this.#switch.activeMutant = undefined;
    return result;
  }

  async dispose(): Promise<void> {
    await collected.cleanUp();
  }

  async #firstFailure(testFilter: readonly string[] | undefined): Promise<MutantRunResult> {
    const wanted = testFilter && new Set(testFilter);
    let nrOfTests = 0;
    for (const test of collected.tests) {
      if (wanted !== undefined && !wanted.has(test.id)) continue;
      nrOfTests += 1;
      const result = await resultOf(test);
      const { hitCount = 0, hitLimit = Number.POSITIVE_INFINITY } = this.#switch;
      if (hitCount > hitLimit) return { status: MutantRunStatus.Timeout, reason: "the mutated line ran too often" };
      if (result.status === TestStatus.Failed) {
        return {
          status: MutantRunStatus.Killed,
          killedBy: [test.id],
          failureMessage: result.failureMessage,
          nrOfTests,
        };
      }
    }
    return { status: MutantRunStatus.Survived, nrOfTests };
  }

  async #load(): Promise<void> {
    if (this.#loaded) return;
    this.#loaded = true;
    fc.configureGlobal({ interruptAfterTimeLimit: PROPERTY_MS_MAX, markInterruptAsFailure: false, endOnFailure: true });
    registerHooks({
      resolve: (specifier, context, next) =>
        specifier === "node:test" ? { url: COLLECTOR, shortCircuit: true } : next(specifier, context),
    });
    for (const file of globSync([...this.#patterns]).sort())
      await collected.load(file, pathToFileURL(resolve(file)).href);
  }
}

async function resultOf({ id, file, run }: CollectedTest): Promise<TestResult> {
  const begun = performance.now();
  const facts = { id, name: id, fileName: file };
  try {
    await run();
    return { ...facts, status: TestStatus.Success, timeSpentMs: performance.now() - begun };
  } catch (error) {
    const failureMessage = error instanceof Error ? error.message : String(error);
    return { ...facts, status: TestStatus.Failed, timeSpentMs: performance.now() - begun, failureMessage };
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, "in-process", InProcessRunner)];

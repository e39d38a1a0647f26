/** Measures a call of the command line against the start of Node itself. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { startFixture } from "../api/fixture.ts";

const BIN = join(import.meta.dirname, "../../bin/gangway");

/**
 * Runs each command line this often, in turns, and prints its times as ratios to those of `node -e 0`. The fastest run
 * tells most on a machine that does other work too.
 */
export async function benchCli({ runs }: { readonly runs: number }, print: (line: string) => void): Promise<void> {
  const ends: (() => unknown)[] = [];
  const cache = mkdtempSync(join(tmpdir(), "gangway-bench-"));
  try {
    const { api } = await startFixture({
      after: (end: () => unknown) => void ends.push(end),
    } as unknown as TestContext);
    const lines: Readonly<Record<string, readonly string[]>> = {
      "node -e 0": ["-e", "0"],
      "gangway --version": [BIN, "--version"],
      "gangway list": [BIN, "list", "--address", api.address],
    };
    const env = { ...process.env, XDG_CACHE_HOME: cache, GANGWAY_CONFIG: "" };
    const times = new Map<string, number[]>(Object.keys(lines).map((name) => [name, []]));
    // The first run of each fills the cache of compiled code.
    for (let run = 0; run <= runs; run++) {
      for (const [name, args] of Object.entries(lines)) {
        const ms = await millisecondsOf(args, env);
        if (run > 0) times.get(name)?.push(ms);
      }
    }
    const floor = times.get("node -e 0") ?? [];
    const shown = (of: (all: readonly number[]) => number, all: readonly number[]) =>
      `${of(all).toFixed(0).padStart(5)} ms  ratio ${(of(all) / of(floor)).toFixed(1)}`;
    for (const [name, all] of times) {
      print(`${name.padEnd(20)} median ${shown(median, all)}   fastest ${shown((of) => Math.min(...of), all)}`);
    }
  } finally {
    for (const end of ends.reverse()) await end();
    rmSync(cache, { recursive: true });
  }
}

function millisecondsOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { env }, (error) => {
      if (error) reject(error);
      else resolve(performance.now() - startMs);
    });
  });
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

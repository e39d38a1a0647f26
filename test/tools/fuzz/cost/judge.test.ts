/** Which costs are too much. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuProblem, growthProblem, latencyProblem, memoryProblem, operationsProblem } from "./judge.ts";

const MIB = 2 ** 20;
const cost = (cpuMs: number, mib = 0) => ({ cpuMs, memoryBytes: mib * MIB });
const counts = (...sizes: readonly (readonly [kib: number, operations: number])[]) =>
  sizes.map(([kib, operations]) => ({ bytes: kib * 1024, operations }));
const many = (count: number, tookMs: number) => Array.from({ length: count }, () => tookMs);

const cases: Readonly<Record<string, { readonly problem: string | null; readonly says: RegExp | null }>> = {
  "50 ms for a MiB": { problem: cpuProblem(cost(5), cost(55), MIB), says: null },
  "four steps of a MiB of pods": { problem: cpuProblem(cost(5), cost(205), MIB, 4), says: null },
  "half a second for a MiB": { problem: cpuProblem(cost(5), cost(500), MIB), says: /1.0 MiB cost 500.0 ms/ },
  "two seconds for 51 kB": { problem: cpuProblem(cost(5), cost(2000), 51_000), says: /49.8 KiB cost 2000.0 ms/ },
  "20 times its size": { problem: memoryProblem(cost(0, 100), cost(0, 120), MIB), says: null },
  "2.3 GB for 1.5 MB": { problem: memoryProblem(cost(0, 100), cost(0, 2400), 1.5 * MIB), says: /held 2300.0 MiB/ },
  "twice the time for twice the size": { problem: growthProblem(cost(1), cost(41), cost(81), MIB), says: null },
  "four times the time for twice the size": {
    problem: growthProblem(cost(1), cost(41), cost(161), MIB),
    says: /twice the size costs 160.0 ms in place of 40.0 ms/,
  },
  "a time too short to tell": { problem: growthProblem(cost(1), cost(2), cost(9), MIB), says: null },
  "others as late as beside refused calls": { problem: latencyProblem(many(200, 50), many(200, 140)), says: null },
  "others that wait": { problem: latencyProblem(many(200, 50), many(200, 400)), says: /p99 is 400.0 ms/ },
  "one late call of 200": { problem: latencyProblem(many(200, 50), [...many(199, 50), 5000]), says: null },
  "operations as its size": {
    problem: operationsProblem({ bytes: 100, operations: 4000 }, counts([25, 250e3], [50, 500e3], [100, 1e6])),
    says: null,
  },
  "operations that grow as the square": {
    problem: operationsProblem({ bytes: 100, operations: 4000 }, counts([25, 60e3], [50, 240e3], [100, 960e3])),
    says: /a byte of 100.0 KiB took 14.1 operations; one of 50.0 KiB took 7.0/,
  },
  "operations beyond its size": {
    problem: operationsProblem({ bytes: 100, operations: 4000 }, counts([10, 1e6])),
    says: /10.0 KiB took 1000000 operations; 248800 are allowed/,
  },
};

for (const [name, { problem, says }] of Object.entries(cases)) {
  test(`the judge on ${name}`, () => {
    if (says === null) assert.equal(problem, null);
    else assert.match(problem ?? "", says);
  });
}

/**
 * `npm run lost-scenario -- [--gangs N] [--nodes N] [--seed S] [--postgres URL]`: one of three real API servers is
 * killed for good, one is cut off for 40 s, one is slowed, and a worker is killed. Prints what was measured beside its
 * goal. Needs `npm run kube:build`, PostgreSQL and redis-server. A loaded machine makes all times longer.
 */
import { parseArgs } from "node:util";
import { maxOf } from "../../../src/runtime/lists.ts";
import { controlPlaneBuilt } from "../../kube/build.ts";
import { postgresServer } from "../../support/postgres.ts";
import { hasRedisServer } from "../../support/redis-server.ts";
import { type LostNumbers, type LostScenario, runLostScenario } from "./scenario.ts";

const { values } = parseArgs({
  options: {
    gangs: { type: "string", default: "300" },
    nodes: { type: "string", default: "40" },
    seed: { type: "string", default: "1" },
    postgres: { type: "string" },
  },
});
const postgres = values.postgres ?? (await postgresServer());
if (postgres === null) throw new Error("no PostgreSQL server answers: give --postgres URL");
if (!controlPlaneBuilt()) throw new Error("the control plane is not built: run npm run kube:build, which needs Go");
if (!hasRedisServer()) throw new Error("redis-server is not on the PATH");
const gangs = Number(values.gangs);
const scenario: LostScenario = {
  postgres,
  seed: Number(values.seed),
  nodes: Number(values.nodes),
  long: Math.floor(gangs / 3),
  short: Math.floor((gangs * 2) / 9),
  resumed: 50,
  blackHoleMs: 40_000,
  lostAfterSeconds: 60,
  moveAfterSeconds: 60,
  leaseSeconds: 10,
};

function p99(ms: readonly number[]): number {
  const sorted = ms.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * 0.99) - 1)] ?? 0;
}

function reportLines(found: LostNumbers): readonly string[] {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  const { lostAfterSeconds, leaseSeconds } = scenario;
  const [before, after, beside] = [found.createBeforeMs, found.createAfterMs, found.createBesideSlowMs].map(p99) as [
    number,
    number,
    number,
  ];
  const rows: readonly (readonly [string, string, string])[] = [
    ["seen as unreachable", seconds(found.unreachableMs), "at most 20 s"],
    [
      `from loss to running elsewhere, p99 of ${found.elsewhereMs.length} gangs`,
      seconds(p99(found.elsewhereMs)),
      `at most ${lostAfterSeconds + 60} s`,
    ],
    ["the same, the slowest", seconds(maxOf(found.elsewhereMs, 0)), ""],
    ["creates of pods elsewhere, p99 before", `${before.toFixed(0)} ms`, ""],
    ["the same, after", `${after.toFixed(0)} ms`, `at most ${(1.2 * before).toFixed(0)} ms`],
    ["the same, beside a slow cluster", `${beside.toFixed(0)} ms`, "as before"],
    ["pods off plan", `${found.offPlan} of ${found.placed}`, "below 5 %"],
    ["gangs that left the cluster that was cut off", String(found.leftBlackHole), "0"],
    ["replicas that ran twice where it can be seen", String(found.ranTwice.length), "0"],
    ["gangs that did not end", String(found.unended), "0"],
    ["tokens at the end", String(found.tokensAtEnd), "0"],
    ["jobs of a killed worker move again, p99", seconds(p99(found.resumedMs)), `at most ${leaseSeconds + 2} s`],
  ];
  return rows.map(([what, value, goal]) => `${what.padEnd(56)} ${value.padStart(12)}   ${goal}`.trimEnd());
}

const found = await runLostScenario(scenario, (line) => console.log(line));
for (const line of reportLines(found)) console.log(line);
for (const replica of found.ranTwice) console.log(`ran twice: ${replica}`);
